package structure

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A listed package is what `go list` prints about one package that the module is built from.
type listed struct {
	ImportPath, Name, Dir string
	GoFiles, Imports      []string
	Module                *struct{ Path string } // nil for the standard library
}

func (p *listed) own() bool { return p.Module != nil && p.Module.Path == module }

// listPackages asks `go list` once for the packages of the module and all that they import, dependencies first.
var listPackages = sync.OnceValues(func() (packages []*listed, err error) {
	out, err := goList("-deps", "-json=ImportPath,Name,Dir,GoFiles,Imports,Module", "./...")
	for dec := json.NewDecoder(bytes.NewReader(out)); err == nil && dec.More(); {
		p := &listed{}
		if err = dec.Decode(p); err == nil {
			packages = append(packages, p)
		}
	}
	return packages, err
})

func goList(args ...string) ([]byte, error) {
	out, err := exec.Command("go", append([]string{"list"}, args...)...).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("go list: %w: %s", err, exit.Stderr)
	}
	return out, err
}

// needed returns the packages that those of the folders are built from, themselves included, dependencies first.
func needed(t *testing.T, folders ...string) (out []*listed) {
	t.Helper()
	all, err := listPackages()
	if err != nil {
		t.Fatal(err)
	}
	wanted := map[string]bool{}
	for _, dir := range folders {
		wanted[path.Join(module, dir)] = true
	}
	for _, p := range slices.Backward(all) {
		if wanted[p.ImportPath] {
			out = append(out, p)
			for _, name := range p.Imports {
				wanted[name] = true
			}
		}
	}
	slices.Reverse(out)
	return out
}

// checkTypes returns the types of the packages that other modules can import. Those of the module are checked from their
// source without the bodies of functions, so that nothing of it is compiled; the others are read from the compiler's
// export data, which the build cache has unless a dependency is new.
var checkTypes = sync.OnceValues(func() (public []*types.Package, err error) {
	all, err := listPackages()
	if err != nil {
		return nil, err
	}
	files, err := readTree()
	if err != nil {
		return nil, err
	}
	parsed, outside := map[string]*ast.File{}, []string{"-export", "-f", "{{.ImportPath}} {{.Export}}", "--"}
	for _, f := range files {
		parsed[f.name] = f.file
	}
	isOwn := map[string]bool{}
	for _, p := range all {
		isOwn[p.ImportPath] = p.own()
	}
	for _, p := range all {
		for _, name := range p.Imports {
			if p.own() && !isOwn[name] && name != "unsafe" && !slices.Contains(outside, name) {
				outside = append(outside, name)
			}
		}
	}
	out, err := goList(outside...)
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[name] = file
	}
	imports := &sourceFirst{own: map[string]*types.Package{}}
	imports.compiled = importer.ForCompiler(fileSet, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	config := types.Config{Importer: imports, IgnoreFuncBodies: true}
	for _, p := range all {
		if !p.own() || p.Name == "main" {
			continue
		}
		var sources []*ast.File
		for _, name := range p.GoFiles {
			rel, err := filepath.Rel(root, filepath.Join(p.Dir, name))
			if err != nil {
				return nil, err
			}
			sources = append(sources, parsed[filepath.ToSlash(rel)])
		}
		checked, err := config.Check(p.ImportPath, fileSet, sources, nil)
		if err != nil {
			return nil, err
		}
		if imports.own[p.ImportPath] = checked; !isInternal(p.ImportPath) {
			public = append(public, checked)
		}
	}
	return public, nil
})

// sourceFirst imports the packages of the module that are checked already, and others from export data.
type sourceFirst struct {
	own      map[string]*types.Package
	compiled types.Importer
}

func (s *sourceFirst) Import(path string) (*types.Package, error) {
	if p := s.own[path]; p != nil {
		return p, nil
	}
	return s.compiled.Import(path)
}

// publicPackages returns the types of the packages that other modules can import.
func publicPackages(t *testing.T) []*types.Package {
	t.Helper()
	public, err := checkTypes()
	if err != nil {
		t.Fatal(err)
	}
	if len(public) < 30 {
		t.Fatalf("%d public packages were found", len(public))
	}
	return public
}

func isInternal(path string) bool { return slices.Contains(strings.Split(path, "/"), "internal") }
