package structure

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// T33: every module that is built in is one whose sum is written down, and what comes from npm for the
// tests is, too: nothing of it runs a script when it is installed.
func TestT33_DependenciesArePinned(t *testing.T) {
	inRoot(t)
	requirement := regexp.MustCompile(`(?m)^(?:require )?\s*([a-z0-9.-]+\.[a-z]+/\S+|[a-z]+\.dev/\S+) (v\S+)`)
	replaced := regexp.MustCompile(`(?m)=>\s*(\S+)`)
	mods, locks := 0, 0
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		switch d.Name() {
		case "go.mod":
			mods++
			mod, sum := read(t, p), ""
			if strings.Contains(mod, "\nrequire") {
				sum = read(t, filepath.Join(filepath.Dir(p), "go.sum"))
			}
			for _, m := range requirement.FindAllStringSubmatch(mod, -1) {
				if m[1] != module && !strings.HasPrefix(m[1], module+"/") && !strings.Contains(sum, m[1]+" "+m[2]+"/go.mod h1:") {
					t.Errorf("%s: %s %s has no sum", p, m[1], m[2])
				}
			}
			for _, m := range replaced.FindAllStringSubmatch(mod, -1) {
				if !strings.HasPrefix(m[1], ".") {
					t.Errorf("%s: a module is replaced by %s, which is not in this repository", p, m[1])
				}
			}
		case "package-lock.json":
			locks++
			checkLock(t, p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if mods < 2 || locks < 1 {
		t.Errorf("%d go.mod and %d package-lock.json were found", mods, locks)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func checkLock(t *testing.T, path string) {
	t.Helper()
	var lock struct {
		Packages map[string]struct {
			Integrity        string
			HasInstallScript bool
			Link             bool
		}
	}
	if err := json.Unmarshal([]byte(read(t, path)), &lock); err != nil {
		t.Fatal(err)
	}
	npmrc, err := os.ReadFile(filepath.Join(filepath.Dir(path), ".npmrc"))
	ignoresScripts := err == nil && slices.Contains(strings.Split(string(npmrc), "\n"), "ignore-scripts=true")
	for name, p := range lock.Packages {
		if name == "" || p.Link {
			continue
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(path), name, "package.json")); err == nil && !strings.Contains(name, "node_modules/") {
			continue // a workspace, which is a folder of this repository
		}
		if !strings.HasPrefix(p.Integrity, "sha512-") {
			t.Errorf("%s: %s has no sum", path, name)
		}
		if p.HasInstallScript && !ignoresScripts {
			t.Errorf("%s: %s runs a script when it is installed, and no .npmrc beside the lock says ignore-scripts=true", path, name)
		}
	}
}
