package rawjson

import (
	"bytes"
	"iter"
)

// A Known is a JSON string literal, quotes included, that texts are expected to contain again: its methods compare the strings of a text with it,
// and take those that are equal for read. They return what the functions of the same name do, in less time. It must be a literal for which
// [Scan] succeeds, or empty, and must not change while an iterator is used.
type Known []byte

// at reports whether the string that opens at b[i] is the literal. A literal has its closing quote and no other, so that its bytes are never the
// beginning of a longer string.
func (k Known) at(b []byte, i int) bool { return len(k) > 0 && bytes.HasPrefix(b[i:], k) }

// Scan is the function [Scan].
func (k Known) Scan(b []byte, i int) (end int, err error) {
	end, kind := scan(b, i, k)
	if kind != "" {
		return 0, &SyntaxError{Offset: end, Kind: kind}
	}
	return end, nil
}

// Members is the function [Members].
func (k Known) Members(obj []byte) iter.Seq2[[]byte, []byte] { return members(obj, nil, 0, k) }

// Elements is the function [Elements].
func (k Known) Elements(arr []byte) iter.Seq[[]byte] { return elements(arr, nil, 0, k) }

// Get is the function [Get].
func (k Known) Get(obj []byte, key string) (raw []byte, ok bool) {
	for name, v := range k.Members(obj) {
		if EqualKey(name, key) {
			return v, true
		}
	}
	return nil, false
}
