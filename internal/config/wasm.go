package config

import "time"

// WASM configures the WebAssembly modules that are tools.
type WASM struct {
	// Folder of WebAssembly modules that are tools, each with a manifest beside it; see docs/tools-wasm.md. A
	// relative path starts at the configuration file.
	Dir string `key:"dir" also:"folder path"`
	// Keep compiled modules from one start to the next.
	Cache bool `key:"cache" default:"true"`
	// Where compiled modules are kept: no other user may write there, since its contents are executed. Default:
	// `lathe/wasm` in the user's folder of caches.
	CacheDir string `key:"cache_dir"`
	// How often the folder is looked at while a run goes on; `0s`: never.
	Reload time.Duration `key:"reload" default:"2s" range:"0s.." also:"watch"` // 0: never
	// Do without machine code: slower by far, and one thing less to trust.
	Interpreter bool `key:"interpreter" default:"false"`
	// What manifests may ask for: `clock`, `random`, `read` (files) and `write` (files). A module that asks for more
	// is refused.
	Grants []string `key:"grants" default:"clock,random,read" is:"grant" also:"permissions"`
	// The longest `limits.timeout` of a manifest; `0s`: any.
	MaxTimeout time.Duration `key:"max_timeout" default:"10m" range:"0s.."` // 0: any
	// The largest memory that a manifest may ask for with `limits.memory_pages`.
	MaxMemory int `key:"max_memory" default:"1GiB" is:"size" range:"64KiB..4294967295"`
	// Memory of all instances of all modules together; a call that needs more fails with this limit.
	MaxTotalMemory int `key:"max_total_memory" default:"1GiB" is:"size" range:"64KiB..1024GiB" also:"memory"`
	// The largest `limits.module_bytes` of a manifest.
	MaxModule int `key:"max_module" default:"64MiB" is:"size" range:"1.."`
}
