package structure

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A goFile is one Go file of the repository.
type goFile struct {
	name   string // path from the root, with slashes
	dir    string // its folder, "" for the root
	isTest bool
	apart  bool // in a module of its own: the rules of this module do not apply to it
	src    []byte
	file   *ast.File
}

var fileSet = token.NewFileSet()

// readTree reads and parses the Go files of the repository once, those of testdata, of npm and of hidden folders aside. Since
// it opens each of them, `go test` repeats no cached result after one has changed.
var readTree = sync.OnceValues(func() (files []*goFile, err error) {
	var modules []string
	err = filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		p = filepath.ToSlash(p)
		switch {
		case err != nil:
			return err
		case d.IsDir() && p == ".":
			return nil
		case d.IsDir():
			if d.Name() == "testdata" && p != "internal/testdata" || d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") {
				return fs.SkipDir
			}
			if _, err := os.Stat(filepath.Join(p, "go.mod")); err == nil {
				modules = append(modules, p+"/")
			}
			return nil
		case filepath.Ext(p) != ".go":
			return nil
		}
		f := &goFile{name: p, isTest: strings.HasSuffix(p, "_test.go")}
		if f.dir = path.Dir(p); f.dir == "." {
			f.dir = ""
		}
		for _, m := range modules {
			f.apart = f.apart || strings.HasPrefix(p, m)
		}
		if f.src, err = os.ReadFile(p); err != nil {
			return err
		}
		f.file, err = parser.ParseFile(fileSet, p, f.src, parser.ParseComments|parser.SkipObjectResolution)
		files = append(files, f)
		return err
	})
	return files, err
})

// goFiles returns the Go files of the repository, modules of their own included.
func goFiles(t *testing.T) []*goFile {
	t.Helper()
	files, err := readTree()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// packages returns the non-test files of each folder of the module.
func packages(t *testing.T) map[string][]*goFile {
	t.Helper()
	out := map[string][]*goFile{}
	for _, f := range goFiles(t) {
		if !f.apart && !f.isTest {
			out[f.dir] = append(out[f.dir], f)
		}
	}
	return out
}

// testNames returns the names of all tests and fuzz targets of the repository.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, f := range goFiles(t) {
		for _, decl := range f.file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && f.isTest && fn.Recv == nil && (strings.HasPrefix(fn.Name.Name, "Test") || strings.HasPrefix(fn.Name.Name, "Fuzz")) {
				names[fn.Name.Name] = true
			}
		}
	}
	return names
}
