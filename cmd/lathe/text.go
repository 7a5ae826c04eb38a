package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/internal/text"
)

func count(n int, noun string) string {
	return text.Plural(n, noun)
}

func bytesText(n int) string {
	switch {
	case n < 10_000:
		return fmt.Sprintf("%d B", n)
	case n < 10<<20:
		return fmt.Sprintf("%d KiB", n>>10)
	default:
		return fmt.Sprintf("%d MiB", n>>20)
	}
}

func took(ms int64) string {
	switch {
	case ms <= 0:
		return "under 1 ms"
	case ms < 10_000:
		return fmt.Sprintf("%d ms", ms)
	default:
		return strconv.FormatFloat(float64(ms)/1000, 'f', 1, 64) + " s"
	}
}

// printable escapes characters that could control a terminal or change the order of its text (control and direction characters, invalid
// UTF-8). Line ends and tabs are unchanged.
func printable(s string) string {
	return text.Escape(s, func(r rune) bool {
		return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
	})
}

// quoteLines writes the text of another program, with a mark before each line.
func quoteLines(w io.Writer, s string) {
	for line := range strings.SplitSeq(printable(s), "\n") {
		fmt.Fprintf(w, "  | %s\n", line)
	}
}

// visible applies [approval.Visible] to each line, for text on which an approver or a user decides.
func visible(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = approval.Visible(lines[i])
	}
	return strings.Join(lines, "\n")
}
