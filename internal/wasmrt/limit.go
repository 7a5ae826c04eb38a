package wasmrt

import "cmp"

// Limits of a module and its instances. The comment of each field states its name in Error.Limit. [Limits.WithDefaults] has the
// defaults for 0.
type Limits struct {
	ModuleBytes   int    // of the binary ("module_bytes")
	Functions     int    // "functions"
	FunctionBytes int    // of the code of one function ("function_bytes")
	MemoryPages   uint32 // of 64 KiB each; at most 65,535 ("memory_pages")
	TableElements uint32 // in all tables together ("table_elements")
	HostCalls     int64  // calls from the guest to the host ("host_calls")
	StdoutBytes   int64  // on standard output and standard error together ("stdout_bytes")
	FileBytes     int64  // read from and written to files ("file_bytes")
	OpenFiles     int    // at once ("open_files")
	NewFiles      int    // files and folders created, including removed ones ("new_files")
}

// stackLimit is the name of the limit on nested calls, which no option changes: maxStack bytes, and 2,000 calls if they are interpreted.
const stackLimit = "stack"

// Limits that no option changes. They limit the cost of compiling a small module.
const (
	maxParams  = 1_000  // parameters of a type, and results
	maxLocals  = 50_000 // of a function
	maxGlobals = 100_000
	maxFD      = 1 << 10
	maxGrowth  = 4 // factor by which metering may enlarge a function beyond its limit
)

// WithDefaults returns l with each zero field replaced by its default.
func (l Limits) WithDefaults() Limits {
	l.ModuleBytes = cmp.Or(l.ModuleBytes, 16<<20)
	l.Functions = cmp.Or(l.Functions, 50_000)
	l.FunctionBytes = cmp.Or(l.FunctionBytes, 1<<20)
	l.MemoryPages = min(cmp.Or(l.MemoryPages, 1_024), 65_535) // by default 64 MiB
	l.TableElements = cmp.Or(l.TableElements, 100_000)
	l.HostCalls = cmp.Or(l.HostCalls, 1_000_000)
	l.StdoutBytes = cmp.Or(l.StdoutBytes, 64<<10)
	l.FileBytes = cmp.Or(l.FileBytes, 64<<20)
	l.OpenFiles = cmp.Or(l.OpenFiles, 64)
	l.NewFiles = cmp.Or(l.NewFiles, 1_000)
	return l
}
