// Package leaktest fails the tests of a package if goroutines are left running after them.
package leaktest

import (
	"fmt"
	"os"

	"go.uber.org/goleak"
)

// searches is the maximum number of searches for goroutines that are left. Each of them waits about half a second for goroutines to end,
// which is not enough on a busy machine.
const searches = 20

// Main runs the tests of m and exits, with an error if goroutines are left. It ignores the clock goroutine of regexp2, the library for
// patterns of schemas, which ends two seconds after the last match.
func Main(m goleak.TestingM) {
	code := m.Run()
	if code == 0 {
		if err := find(); err != nil {
			fmt.Fprintln(os.Stderr, "the tests passed, and goroutines are left:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// Since returns a check that fails t if goroutines that were started after the call of Since are still running.
func Since(t goleak.TestingT) (check func()) {
	before := goleak.IgnoreCurrent()
	return func() {
		if err := find(before); err != nil {
			t.Error(err)
		}
	}
}

func find(ignored ...goleak.Option) (err error) {
	ignored = append(ignored, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2/v2.runClock"))
	for range searches {
		if err = goleak.Find(ignored...); err == nil {
			return nil
		}
	}
	return err
}
