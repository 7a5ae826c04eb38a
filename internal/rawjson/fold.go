package rawjson

import (
	"unicode"
	"unicode/utf8"
)

// HasFoldedNames reports whether some object in b, at any depth, has two names that are equal under Unicode simple case folding. Parsers
// that ignore case, such as Go's encoding/json, treat such names as equal. b must pass [Check]; escapes in names are decoded.
func HasFoldedNames(b []byte) bool {
	seen := map[string]bool{}
	for key, value := range Members(b) {
		name := string(AppendFold(nil, []byte(Text(key))))
		if seen[name] || HasFoldedNames(value) {
			return true
		}
		seen[name] = true
	}
	for value := range Elements(b) {
		if HasFoldedNames(value) {
			return true
		}
	}
	return false
}

// AppendFold appends name with each rune replaced by the smallest rune that folds to the same. Two names are equal under simple case
// folding if and only if AppendFold appends the same bytes for both.
func AppendFold(dst, name []byte) []byte {
	for len(name) > 0 {
		r, n := foldRune(name)
		if r == utf8.RuneError && n == 1 {
			dst = append(dst, name[0])
		} else {
			dst = utf8.AppendRune(dst, r)
		}
		name = name[n:]
	}
	return dst
}

// foldRune returns the smallest rune that the first rune of name folds to, and the size of that first rune in name.
func foldRune(name []byte) (r rune, size int) {
	if c := name[0]; c < utf8.RuneSelf {
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		return rune(c), 1
	}
	first, size := utf8.DecodeRune(name)
	r = first
	for next := unicode.SimpleFold(first); next != first; next = unicode.SimpleFold(next) {
		r = min(r, next)
	}
	return r, size
}
