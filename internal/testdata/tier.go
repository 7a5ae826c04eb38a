package testdata

import (
	"os"
	"testing"
)

// all is the value of LATHE_TEST with which every test runs at its full length.
const all = "all"

// All reports whether every test runs, at its full length: LATHE_TEST=all, which `./test --all` sets. A test that tries
// many inputs tries fewer without it.
func All() bool { return os.Getenv("LATHE_TEST") == all }

// NeedAll skips a test that only runs with LATHE_TEST=all, and says so in one line.
func NeedAll(t testing.TB) {
	t.Helper()
	if !All() {
		t.Skip("runs with LATHE_TEST=all, as in ./test --all")
	}
}

// NeedLong skips a test in a short run (`go test -short`, `make check`), and says so in one line: it starts processes or
// servers, compiles programs, or tries many inputs.
func NeedLong(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("does not run with -short")
	}
}
