package rawjson

import (
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// A strictness is how unquote handles invalid text.
type strictness uint8

const (
	strict         strictness = iota // returns an error
	lossy                            // replaces it by U+FFFD, never returns an error
	keepSurrogates                   // encodes a lone surrogate in three bytes; otherwise as strict
)

// AppendUnquote appends the decoded text of the JSON string literal quoted, which includes the quotes. If quoted is not exactly one
// literal, has a lone surrogate, or is not valid UTF-8, it returns dst unchanged and a *[SyntaxError].
func AppendUnquote(dst, quoted []byte) ([]byte, error) {
	dst, err := unquote(dst, quoted, strict)
	if err != nil {
		return dst, err
	}
	return dst, nil
}

// AppendUnquoteLossy does the same as [AppendUnquote] for literals that cannot be refused: lone surrogates, invalid escapes and bytes that
// are not UTF-8 each become U+FFFD; control characters and missing quotes are accepted.
func AppendUnquoteLossy(dst, quoted []byte) []byte {
	dst, _ = unquote(dst, quoted, lossy)
	return dst
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

// unquote appends the decoded text of the literal q. Each round of its loop reads a run of plain bytes and then one quote, control character
// or escape.
func unquote(dst, q []byte, mode strictness) ([]byte, *SyntaxError) {
	fail := func(at int, kind string) ([]byte, *SyntaxError) {
		return dst, &SyntaxError{Offset: at, Kind: kind}
	}
	out, i := dst, 0
	switch {
	case len(q) > 0 && q[0] == '"':
		i = 1
	case mode == lossy:
	case len(q) == 0:
		return fail(0, KindEmpty)
	default:
		return fail(0, KindCharacter)
	}
	for {
		end, ascii := plainEnd(q, i)
		if ascii || mode != lossy && utf8.Valid(q[i:end]) {
			out = append(out, q[i:end]...)
		} else if mode == lossy {
			out = appendValid(out, q[i:end])
		} else {
			return fail(i+validPrefix(q[i:end]), KindUTF8)
		}
		if i = end; i >= len(q) {
			if mode == lossy {
				return out, nil
			}
			return fail(i, KindEnd)
		}
		switch {
		case q[i] == '"':
			if mode == lossy && i+1 < len(q) {
				out = append(out, '"')
				i++
				continue
			}
			if i+1 < len(q) {
				return fail(i+1, KindTrailing)
			}
			return out, nil
		case q[i] != '\\':
			if mode != lossy {
				return fail(i, KindControl)
			}
			out = append(out, q[i])
			i++
			continue
		}
		if i+1 < len(q) {
			if c := simpleEscapes[q[i+1]]; c != 0 {
				out = append(out, c)
				i += 2
				continue
			}
		}
		next, kind := scanEscape(q, i)
		if kind == "" {
			var paired int
			if paired, kind = pairEscape(q, i, next); kind == "" {
				out = utf8.AppendRune(out, codePoint(q[i:paired]))
				i = paired
				continue
			}
			// A first half without a second one is decoded alone, and the next escape separately.
			if mode == keepSurrogates {
				out = appendSurrogate(out, unit(q[i+2:]))
				i = next
				continue
			}
		}
		if mode != lossy {
			return fail(i, kind)
		}
		out = utf8.AppendRune(out, utf8.RuneError)
		if kind == KindSurrogate || kind == KindEscape && next != i {
			i += 6
		} else {
			i++ // skip only the backslash
		}
	}
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
