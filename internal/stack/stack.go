// Package stack returns the stack of a panic without the values of arguments, which may be content of a user.
package stack

import (
	"runtime"
	"strconv"
	"strings"
)

// Functions returns the names and line numbers of the functions on the stack of a panic, one on each line, the innermost first. The
// deferred function that recovers must call it directly.
func Functions() string {
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
