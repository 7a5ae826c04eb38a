// Package text prepares text for display: it cuts between characters, joins lines, and escapes invisible characters. It also finds the
// known word that is nearest to a misspelt one.
package text

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Cut returns the longest prefix of s that has at most n bytes and does not end within a character. Each byte that is not part of a UTF-8
// character counts as a character; an incomplete character at the end of s is not removed. n must not be negative.
func Cut[T ~string | ~[]byte](s T, n int) T {
	if len(s) <= n {
		return s
	}
	start := n // the beginning of the character that contains s[n]
	for start > max(0, n-utf8.UTFMax+1) && !utf8.RuneStart(s[start]) {
		start--
	}
	character := string(s[start:min(len(s), start+utf8.UTFMax)])
	_, size := utf8.DecodeRuneInString(character)
	if utf8.RuneStart(s[start]) && (start+size > n || !utf8.FullRuneInString(character)) {
		return s[:start]
	}
	return s[:n]
}

// Clip returns s if it is at most n bytes long, and else Cut(s, n) followed by "…".
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return Cut(s, n) + "…"
}

// Excerpt returns s if it is at most n bytes long, and else Cut(s, n) followed by the number of bytes that are left out.
func Excerpt(s string, n int) string {
	head := Cut(s, n)
	if head == s {
		return s
	}
	return fmt.Sprintf("%s … %d bytes more", head, len(s)-len(head))
}

// Plural returns n and the noun, with an s unless n is 1: "1 call", "3 calls".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// FirstSentence returns the first sentence of s: up to a period followed by a space, or to the end of the first line. White space around s
// is removed.
func FirstSentence(s string) string {
	s = strings.TrimSpace(s)
	if i := strings.IndexAny(s, "\r\n"); i >= 0 {
		s = s[:i]
	}
	if i := strings.Index(s, ". "); i >= 0 {
		s = s[:i+1]
	}
	return s
}
