package config

import "time"

// WASM says where the modules are that are tools.
type WASM struct {
	// Dir and CacheDir are as the file writes them. An empty Dir is no modules, an empty CacheDir the
	// user's own.
	Dir, CacheDir string
	Cache         bool
	Reload        time.Duration // 0: never
	Interpreter   bool
}

// keys returns the rows of WebAssembly tools.
func (w *WASM) keys() []key {
	return []key{
		{"tools.wasm.dir", "", text(&w.Dir), "Folder of WebAssembly modules that are tools, each with a manifest beside it; see docs/tools-wasm.md. A relative path starts at the configuration file.", "folder path"},
		{"tools.wasm.cache", "true", boolean(&w.Cache), "Keep compiled modules from one start to the next.", ""},
		{"tools.wasm.cache_dir", "", text(&w.CacheDir), "Where compiled modules are kept: nobody else may write there, since what it holds is executed. Default: `lathe/wasm` in the user's folder of caches.", ""},
		{"tools.wasm.reload", "2s", duration(&w.Reload, 0), "How often the folder is looked at while a run goes on; `0s`: never.", "watch"},
		{"tools.wasm.interpreter", "false", boolean(&w.Interpreter), "Do without machine code: slower by far, and one thing less to trust.", ""},
	}
}
