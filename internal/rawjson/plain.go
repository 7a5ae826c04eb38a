package rawjson

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"unicode/utf8"
)

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
//
// Eight bytes are copied at a time, since the arguments of calls have an escape every few bytes.
func AppendSimple(dst, b []byte, i int) (out []byte, end int, ok bool) {
	n := len(dst)
	out = dst
	for {
		if cap(out)-n < 8 {
			out = slices.Grow(out[:n], 64)
		}
		if i+8 <= len(b) {
			x := binary.LittleEndian.Uint64(b[i:])
			quote, slash := x^(ones*'"'), x^(ones*'\\')
			stop := ((x - ones*' ') | (quote - ones) | (slash - ones) | x) & highs // also of what is not ASCII
			binary.LittleEndian.PutUint64(out[n:n+8], x)
			if stop == 0 {
				n, i = n+8, i+8
				continue
			}
			k := bits.TrailingZeros64(stop) >> 3
			n, i = n+k, i+k
		}
		if i == len(b) {
			return dst, 0, false
		}
		switch c := b[i]; {
		case c == '"':
			return out[:n], i + 1, true
		case c == '\\':
			if i+1 == len(b) {
				return dst, 0, false
			}
			if c = simpleEscapes[b[i+1]]; c == 0 {
				return dst, 0, false
			}
			out = append(out[:n], c)
			n, i = n+1, i+2
		case c < ' ':
			return dst, 0, false
		case c < utf8.RuneSelf:
			out = append(out[:n], c)
			n, i = n+1, i+1
		default:
			end, _ := plainEnd(b, i)
			if !utf8.Valid(b[i:end]) {
				return dst, 0, false
			}
			out = append(out[:n], b[i:end]...)
			n, i = len(out), end
		}
	}
}
