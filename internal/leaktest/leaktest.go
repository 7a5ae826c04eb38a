// Package leaktest fails the tests of a package if goroutines still run after them.
package leaktest

import "go.uber.org/goleak"

// Main runs the tests of m and exits, with an error if goroutines are left. The clock of regexp2, which matches the patterns of
// schemas, is ignored: it ends by itself two seconds after the last match.
func Main(m goleak.TestingM) {
	goleak.VerifyTestMain(m, clock)
}

var clock = goleak.IgnoreAnyFunction("github.com/dlclark/regexp2/v2.runClock")

// Since returns a check that fails t if goroutines have been left since the call.
func Since(t goleak.TestingT) (check func()) {
	before := goleak.IgnoreCurrent()
	return func() { goleak.VerifyNone(t, before, clock) }
}
