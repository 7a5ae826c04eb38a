package guest

import (
	"cmp"
	"time"

	"github.com/lathe-run/lathe/internal/wasmrt"
)

// Limits of a guest. A zero field has the default in its comment. [Runtime.Compile] returns an error if the module exceeds a limit of
// modules. If the running guest exceeds another limit, its run ends with guest_fault or its call returns an error: see the comment.
type Limits struct {
	ModuleBytes   int    // maximum size of the binary; 0: 16 MiB
	Functions     int    // maximum number of functions in the module; 0: 50,000
	FunctionBytes int    // maximum size of the code of one function; 0: 1 MiB
	MemoryPages   uint32 // maximum memory in pages of 64 KiB; 0: 1,024 (64 MiB). memory.grow beyond it returns -1
	TableElements uint32 // maximum number of elements in all tables together; 0: 100,000
	HostCalls     int64  // maximum number of calls from the guest to the host; 0: 1,000,000; more end the run
	StdoutBytes   int64  // maximum bytes of standard output and standard error together; 0: 64 KiB; more end the run
	FileBytes     int64  // maximum bytes read from and written to files; 0: 64 MiB; more end the run
	OpenFiles     int    // maximum number of files open at once; 0: 64; more end the run
	NewFiles      int    // maximum number of files and folders created; 0: 1,000; more end the run
	LogBytes      int    // maximum bytes of all log calls together; 0: 256 KiB; more fail with -ENOSPC
	Descriptors   int    // maximum number of descriptors open at once; 0: 256; more fail with -ENOMEM
	SessionBytes  int    // maximum bytes of messages, functions, parameters and answers of open sessions; 0: 16 MiB; more fail with -ENOMEM
	SessionTools  int    // maximum number of functions in one session; 0: 128; more fail with -ENOMEM
	Sends         int    // maximum number of calls of Host.Send; 0: 1,000; more are answered with the error budget_exceeded
}

// WithDefaults returns a copy of l in which zero fields have their defaults.
func (l Limits) WithDefaults() Limits {
	w := l.runtime().WithDefaults()
	l.ModuleBytes, l.Functions, l.FunctionBytes, l.MemoryPages, l.TableElements = w.ModuleBytes, w.Functions, w.FunctionBytes, w.MemoryPages, w.TableElements
	l.HostCalls, l.StdoutBytes, l.FileBytes, l.OpenFiles, l.NewFiles = w.HostCalls, w.StdoutBytes, w.FileBytes, w.OpenFiles, w.NewFiles
	l.LogBytes = cmp.Or(l.LogBytes, 256<<10)
	l.Descriptors = cmp.Or(l.Descriptors, 256)
	l.SessionBytes = cmp.Or(l.SessionBytes, 16<<20)
	l.SessionTools = cmp.Or(l.SessionTools, 128)
	l.Sends = cmp.Or(l.Sends, 1000)
	return l
}

func (l *Limits) runtime() *wasmrt.Limits {
	return &wasmrt.Limits{ModuleBytes: l.ModuleBytes, Functions: l.Functions, FunctionBytes: l.FunctionBytes, MemoryPages: l.MemoryPages,
		TableElements: l.TableElements, HostCalls: l.HostCalls, StdoutBytes: l.StdoutBytes, FileBytes: l.FileBytes, OpenFiles: l.OpenFiles, NewFiles: l.NewFiles}
}

// Limits that no option changes, in bytes, and the default timeout.
const (
	maxLog         = 16 << 10 // of one log call
	maxCallBytes   = 16 << 20 // of one text that a guest passes
	firstFD        = 1000
	defaultTimeout = 15 * time.Minute
)
