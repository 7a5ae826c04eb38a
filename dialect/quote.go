package dialect

import (
	"math/bits"
	"unicode/utf8"
)

// escapes are the bytes that a JSON string cannot hold, as it holds them.
var escapes = func() (e [256]string) {
	const hex = "0123456789abcdef"
	for c := range 0x20 {
		e[c] = `\u00` + string(hex[c>>4]) + string(hex[c&15])
	}
	e['\b'], e['\t'], e['\n'], e['\f'], e['\r'] = `\b`, `\t`, `\n`, `\f`, `\r`
	e['"'], e['\\'] = `\"`, `\\`
	return e
}()

// emitUTF8 says s with U+FFFD for each byte that is not UTF-8.
func emitUTF8(emit func(string), s string) {
	if isASCII(s) || utf8.ValidString(s) {
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

// plainRunTo is plainRun that stops at the byte quote too.
func plainRunTo(s string, quote byte) int {
	if quote == '"' {
		return plainRun(s)
	}
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	q := ones * uint64(quote)
	i := 0
	for ; i+8 <= len(s); i += 8 {
		w := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
			uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
		if stop := stops(w) | ((w^q)-ones)&^(w^q)&tops; stop != 0 {
			return i + bits.TrailingZeros64(stop)/8
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c == '"' || c == '\\' || c < 0x20 || c == quote {
			break
		}
	}
	return i
}
