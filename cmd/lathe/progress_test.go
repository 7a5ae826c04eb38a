package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// Each function that starts MCP servers, which may take a minute, shows which ones.
func TestStartsOfServersAreShown(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			starts, shows := false, false
			ast.Inspect(d, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					switch f := call.Fun.(type) {
					case *ast.SelectorExpr:
						starts = starts || f.Sel.Name == "StartServers" || f.Sel.Name == "StartTools" || f.Sel.Name == "OpenSession"
					case *ast.Ident:
						shows = shows || f.Name == "startingServers"
					}
				}
				return true
			})
			if starts {
				found++
			}
			if f, ok := d.(*ast.FuncDecl); ok && starts && !shows {
				t.Errorf("%s: %s does not call startingServers", name, f.Name.Name)
			}
		}
	}
	if found < 3 {
		t.Errorf("%d functions start servers", found)
	}
}
