// Package lazy compiles regular expressions on first use: a program that does not use them does not pay for them at each start.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp returns a function that returns the compiled expression, the same one at each call, and panics
// where it is not one. It is for expressions that are constants of the program. The function may be called from several
// goroutines at once.
func Regexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
