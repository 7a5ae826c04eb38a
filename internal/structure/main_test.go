// Package structure holds the tests of the repository itself: which package may import which, how large a package may
// be, what the documents name, and what an upgrade may change. The files are read and parsed once, and none of the module is
// compiled, except event and what it imports.
package structure

import (
	"fmt"
	"os"
	"testing"
)

// TestMain runs the tests in the root of the module, so that paths are those that a reader sees.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(m.Run())
}
