package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A program is one implementation of the task.
type program struct {
	name    string
	folder  string
	library string // module
}

var programs = []program{
	{"Lathe", "lathe", "github.com/lathe-run/lathe"},
	{"Genkit", "genkit", "github.com/firebase/genkit/go"},
	{"ADK", "adk", "google.golang.org/adk/v2"},
	{"eino", "eino", "github.com/cloudwego/eino"},
	{"openai-go", "openaigo", "github.com/openai/openai-go/v3"},
}

// ours begins the modules of this comparison, which are not counted.
const ours = "github.com/lathe-run/lathe/bench/"

// A size is what a program costs.
type size struct {
	Lines   int   `json:"lines"`   // of its own code, without comments and blank lines
	Modules int   `json:"modules"` // that are linked
	Bytes   int64 `json:"bytes"`   // of the stripped binary
}

func (p program) binary(dir string) string { return filepath.Join(dir, p.folder) }

// measure builds the program, whose folder is in that of the sources, into dir.
func (p program) measure(ctx context.Context, sources, dir string) (report, error) {
	r := report{Program: p.name, Library: p.library}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", p.binary(dir), ".")
	cmd.Dir, cmd.Env = filepath.Join(sources, p.folder), append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return r, fmt.Errorf("go build: %w\n%s", err, out)
	}
	file, err := os.Stat(p.binary(dir))
	if err != nil {
		return r, err
	}
	info, err := buildinfo.ReadFile(p.binary(dir))
	if err != nil {
		return r, err
	}
	r.Bytes = file.Size()
	for _, m := range info.Deps {
		if !strings.HasPrefix(m.Path, ours) {
			r.Modules++
		}
		if m.Path == p.library && m.Replace == nil {
			r.Version = m.Version
		}
	}
	r.Lines, err = p.lines(sources)
	return r, err
}

// lines counts the lines of the program, and of package files if it needs that.
func (p program) lines(sources string) (int, error) {
	source, err := os.ReadFile(filepath.Join(sources, p.folder, "main.go"))
	if err != nil {
		return 0, err
	}
	n := lines(source)
	if bytes.Contains(source, []byte(ours+"frameworks/task/files")) {
		if source, err = os.ReadFile(filepath.Join(sources, "task", "files", "files.go")); err != nil {
			return 0, err
		}
		n += lines(source)
	}
	return n, nil
}

// lines counts the lines on which a token begins or ends.
func lines(source []byte) int {
	file := token.NewFileSet().AddFile("", -1, len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, 0)
	seen := map[int]bool{}
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return len(seen)
		}
		if tok == token.SEMICOLON && text == "\n" {
			continue
		}
		for line := file.Line(pos); line <= file.Line(pos)+strings.Count(text, "\n"); line++ {
			seen[line] = true
		}
	}
}
