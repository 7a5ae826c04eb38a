// Package testdata finds the third-party test data that the project's tests read and never copy.
package testdata

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Dir returns the path of a file or folder of the third-party test data, from the folder
// $LATHE_SHARED/data, else ../shared/data beside the module. It skips the test where that is absent.
func Dir(t testing.TB, elem ...string) string {
	t.Helper()
	root := os.Getenv("LATHE_SHARED")
	if root == "" {
		_, file, _, ok := runtime.Caller(0)
		if !ok {
			t.Fatal("testdata: no caller information")
		}
		root = filepath.Join(filepath.Dir(file), "..", "..", "..", "shared")
	}
	p := filepath.Join(append([]string{root, "data"}, elem...)...)
	if _, err := os.Stat(p); err != nil {
		t.Skip("third-party test data not found: set LATHE_SHARED")
	}
	return p
}
