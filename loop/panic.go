package loop

import (
	"context"
	"runtime"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe"
)

// A PanicError is the cause of the error of a run whose model panicked. It holds the functions on
// the stack and none of their values.
type PanicError struct{ Stack string }

// Error says that a model panicked.
func (*PanicError) Error() string { return "the model panicked" }

// generate has the model take its turn. A model that panics has failed, whatever it said before.
// A panic of those who are told the events is theirs, and goes on.
func (r *run) generate(ctx context.Context) {
	defer func() {
		if r.telling {
			return
		}
		if recover() != nil { // its value may hold content
			r.call.finish = nil
			r.call.err = &lathe.Error{Code: lathe.CodeInternal, Op: "loop: model call", Err: &PanicError{Stack: functions()}}
		}
	}()
	r.model.Generate(ctx, &r.req)(r.deltaFn)
}

// functions names the functions on the stack of a panic, the innermost first.
func functions() string {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	var b strings.Builder
	for {
		f, more := frames.Next()
		if f.Function != "" {
			b.WriteString(f.Function)
			b.WriteByte(':')
			b.WriteString(strconv.Itoa(f.Line))
			b.WriteByte('\n')
		}
		if !more {
			return b.String()
		}
	}
}
