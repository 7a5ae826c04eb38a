package console_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/gateway/console"
)

// The built files that are embedded were built from the sources beside them: build.mjs writes the same hash.
func TestBuiltFilesAreOfTheseSources(t *testing.T) {
	t.Parallel()
	paths := []string{"build.mjs", "package-lock.json"}
	err := fs.WalkDir(os.DirFS("web"), "src", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(paths)
	whole := sha256.New()
	for _, path := range paths {
		b, err := os.ReadFile("web/" + path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Fprintf(whole, "%s\n%x\n", path, sha256.Sum256(b)) // a hash takes all
	}
	want, err := os.ReadFile("dist/sources.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(whole.Sum(nil)); got != strings.TrimSpace(string(want)) {
		t.Errorf("dist was built from other sources: run npm ci and npm run build in internal/gateway/console/web, and commit dist")
	}
}

// Every screen of the script has a path that the server answers with the page.
func TestServerKnowsEveryScreen(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("web/src/screens/index.ts")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`path: "(/[^"]*)"`).FindAllStringSubmatch(string(b), -1) {
		pattern := "GET " + regexp.MustCompile(`:(\w+)`).ReplaceAllString(m[1], "{$1}")
		if m[1] == "/" {
			pattern = "GET /{$}"
		}
		if !slices.Contains(console.Patterns(), pattern) {
			t.Errorf("the server does not know the path %s of a screen: add it to screens in console.go", m[1])
		}
	}
}

// docs/console.md names every screen, and docs/internals/console-design.md every test of the screens, and no test that does not exist.
func TestDocumentsNameEveryScreenAndTest(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/console.md")
	if err != nil {
		t.Fatal(err)
	}
	design, err := os.ReadFile("../../../docs/internals/console-design.md")
	if err != nil {
		t.Fatal(err)
	}
	index, err := os.ReadFile("web/src/screens/index.ts")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`path: "(/[^"]*)"`).FindAllStringSubmatch(string(index), -1) {
		path := strings.NewReplacer(":id", "ID", ":name", "NAME").Replace(m[1])
		if !strings.Contains(string(page), "`"+path+"`") {
			t.Errorf("docs/console.md has no row for the screen %s", path)
		}
	}
	entries, err := os.ReadDir("web/e2e")
	if err != nil {
		t.Fatal(err)
	}
	var tests []string
	for _, e := range entries {
		if name := e.Name(); !slices.Contains([]string{"run.mjs", "harness.mjs", "models.mjs", "world.mjs", "frame.mjs"}, name) {
			tests = append(tests, name)
		}
	}
	for _, name := range tests {
		if !strings.Contains(string(design), "`"+name+"`") {
			t.Errorf("docs/internals/console-design.md does not name the test %s", name)
		}
	}
	for _, m := range regexp.MustCompile("`([a-z-]+\\.mjs)`").FindAllStringSubmatch(string(design), -1) {
		if !slices.Contains(tests, m[1]) {
			t.Errorf("docs/internals/console-design.md names %s, which is no test", m[1])
		}
	}
}
