package text

import (
	"strings"
	"unicode"
)

// FirstLine returns s up to its first line end.
func FirstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// OneLine returns s for one line of a terminal: characters that are not printable, line ends among them, become blanks, and bytes
// that are not UTF-8 become U+FFFD.
func OneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
