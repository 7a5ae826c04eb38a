package eval

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// oneLine makes text from outside fit for a line of a terminal: what is not printable becomes a blank.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// writeTrimmed writes lines without the blanks at their ends.
func writeTrimmed(w io.Writer, text []byte) error {
	for line := range bytes.Lines(text) {
		if _, err := fmt.Fprintf(w, "%s\n", bytes.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}
