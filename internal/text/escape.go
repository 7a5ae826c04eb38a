package text

import (
	"fmt"
	"strings"
)

// Escape replaces each character for which escaped returns true by its escape: \u and four hexadecimal digits, or \U and
// eight. Bytes that are not UTF-8 first become U+FFFD.
func Escape(s string, escaped func(rune) bool) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if !strings.ContainsFunc(s, escaped) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case !escaped(r):
			b.WriteRune(r)
		case r <= 0xFFFF:
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			fmt.Fprintf(&b, "\\U%08x", r)
		}
	}
	return b.String()
}

// IsBlank reports whether r is invisible although Unicode classes it as a letter, mark or symbol: fillers of alphabets, the empty Braille
// pattern, joiners and variation selectors.
func IsBlank(r rune) bool {
	switch r {
	case 0x115F, 0x1160, 0x3164, 0xFFA0, 0x2800, 0x034F, 0x17B4, 0x17B5:
		return true
	}
	return r >= 0xFE00 && r <= 0xFE0F || r >= 0xE0100 && r <= 0xE01EF
}
