package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// runDocument runs the commands of a document's console blocks, each in the folder of the script,
// and compares what they say with what the document shows. A command is a line that begins with
// "$ "; what follows up to the next is its answer, stdout and stderr as they come. In the answer …
// stands for any text within a line, and alone for any lines.
func runDocument(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: docs file")
	}
	text, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	ran := 0
	for _, block := range fenced(string(text), "console") {
		for _, step := range strings.Split("\n"+block, "\n$ ")[1:] {
			command, want, _ := strings.Cut(step, "\n")
			// What a command answers is shown whatever its exit code.
			_ = exitCodeOf(ts, ts.Exec("sh", "-c", "{ "+command+"\n} 2>&1"))
			got := ts.ReadFile("stdout")
			if !likeDocument(want).MatchString(strings.TrimRight(got, "\n")) {
				ts.Fatalf("%s shows for\n$ %s\n%s\n\nand the command says\n%s", args[0], command, want, got)
			}
			ran++
		}
	}
	if ran == 0 {
		ts.Fatalf("%s has no console block with a command", args[0])
	}
}

// fenced returns the bodies of the document's code blocks of one language.
func fenced(text, language string) []string {
	var blocks []string
	for {
		_, rest, ok := strings.Cut(text, "\n```"+language+"\n")
		if !ok {
			return blocks
		}
		body, after, ok := strings.Cut(rest, "\n```")
		if !ok {
			return blocks
		}
		blocks = append(blocks, body)
		text = after
	}
}

func likeDocument(want string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for i, line := range strings.Split(strings.TrimRight(want, "\n"), "\n") {
		if i > 0 {
			b.WriteString(`\n`)
		}
		if line == "…" {
			b.WriteString(`.*`)
			continue
		}
		fmt.Fprint(&b, strings.ReplaceAll(regexp.QuoteMeta(line), "…", `[^\n]*`))
	}
	b.WriteString(`\z`)
	return regexp.MustCompile(b.String())
}
