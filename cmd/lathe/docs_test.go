package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

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
			if !likeDocument(want).MatchString(strings.TrimRight(got, "\n") + "\n") {
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

var columns = regexp.MustCompile(`  +`)

// likeDocument returns the pattern of the outputs that a document's text stands for. A line "…" stands for any number of
// lines, none included; "…" within a line stands for any text of that line. Two or more spaces stand for at least two, so that
// the widths of columns do not count.
func likeDocument(want string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for line := range strings.SplitSeq(strings.TrimRight(want, "\n"), "\n") {
		if line == "…" {
			b.WriteString(`(?:.*\n)?`)
			continue
		}
		pattern := strings.ReplaceAll(regexp.QuoteMeta(line), "…", `[^\n]*`)
		fmt.Fprint(&b, columns.ReplaceAllString(pattern, ` {2,}`), `\n`)
	}
	b.WriteString(`\z`)
	return regexp.MustCompile(b.String())
}

// TestDocumentLinesStandForOutputs checks what "…" and columns in a document match, and what they do not.
func TestDocumentLinesStandForOutputs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		document, output string
		want             bool
	}{
		{"a\n…\nb", "a\nb", true},
		{"a\n…\nb", "a\n1\n2\nb", true},
		{"…\nb", "b", true},
		{"a\n…", "a\n1", true},
		{"a …", "a 1\n2", false},
		{"NAME  EFFECT", "NAME      EFFECT", true},
		{"NAME  EFFECT", "NAME EFFECT", false},
		{"a", "a\nb", false},
		{"", "", true},
		{"", "a", false},
	} {
		if got := likeDocument(c.document).MatchString(c.output + "\n"); got != c.want {
			t.Errorf("%q and %q: %t, want %t", c.document, c.output, got, c.want)
		}
	}
}
