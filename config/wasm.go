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
	// Grants are what manifests may ask for, and the others the most that they may set.
	Grants               []string
	MaxTimeout           time.Duration // 0: any
	MaxMemory, MaxModule int           // in bytes
	MaxTotalMemory       int           // of all instances together, in bytes
}

// keys returns the rows of WebAssembly tools.
func (w *WASM) keys() []key {
	return []key{
		{"tools.wasm.dir", "", text(&w.Dir), "Folder of WebAssembly modules that are tools, each with a manifest beside it; see docs/tools-wasm.md. A relative path starts at the configuration file.", "folder path"},
		{"tools.wasm.cache", "true", boolean(&w.Cache), "Keep compiled modules from one start to the next.", ""},
		{"tools.wasm.cache_dir", "", text(&w.CacheDir), "Where compiled modules are kept: nobody else may write there, since what it holds is executed. Default: `lathe/wasm` in the user's folder of caches.", ""},
		{"tools.wasm.reload", "2s", duration(&w.Reload, 0), "How often the folder is looked at while a run goes on; `0s`: never.", "watch"},
		{"tools.wasm.interpreter", "false", boolean(&w.Interpreter), "Do without machine code: slower by far, and one thing less to trust.", ""},
		{"tools.wasm.grants", "clock,random,read", listValue{&w.Grants, isGrant}, "What manifests may ask for: `clock`, `random`, `read` (files) and `write` (files). A module that asks for more is refused.", "permissions"},
		{"tools.wasm.max_timeout", "10m", duration(&w.MaxTimeout, 0), "The longest `limits.timeout` of a manifest; `0s`: any.", ""},
		{"tools.wasm.max_memory", "1GiB", size(&w.MaxMemory, 64<<10, 4<<30-1), "The largest memory that a manifest may ask for with `limits.memory_pages`.", ""},
		{"tools.wasm.max_total_memory", "1GiB", size(&w.MaxTotalMemory, 64<<10, 1<<40), "Memory of all instances of all modules together; a call that needs more fails with this limit.", "memory"},
		{"tools.wasm.max_module", "64MiB", size(&w.MaxModule, 1, 1<<30), "The largest `limits.module_bytes` of a manifest.", ""},
	}
}

// isGrant takes what a manifest can ask for.
func isGrant(s string) error {
	v := vocabulary{words: []string{"clock", "random", "read", "write"}}
	return v.check(s)
}
