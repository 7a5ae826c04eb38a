package verify

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// minProbe is the length of texts that are a prompt, a schema or a history rather than a name.
const minProbe = 24

// No probe is written twice: the prompts, schemas and results of the doctor and of a verification are texts of one of the two.
func TestNoProbeIsWrittenTwice(t *testing.T) {
	t.Parallel()
	texts := func(folder string) map[string]string {
		out := map[string]string{}
		paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%v, %d files", err, len(paths))
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			imports := map[*ast.BasicLit]bool{}
			for _, spec := range file.Imports {
				imports[spec.Path] = true
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && !imports[lit] {
					if text, err := strconv.Unquote(lit.Value); err == nil && len(text) >= minProbe {
						out[text] = path
					}
				}
				return true
			})
		}
		return out
	}
	own := texts(".")
	for text, path := range texts(filepath.Join("..", "doctor")) {
		if other := own[text]; other != "" {
			t.Errorf("%s and %s both hold %.80q", path, other, text)
		}
	}
	if len(own) < 50 {
		t.Errorf("%d texts", len(own))
	}
}
