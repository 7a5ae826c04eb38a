// Package lazy compiles regular expressions on first use, so that they cost nothing at the start of a program.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp returns a function that compiles expr in its first call and returns the same expression in each call. The function panics if expr
// is not valid: expr should be a constant. It may be called from several goroutines at once.
func Regexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
