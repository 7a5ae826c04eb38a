// Package leaktest fails the tests of a package if goroutines are left running after them.
package leaktest

import "go.uber.org/goleak"

// Main runs the tests of m and exits, with an error if goroutines are left. It ignores the clock goroutine of regexp2, the library for
// patterns of schemas, which ends two seconds after the last match.
func Main(m goleak.TestingM) {
	goleak.VerifyTestMain(m, clock)
}

var clock = goleak.IgnoreAnyFunction("github.com/dlclark/regexp2/v2.runClock")

// Since returns a check that fails t if goroutines that were started after the call of Since are still running.
func Since(t goleak.TestingT) (check func()) {
	before := goleak.IgnoreCurrent()
	return func() { goleak.VerifyNone(t, before, clock) }
}
