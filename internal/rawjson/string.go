package rawjson

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// AppendUnquote appends the decoded text of the JSON string literal quoted, which includes the quotes. If quoted is not exactly one
// literal, has a lone surrogate, or is not valid UTF-8, it returns dst unchanged and a *[SyntaxError].
func AppendUnquote(dst, quoted []byte) ([]byte, error) {
	if at, kind := checkLiteral(quoted); kind != "" {
		return dst, &SyntaxError{Offset: at, Kind: kind}
	}
	return AppendUnquoteLossy(dst, quoted), nil
}

// checkLiteral returns the offset and the kind of an error if q is not exactly one valid literal.
func checkLiteral(q []byte) (at int, kind string) {
	switch {
	case len(q) == 0:
		return 0, KindEmpty
	case q[0] != '"':
		return 0, KindCharacter
	}
	at, _, kind = checkAll.string(q, 0)
	if kind == "" && at < len(q) {
		kind = KindTrailing
	}
	return at, kind
}

// AppendUnquoteLossy does the same as [AppendUnquote] for literals that cannot be refused: lone surrogates, invalid escapes and bytes that
// are not UTF-8 each become U+FFFD; control characters and missing quotes are accepted.
func AppendUnquoteLossy(dst, quoted []byte) []byte {
	return unquote(dst, quoted, func(dst []byte, _ rune) []byte { return utf8.AppendRune(dst, utf8.RuneError) })
}

// Text returns the decoded text of a JSON string, as [AppendUnquoteLossy] does, or "" for any other value.
func Text(raw []byte) string {
	if Kind(raw) != '"' {
		return ""
	}
	if end, ascii := plainEnd(raw, 1); ascii && end == len(raw)-1 && raw[end] == '"' {
		return string(raw[1:end])
	}
	return textOf(AppendUnquoteLossy(make([]byte, 0, len(raw)), raw))
}

// CompactText returns the result of [AppendCompact] as a string.
func CompactText(raw []byte) string { return textOf(AppendCompact(make([]byte, 0, len(raw)), raw)) }

// textOf returns b as a string. It shares the memory of b, which must not be used afterwards, or copies b if b uses less than three
// quarters of its memory.
func textOf(b []byte) string {
	if len(b) < cap(b)-cap(b)/4 {
		return string(b)
	}
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// unquote appends the decoded text of the literal q, as [AppendUnquoteLossy] does. lone appends a lone surrogate.
func unquote(dst, q []byte, lone func(dst []byte, unit rune) []byte) []byte {
	q = bytes.TrimPrefix(q, []byte{'"'})
	for {
		end, ascii := plainEnd(q, 0)
		if ascii || utf8.Valid(q[:end]) {
			dst = append(dst, q[:end]...)
		} else {
			dst = appendValid(dst, q[:end])
		}
		q = q[end:]
		switch {
		case len(q) == 0, string(q) == `"`:
			return dst
		case q[0] == '\\':
			var n int
			dst, n = unescape(dst, q, lone)
			q = q[n:]
		default: // a control character, or a quote that is not the last byte
			dst, q = append(dst, q[0]), q[1:]
		}
	}
}

// unescape appends the character of the escape at the start of q. n is its length; of an invalid escape only the backslash is read.
func unescape(dst, q []byte, lone func(dst []byte, unit rune) []byte) (out []byte, n int) {
	if len(q) > 1 && simpleEscapes[q[1]] != 0 {
		return append(dst, simpleEscapes[q[1]]), 2
	}
	n, kind := scanEscape(q, 0)
	if kind != "" {
		return utf8.AppendRune(dst, utf8.RuneError), 1
	}
	paired, kind := pairEscape(q, 0, n)
	if kind != "" {
		return lone(dst, unit(q[2:])), n
	}
	return utf8.AppendRune(dst, codePoint(q[:paired])), paired
}

// simpleEscapes maps the letter after a backslash to the character, for all escapes except \u.
var simpleEscapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// codePoint returns the character of one \u escape or of a surrogate pair.
func codePoint(esc []byte) rune {
	r := unit(esc[2:])
	if len(esc) > 6 {
		r = utf16.DecodeRune(r, unit(esc[8:]))
	}
	return r
}

// appendSurrogate appends a lone surrogate in three bytes, as UTF-8 would encode it.
func appendSurrogate(dst []byte, r rune) []byte {
	return append(dst, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
}

// appendValid appends b and replaces each byte that is not UTF-8 by U+FFFD.
func appendValid(dst, b []byte) []byte {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		dst = utf8.AppendRune(dst, r)
		b = b[n:]
	}
	return dst
}

// unit returns the UTF-16 unit that four hexadecimal digits represent.
func unit(hex []byte) rune {
	return rune(unhex(hex[0])<<12 | unhex(hex[1])<<8 | unhex(hex[2])<<4 | unhex(hex[3]))
}

func isHigh(u rune) bool { return u&^0x3ff == 0xd800 }
func isLow(u rune) bool  { return u&^0x3ff == 0xdc00 }

const hexDigits = "0123456789abcdef"

// AppendQuote appends s as a JSON string literal, as ECMAScript's JSON.stringify writes it: only the quote, the backslash and control
// characters are escaped, in their shortest form or as \u00xx in lower case. Bytes that are not UTF-8 become U+FFFD.
func AppendQuote(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; ; {
		end, ascii := plainEnd(s, i)
		if ascii || utf8.ValidString(s[i:end]) {
			dst = append(dst, s[i:end]...)
		} else {
			for _, r := range s[i:end] {
				dst = utf8.AppendRune(dst, r)
			}
		}
		if end == len(s) {
			return append(dst, '"')
		}
		dst = appendEscape(dst, s[end])
		i = end + 1
	}
}

// appendEscape appends the escape of an ASCII character that must be escaped.
func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}
