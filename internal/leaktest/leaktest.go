// Package leaktest fails the tests of a package that leave goroutines behind.
package leaktest

import "go.uber.org/goleak"

// Main runs the tests of m and exits. It fails if goroutines are left, but for the clock of the regular expressions in schemas,
// which ends by itself two seconds after the last match.
func Main(m goleak.TestingM) {
	goleak.VerifyTestMain(m, clock)
}

var clock = goleak.IgnoreAnyFunction("github.com/dlclark/regexp2/v2.runClock")

// Since returns a check that fails t if goroutines have been left since the call.
func Since(t goleak.TestingT) (check func()) {
	before := goleak.IgnoreCurrent()
	return func() { goleak.VerifyNone(t, before, clock) }
}
