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
