package structure

import (
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// isPublic reports whether programs outside of the module can import the package in dir.
func isPublic(dir string, files []*goFile) bool {
	return !strings.HasPrefix(dir, "internal/") && !strings.Contains(dir, "/internal/") && files[0].file.Name.Name != "main"
}

// internal/outside is a module of its own that imports every public package: `./test` builds it and runs its tests.
func TestOutsideModuleImportsEveryPublicPackage(t *testing.T) {
	inRoot(t)
	files, err := filepath.Glob("internal/outside/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("internal/outside has %d files: %v", len(files), err)
	}
	imported := map[string]bool{}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range f.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			imported[name] = true
		}
	}
	for dir, files := range packages(t) {
		if isPublic(dir, files) && !imported[path.Join(module, dir)] {
			t.Errorf("internal/outside does not import %s: use it there, so that a signature that needs an internal type does not compile", path.Join(module, dir))
		}
	}
}
