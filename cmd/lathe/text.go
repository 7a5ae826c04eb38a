package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
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

// printable replaces what could steer a terminal or turn the order of its text (control and
// direction characters, invalid UTF-8) by its escape. Line ends and tabs stay.
func printable(s string) string {
	return escapeRunes(s, func(r rune) bool {
		switch {
		case r == '\n' || r == '\t':
			return false
		case unicode.IsControl(r), r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069, r == 0x200E, r == 0x200F, r == 0x061C:
			return true
		}
		return false
	})
}

// visible also replaces what cannot be seen, for text that somebody decides by.
func visible(s string) string {
	return escapeRunes(s, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) })
}

func escapeRunes(s string, escape func(rune) bool) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if !strings.ContainsFunc(s, escape) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case !escape(r):
			b.WriteRune(r)
		case r <= 0xFFFF:
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			fmt.Fprintf(&b, "\\U%08x", r)
		}
	}
	return b.String()
}

// clip returns at most n bytes of s, and … where there are more.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}
