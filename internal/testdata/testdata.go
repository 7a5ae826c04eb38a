// Package testdata finds the third-party test data that the project's tests read and never copy.
package testdata

import (
	"os"
	"path/filepath"
	"testing"
)

// Dir returns the path of a file or folder of the third-party test data, from the folder
// $LATHE_SHARED/data, else ../shared/data beside the module. It skips the test where that is absent.
func Dir(t testing.TB, elem ...string) string {
	t.Helper()
	root := os.Getenv("LATHE_SHARED")
	if root == "" {
		root = filepath.Join(module(t), "..", "shared")
	}
	p := filepath.Join(append([]string{root, "data"}, elem...)...)
	if _, err := os.Stat(p); err != nil {
		t.Skip("third-party test data not found: set LATHE_SHARED")
	}
	return p
}

// module returns the module's folder, the one of layout_test.go, above the test's working folder. A path compiled into the binary would not
// do: with -trimpath there is none.
func module(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "layout_test.go")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("testdata: no layout_test.go above the test's folder")
		}
		dir = parent
	}
}
