// Package structure holds the tests of the repository itself: which package may import which, how large a package may
// be, what the documents name, and what an upgrade may change. The files are read and parsed once, and none of the module is
// compiled, except event and what it imports.
package structure

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync"
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

// logRoot names the folder to go test, which begins to record what a test reads in m.Run. Without it the paths below count as those
// of this package's folder, where nothing ever changes, and a result stays cached whatever is changed in the tree.
var logRoot = sync.OnceValue(func() error { return os.Chdir(".") })

// inRoot is how each test begins: it runs in parallel, and again after a change of a file that it reads.
func inRoot(t *testing.T) {
	t.Helper()
	if err := logRoot(); err != nil {
		t.Fatal(err)
	}
	t.Parallel()
}

func TestEachTestBeginsInRoot(t *testing.T) {
	inRoot(t)
	files, err := filepath.Glob("internal/structure/*_test.go")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	first := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\) \{\n\t(.*)$`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range first.FindAllStringSubmatch(string(text), -1) {
			if m[2] != "inRoot(t)" {
				t.Errorf("%s: %s begins with %s, want inRoot(t)", file, m[1], m[2])
			}
		}
	}
}
