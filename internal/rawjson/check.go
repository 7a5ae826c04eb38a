package rawjson

import "unicode/utf8"

// Check returns nil if and only if b is exactly one JSON value according to RFC 8259, surrounded by at most white space, that all parsers
// interpret in the same way: it is valid UTF-8 without byte order mark, no object has two keys that are equal after unescaping, and no string
// has a lone surrogate. Numbers may have any size. A zero lim means the default limits. The error is a *[SyntaxError].
func Check(b []byte, lim Limits) error { return check(b, lim, checkAll) }

// checkLoose is Check without the rules on repeated keys and lone surrogates, with the default limits.
func checkLoose(b []byte) error { return check(b, Limits{}, checkText) }

func check(b []byte, lim Limits, rules rules) error {
	c := checker{lim: lim.orDefault(), rules: rules, keys: new([64][]byte)}
	i, kind := c.value(b, 0)
	if kind == "" {
		if i = SkipSpace(b, i); i < len(b) {
			kind = KindTrailing
		}
	}
	if kind != "" {
		return &SyntaxError{Offset: i, Kind: kind}
	}
	return nil
}

// rules select what a checker checks.
type rules uint8

const (
	checkGrammar rules = iota // the grammar alone
	checkText                 // also UTF-8, the depth and the number of keys
	checkAll                  // also lone surrogates and repeated keys
)

// fewKeys is the number of keys of an object above which duplicates are found with a map.
const fewKeys = 32

// A checker checks a value in one pass.
type checker struct {
	lim   Limits
	rules rules
	keys  *[64][]byte // keys of the open objects that have few keys, innermost object last; nil if only the grammar is checked
	n     int         // number of elements of keys in use
}

// An object is what the checker knows of a JSON object whose end was not read.
type object struct {
	count int // number of keys
	names nameSet
}

// value checks the value at b[i], which white space may precede. It returns its end, or the offset and the kind of an error.
//
// It reads nested values without recursion. Each round of the outer loop reads the beginning of a value: an opening bracket, with the key of
// its first member, or a whole scalar or empty value. The inner loop then reads what follows a complete value: closing brackets, up to a
// comma.
func (c *checker) value(b []byte, i int) (at int, kind string) {
	if i = SkipSpace(b, i); i >= len(b) {
		return i, KindEmpty
	}
	var shallow [64]byte
	var few [16]object
	open, objects := shallow[:0], few[:0] // the brackets of the values whose end was not read; of the objects, their keys
	for {
		if i = SkipSpace(b, i); i >= len(b) {
			return i, KindEnd
		}
		switch bracket := b[i]; bracket {
		case '{', '[':
			if c.rules > checkGrammar && len(open) >= c.lim.MaxDepth {
				return i, KindDeep
			}
			i = SkipSpace(b, i+1)
			if i < len(b) && b[i] == bracket+2 { // ']' and '}' are two above '[' and '{'
				i++
				break
			}
			open = append(open, bracket)
			if bracket == '{' {
				objects = c.begin(objects)
				if i, kind = c.name(b, i, &objects[len(objects)-1]); kind != "" {
					return i, kind
				}
			}
			continue
		case '"':
			i, _, kind = c.rules.string(b, i)
		default:
			i, kind = scanScalar(b, i)
		}
		for comma := false; kind == "" && !comma; {
			if len(open) == 0 {
				return i, ""
			}
			if i = SkipSpace(b, i); i >= len(b) {
				return i, KindEnd
			}
			top := open[len(open)-1]
			switch b[i] {
			case ',':
				i, comma = i+1, true
				if top == '{' {
					i, kind = c.name(b, SkipSpace(b, i), &objects[len(objects)-1])
				}
			case top + 2:
				objects = c.end(top, objects)
				open = open[:len(open)-1]
				i++
			default:
				kind = KindCharacter
			}
		}
		if kind != "" {
			return i, kind
		}
	}
}

// begin adds an object to those that are open. Without rules about keys, one stands for all.
func (c *checker) begin(objects []object) []object {
	if c.rules == checkGrammar && len(objects) > 0 {
		return objects
	}
	return append(objects, object{names: nameSet{base: c.n}})
}

