package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/tool"
)

// constants returns the values of the string constants of a type in error.go.
func constants(t *testing.T, typeName string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", "error.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if of, ok := spec.Type.(*ast.Ident); ok && of.Name == typeName {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, value)
		}
		return true
	})
	if len(values) == 0 {
		t.Fatalf("error.go has no constant of type %s", typeName)
	}
	return values
}

func TestEveryErrorCodeIsDocumented(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "errors.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	before, after, ok := strings.Cut(string(b), "\n## Codes of HTTP responses\n") // of package server, which compares them
	_, rest, ended := strings.Cut(after, "\n## ")
	if !ok || !ended {
		t.Fatal("docs/errors.md has no section of HTTP codes")
	}
	b = []byte(before + "\n## " + rest)
	for line := range strings.SplitSeq(string(b), "\n") {
		if name, _, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "` | "); ok && strings.HasPrefix(line, "| `") {
			if _, seen := rows[name]; !seen { // the first table of a code says the most
				rows[name] = strings.Split(strings.Trim(line, "| "), " | ")
			}
		}
	}
	known := map[string]bool{}
	for _, code := range constants(t, "Code") {
		known[code] = true
		row, text := rows[code], tool.Text(lathe.Code(code))
		switch {
		case row == nil:
			t.Errorf("docs/errors.md has no row for %s", code)
		case text != "" && (len(row) != 4 || row[2] != text):
			t.Errorf("docs/errors.md: the row of %s is %q; the model reads %q", code, row, text)
		case text == "" && len(row) != 3:
			t.Errorf("docs/errors.md: the row of %s is %q, want three cells", code, row)
		}
	}
	for _, kind := range constants(t, "UpstreamKind") {
		known[kind] = true
		if rows[kind] == nil {
			t.Errorf("docs/errors.md has no row for the kind %s", kind)
		}
	}
	for name := range rows {
		for code := range strings.SplitSeq(name, "`, `") {
			if !known[code] {
				t.Errorf("docs/errors.md names %s, which error.go does not", code)
			}
		}
	}
}
