package testdata

import (
	"os"
	"testing"
)

// all is the value of LATHE_TEST with which every test runs at its full length.
const all = "all"

// All reports whether every test runs at its full length: if LATHE_TEST is all, as `./test --all` sets it. Otherwise a test with
// many inputs runs some of them.
func All() bool { return os.Getenv("LATHE_TEST") == all }

// Cases returns n, the number of random cases of a test, if every test runs, else a quarter of it.
func Cases(n int) int {
	if All() {
		return n
	}
	return (n + 3) / 4
}

// NeedAll skips the test unless LATHE_TEST is all. The reason is one line of `go test -v`.
func NeedAll(t testing.TB) {
	t.Helper()
	if !All() {
		t.Skip("runs with LATHE_TEST=all, as in ./test --all")
	}
}

// NeedLong skips the test in a short run (`go test -short`, `make check`). It is for tests that start processes or servers,
// compile programs or have many inputs. The reason is one line of `go test -v`.
func NeedLong(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("does not run with -short")
	}
}

// WithoutRace skips the test under the race detector unless every test runs. It is for tests with many inputs whose goroutines other
// tests start, too. `./test` runs them without the detector.
func WithoutRace(t testing.TB) {
	t.Helper()
	if race && !All() {
		t.Skip("runs without the race detector, and with it in ./test --all")
	}
}

// CountsAllocations skips the test under the race detector, which makes allocations of its own and empties pools at random. It
// stands first in each test that calls [testing.AllocsPerRun]; `./test` runs those tests without the detector.
func CountsAllocations(t testing.TB) {
	t.Helper()
	if race {
		t.Skip("counts allocations, which the race detector changes")
	}
}
