package structure

import (
	"go/ast"
	"go/scanner"
	"go/token"
	"path"
	"strings"
	"testing"
)

// A measure has the numbers of each row of budget.txt, by kind and name.
type measure map[budgetKey][]int

// measured counts the product code of the module. Test kits, examples, and modules of their own are left out.
func measured(t *testing.T) measure {
	t.Helper()
	m := measure{}
	public := make([]int, 2)
	for dir, files := range packages(t) {
		if isKit(dir) || strings.HasPrefix(dir, "examples/") {
			continue
		}
		name := dir
		if dir == "" {
			name = "lathe"
		}
		size, within := make([]int, 2), measure{}
		for _, f := range files {
			size[0] += tokens(f.src)
			size[1] += exported(f.file)
			within.count(name, f.file)
		}
		for key, n := range within {
			if n[0] > limits[key.kind] && !(key.kind == "fields" && isTable(dir, key.name)) {
				m[key] = n
			}
		}
		m[budgetKey{"package", name}] = size
		if isPublic(dir, files) && !strings.HasPrefix(dir, "lab/") {
			public[0]++
			public[1] += size[1]
		}
	}
	m[budgetKey{"public", "packages"}] = public
	return m
}

// isKit reports whether the package in dir serves the project's own tests alone. lathetest is for the tests of users.
func isKit(dir string) bool {
	base := path.Base(dir)
	return base != "lathetest" && strings.HasSuffix(base, "test") || strings.Contains("/"+dir+"/", "/testkit/") || base == "testdata" || base == "fetchdata"
}

// isTable reports whether a struct has a field for each setting or each member of an event, so that their number is theirs.
func isTable(dir, name string) bool {
	return dir == "internal/config" || dir == "event" || strings.HasSuffix(name, "Options") || strings.HasSuffix(name, "Limits") || strings.HasSuffix(name, "Settings")
}

// tokens counts the tokens of a file without comments, and without the semicolons that line ends stand for.
func tokens(src []byte) (n int) {
	var s scanner.Scanner
	files := token.NewFileSet()
	s.Init(files.AddFile("", files.Base(), len(src)), src, nil, 0)
	for {
		switch _, tok, text := s.Scan(); {
		case tok == token.EOF:
			return n
		case tok != token.SEMICOLON || text != "\n":
			n++
		}
	}
}

// exported counts the exported names that a file declares at its top.
func exported(file *ast.File) (n int) {
	add := func(name *ast.Ident) {
		if name.IsExported() {
			n++
		}
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				add(d.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					add(spec.Name)
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						add(name)
					}
				}
			}
		}
	}
	return n
}

// count adds the methods and fields of each type of a file, and the cyclomatic number of each function.
func (m measure) count(pkg string, file *ast.File) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := pkg + "." + d.Name.Name
			if d.Recv != nil {
				of := pkg + "." + receiver(d.Recv.List[0].Type)
				name = of + "." + d.Name.Name
				key := budgetKey{"methods", of}
				m[key] = []int{1 + sum(m[key])}
			}
			key := budgetKey{"cyclomatic", name}
			m[key] = []int{max(sum(m[key]), cyclomatic(d))} // several init functions have one name
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				spec, ok := spec.(*ast.TypeSpec)
				if !ok {
					continue
				}
				if s, ok := spec.Type.(*ast.StructType); ok {
					n := 0
					for _, f := range s.Fields.List {
						n += max(1, len(f.Names))
					}
					m[budgetKey{"fields", pkg + "." + spec.Name.Name}] = []int{n}
				}
			}
		}
	}
}

func sum(n []int) (total int) {
	for _, v := range n {
		total += v
	}
	return total
}

// receiver returns the name of a receiver's type, without a star and type parameters.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

// cyclomatic counts the ways through a function, as gocyclo does, functions within it included.
func cyclomatic(f *ast.FuncDecl) int {
	n := 1
	ast.Inspect(f, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if node.List != nil {
				n++
			}
		case *ast.CommClause:
			if node.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if node.Op == token.LAND || node.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}
