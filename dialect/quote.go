package dialect

import (
	"unicode/utf8"
)

// escapes maps each byte that a JSON string cannot contain to its escape; "" for all other bytes.
var escapes = func() (e [256]string) {
	const hex = "0123456789abcdef"
	for c := range 0x20 {
		e[c] = `\u00` + string(hex[c>>4]) + string(hex[c&15])
	}
	e['\b'], e['\t'], e['\n'], e['\f'], e['\r'] = `\b`, `\t`, `\n`, `\f`, `\r`
	e['"'], e['\\'] = `\"`, `\\`
	return e
}()

// emitUTF8 emits s, with U+FFFD instead of each byte that is not UTF-8.
func emitUTF8(emit func(string), s string) {
	if utf8.ValidString(s) {
		emit(s)
		return
	}
	from := 0
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			if from < i {
				emit(s[from:i])
			}
			emit("\uFFFD")
			from = i + 1
		}
		i += n
	}
	if from < len(s) {
		emit(s[from:])
	}
}

// plainRun returns the number of bytes at the beginning of s that are neither a double quote, a backslash nor a control character.
func plainRun(s string) int { return plainRunTo(s, '"') }

// plainRunTo is like plainRun, but also stops at the byte quote.
func plainRunTo(s string, quote byte) int {
	i := 0
	for i < len(s) && s[i] >= ' ' && s[i] != '"' && s[i] != '\\' && s[i] != quote {
		i++
	}
	return i
}
