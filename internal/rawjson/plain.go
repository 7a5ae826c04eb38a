package rawjson

import "unicode/utf8"

// PlainString returns the index behind the quote that ends the string whose text begins at b[i]. plain is false if the text has
// an escape, a control character or bytes that are not UTF-8, or does not end: end then means nothing.
func PlainString(b []byte, i int) (end int, plain bool) {
	end, ascii := plainEnd(b, i)
	if end >= len(b) || b[end] != '"' {
		return 0, false
	}
	return end + 1, ascii || utf8.Valid(b[i:end])
}

// AppendSimple appends the text of the string whose text begins at b[i], and returns the index behind the quote that ends it. ok is false if
// the string has an escape of more than one character, a control character or bytes that are not UTF-8, or does not end: the caller must
// then not use out and end.
func AppendSimple(dst, b []byte, i int) (out []byte, end int, ok bool) {
	for {
		end, ascii := plainEnd(b, i)
		if end+1 > len(b) || !ascii && !utf8.Valid(b[i:end]) {
			return dst, 0, false
		}
		dst = append(dst, b[i:end]...)
		if b[end] == '"' {
			return dst, end + 1, true
		}
		if b[end] != '\\' || end+1 == len(b) {
			return dst, 0, false
		}
		c := simpleEscapes[b[end+1]]
		if c == 0 {
			return dst, 0, false
		}
		dst = append(dst, c)
		i = end + 2
	}
}
