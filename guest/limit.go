package guest

import (
	"time"

	"github.com/lathe-run/lathe/internal/wasmrt"
)

// Limits of a guest. Each comment begins with the default of a zero field. If a guest exceeds a limit marked "ends", its run ends with
// guest_fault; for the others, the guest's call returns an error.
type Limits struct {
	ModuleBytes   int    // 16 MiB; of the binary
	Functions     int    // 50,000, in the module
	FunctionBytes int    // 1 MiB; of the code of one function
	MemoryPages   uint32 // 1,024, of 64 KiB each: 64 MiB; ends the guest if it requires more
	TableElements uint32 // 100,000, in all tables together
	HostCalls     int64  // 1,000,000; ends
	StdoutBytes   int64  // 64 KiB, of both outputs together; ends
	FileBytes     int64  // 64 MiB, read and written; ends
	OpenFiles     int    // 64 at once; ends
	NewFiles      int    // 1,000 files and folders made; ends
	LogBytes      int    // 256 KiB, of all log calls: -ENOSPC
	Descriptors   int    // 256 open at once: -ENOMEM
	SessionBytes  int    // 16 MiB: messages, functions and parameters of all open sessions, and the answers: -ENOMEM
	SessionTools  int    // 128 functions in one session: -ENOMEM
	Sends         int    // 1,000 runs: the answer is the error budget_exceeded
}

// WithDefaults returns l with defaults in place of zero fields.
func (l Limits) WithDefaults() Limits {
	w := l.runtime().WithDefaults()
	l.ModuleBytes, l.Functions, l.FunctionBytes, l.MemoryPages, l.TableElements = w.ModuleBytes, w.Functions, w.FunctionBytes, w.MemoryPages, w.TableElements
	l.HostCalls, l.StdoutBytes, l.FileBytes, l.OpenFiles, l.NewFiles = w.HostCalls, w.StdoutBytes, w.FileBytes, w.OpenFiles, w.NewFiles
	for _, d := range []struct {
		field *int
		value int
	}{{&l.LogBytes, 256 << 10}, {&l.Descriptors, 256}, {&l.SessionBytes, 16 << 20}, {&l.SessionTools, 128}, {&l.Sends, 1000}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
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
