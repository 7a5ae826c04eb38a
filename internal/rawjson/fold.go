package rawjson

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// HasFoldedNames reports whether some object in b, at any depth, has two names that are equal under
// Unicode simple case folding: readers that ignore case, such as Go's encoding/json, take such
// names for one. b must be a text that [Check] accepts; escapes in names are decoded.
//
// It takes time linear in b, and allocates nothing for objects of up to 32 names without escapes
// as long as the objects that are open at once have no more than 64.
func HasFoldedNames(b []byte) bool {
	var f folder
	_, found := f.value(b, SkipSpace(b, 0))
	return found
}

// AppendFold appends name with each rune replaced by the smallest one that it folds to. Two names
// are equal under simple case folding exactly if AppendFold appends the same for both.
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

// foldRune returns the smallest rune that the first rune of name folds to, and its size in name.
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

// A folder walks a text once and compares the names of each object.
type folder struct {
	names []byte   // names of the open objects that had escapes, decoded
	keys  [64]span // names of the open objects that have few, innermost last; see checker
	n     int      // of keys in use
}

// value walks the value at b[i] and returns its end, and whether it has names that fold together.
func (f *folder) value(b []byte, i int) (end int, found bool) {
	switch {
	case i >= len(b):
		return len(b), false
	case b[i] == '{':
		return f.object(b, i)
	case b[i] == '[':
		for i = SkipSpace(b, i+1); i < len(b) && b[i] != ']'; {
			start := i
			if i, found = f.value(b, i); found {
				return i, true
			}
			if i = SkipSpace(b, i); i < len(b) && b[i] == ',' {
				i = SkipSpace(b, i+1)
			}
			if i == start {
				return len(b), false // not a text that Check accepts
			}
		}
		return min(i+1, len(b)), false
	}
	return skip(b, i), false
}

func (f *folder) object(b []byte, i int) (end int, found bool) {
	set := foldedSet{base: f.n, text: len(f.names)}
	for i = SkipSpace(b, i+1); i < len(b) && b[i] == '"'; {
		end = skipString(b, i)
		if !set.add(f, b, i, end) {
			return end, true
		}
		i = SkipSpace(b, end) // the colon
		i = SkipSpace(b, min(i+1, len(b)))
		if i, found = f.value(b, i); found {
			return i, true
		}
		if i = SkipSpace(b, i); i < len(b) && b[i] == ',' {
			i = SkipSpace(b, i+1)
		}
	}
	f.n, f.names = set.base, f.names[:set.text]
	return min(i+1, len(b)), false
}

func (f *folder) bytes(b []byte, s span) []byte {
	if s.start < 0 {
		return f.names[^s.start:s.end]
	}
	return b[s.start:s.end]
}

// A foldedSet holds the names of one object: few in folder.keys from base on, many in a map, folded.
type foldedSet struct {
	base, text int    // lengths of folder.keys and folder.names before the object
	seen       uint64 // a bit for each sum of a name, so that most names are compared with none
	many       map[string]struct{}
}

// add adds the name with the literal b[start:end]. It returns false if a name equal to it under
// folding is in the set.
func (s *foldedSet) add(f *folder, b []byte, start, end int) bool {
	key := span{start + 1, max(end-1, start+1)}
	if bytes.IndexByte(b[key.start:key.end], '\\') >= 0 {
		n := len(f.names)
		f.names, _ = unquote(f.names, b[start:end], keepSurrogates)
		key = span{^n, len(f.names)}
	}
	name := f.bytes(b, key)
	if s.many != nil {
		return s.addMany(name)
	}
	bit := uint64(1) << (foldedSum(name) & 63)
	if s.seen&bit != 0 {
		for _, k := range f.keys[s.base:f.n] {
			if bytes.EqualFold(f.bytes(b, k), name) {
				return false
			}
		}
	}
	s.seen |= bit
	if f.n-s.base < fewKeys && f.n < len(f.keys) {
		f.keys[f.n] = key
		f.n++
		return true
	}
	s.many = make(map[string]struct{}, 2*(f.n-s.base))
	for _, k := range f.keys[s.base:f.n] {
		s.addMany(f.bytes(b, k))
	}
	f.n = s.base
	return s.addMany(name)
}

func (s *foldedSet) addMany(name []byte) bool {
	n := len(s.many)
	s.many[string(AppendFold(nil, name))] = struct{}{}
	return len(s.many) > n
}

// foldedSum tells most of the names of one small object apart, and is the same for names that are
// equal under folding.
func foldedSum(name []byte) uint {
	var h uint
	for len(name) > 0 {
		r, n := foldRune(name)
		h = h*31 + uint(r)
		name = name[n:]
	}
	return h ^ h>>7
}
