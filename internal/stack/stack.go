// Package stack describes the stack of a panic without the values on it, which may hold content.
package stack

import (
	"runtime"
	"strconv"
	"strings"
)

// Functions returns the names and lines of the functions on the stack of a panic, one a line, the innermost first. The
// deferred function that recovers must call it itself.
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
