package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

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

// TestBlocksAreTheFilesAndCommandsOfAPage checks what the follower reads in a page.
func TestBlocksAreTheFilesAndCommandsOfAPage(t *testing.T) {
	t.Parallel()
	found := blocks("`a.yaml`:\n\n```yaml a.yaml\nx: 1\n```\n\ntext\n\n```console\n$ one \\\n  two\nanswer\n\n$ three &\n```\n\n```\nother\n```\n")
	if len(found) != 3 || found[0].file != "a.yaml" || found[0].body != "x: 1\n" || found[1].before != "\n\ntext\n" {
		t.Fatalf("%+v", found)
	}
	want := []command{{line: "one \\\n  two", answer: "answer\n"}, {line: "three &"}}
	if got := found[1].commands(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