// end removes the innermost object if the value that ends is one.
func (c *checker) end(bracket byte, objects []object) []object {
	if c.rules == checkGrammar || bracket != '{' {
		return objects
	}
	n := len(objects) - 1
	c.n = objects[n].names.base
	return objects[:n]
}

// name checks the key of a member of o, and its colon.
func (c *checker) name(b []byte, i int, o *object) (at int, kind string) {
	if i >= len(b) {
		return i, KindEnd
	}
	if b[i] != '"' {
		return i, KindCharacter
	}
	end, escaped, kind := c.rules.string(b, i)
	if kind != "" {
		return end, kind
	}
	if c.rules > checkGrammar {
		if o.count++; o.count > c.lim.MaxKeys {
			return i, KindKeys
		}
		key := b[i+1 : end-1]
		if escaped && c.rules == checkAll {
			key, _ = unquote(nil, b[i:end], keepSurrogates)
		}
		if c.rules == checkAll && !o.names.add(c, key) {
			return i, KindDuplicate
		}
	}
	if i = SkipSpace(b, end); i >= len(b) {
		return i, KindEnd
	}
	if b[i] != ':' {
		return i, KindCharacter
	}
	return i + 1, ""
}

// A nameSet has the keys of one object: in checker.keys from base on or, if there are many, in a map.
type nameSet struct {
	base int // index in checker.keys of the first key of the object
	many map[string]bool
}

// add adds a key. It returns false if the set already has the key.
func (s *nameSet) add(c *checker, key []byte) bool {
	if s.many == nil {
		for _, k := range c.keys[s.base:c.n] {
			if string(k) == string(key) {
				return false
			}
		}
		if c.n-s.base < fewKeys && c.n < len(c.keys) {
			c.keys[c.n] = key
			c.n++
			return true
		}
		s.many = map[string]bool{}
		for _, k := range c.keys[s.base:c.n] {
			s.many[string(k)] = true
		}
		c.n = s.base
	}
	n := len(s.many)
	s.many[string(key)] = true
	return len(s.many) > n
}

// string checks the string that begins at b[i]. It returns the end of the string, or the offset and the kind of an error, and whether the
// string has escapes.
func (r rules) string(b []byte, i int) (at int, escaped bool, kind string) {
	i++
	start, ascii := i, true
	for {
		end, plain := plainEnd(b, i)
		i, ascii = end, ascii && plain
		switch {
		case i >= len(b):
			return i, false, KindEnd
		case b[i] == '"':
			if r > checkGrammar && !ascii && !utf8.Valid(b[start:i]) {
				return start + validPrefix(b[start:i]), false, KindUTF8
			}
			return i + 1, escaped, ""
		case b[i] != '\\':
			return i, false, KindControl
		}
		escaped = true
		next, kind := scanEscape(b, i)
		if kind == "" && r == checkAll {
			next, kind = pairEscape(b, i, next)
		}
		if kind != "" {
			return next, false, kind
		}
		i = next
	}
}

// pairEscape returns the end of the valid escape b[i:end], or, if it is the first half of a surrogate pair, the end of the second half.
// kind is not "" if a half is missing.
func pairEscape(b []byte, i, end int) (at int, kind string) {
	if b[i+1] != 'u' {
		return end, ""
	}
	switch u := unit(b[i+2:]); {
	case isLow(u):
		return i, KindSurrogate
	case !isHigh(u):
		return end, ""
	}
	if len(b)-end < 6 || b[end] != '\\' || b[end+1] != 'u' {
		return i, KindSurrogate
	}
	last, kind := scanEscape(b, end)
	if kind != "" {
		return last, kind
	}
	if !isLow(unit(b[end+2:])) {
		return i, KindSurrogate
	}
	return last, ""
}

// validPrefix returns the length of the valid UTF-8 at the start of b.
func validPrefix(b []byte) int {
	i := 0
	for i < len(b) {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		i += n
	}
	return i
}
