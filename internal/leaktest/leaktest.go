// Package leaktest fails the tests of a package if goroutines are left running after them.
package leaktest

import "go.uber.org/goleak"

// Main runs the tests of m and exits, with an error if goroutines are left. It ignores the clock goroutine of regexp2, the library for
// patterns of schemas, which ends two seconds after the last match.
func Main(m goleak.TestingM) {
	goleak.VerifyTestMain(waiting{m}, clock)
}

var clock = goleak.IgnoreAnyFunction("github.com/dlclark/regexp2/v2.runClock")

// Since returns a check that fails t if goroutines that were started after the call of Since are still running.
func Since(t goleak.TestingT) (check func()) {
	before := goleak.IgnoreCurrent()
	return func() {
		wait(before, clock)
		goleak.VerifyNone(t, before, clock)
	}
}

// searches is the maximum number of searches for goroutines that are left. Each of them gives goroutines about half a second to end, which
// is not enough on a busy machine.
const searches = 20

func wait(ignored ...goleak.Option) {
	for range searches {
		if goleak.Find(ignored...) == nil {
			return
		}
	}
}

// A waiting runs the tests and waits until no goroutine is left.
type waiting struct{ m goleak.TestingM }

func (w waiting) Run() int {
	code := w.m.Run()
	if code == 0 {
		wait(clock)
	}
	return code
}
