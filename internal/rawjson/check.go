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
	i, kind := c.value(b, 0, 0)
	if kind == "" {
		if i = SkipSpace(b, i); i == len(b) {
			return nil
		}
		kind = KindTrailing
	}
	if SkipSpace(b, 0) == len(b) {
		kind = KindEmpty
	}
	return &SyntaxError{Offset: i, Kind: kind}
}

// rules select what a checker checks.
type rules uint8

const (
	checkGrammar rules = iota // the grammar alone, as Scan does
	checkText                 // also UTF-8, the depth and the number of keys
	checkAll                  // also lone surrogates and repeated keys
)

// fewKeys is the number of keys of an object above which duplicates are found with a map.
const fewKeys = 32

// A checker checks a value in one pass.
type checker struct {
	lim   Limits
	rules rules
	keys  *[64][]byte // keys of the open objects that have few keys, innermost object last; used by checkAll
	n     int         // number of elements of keys in use
}

// value checks the value at b[i], which white space may precede. depth is the number of arrays and objects around it. The result is the end
// of the value, or the offset and the kind of an error, as that of the other methods.
func (c *checker) value(b []byte, i, depth int) (at int, kind string) {
	if i = SkipSpace(b, i); i >= len(b) {
		return i, KindEnd
	}
	switch b[i] {
	case '"':
		at, _, kind = c.rules.string(b, i)
		return at, kind
	case '[':
		return c.array(b, i, depth+1)
	case '{':
		return c.object(b, i, depth+1)
	}
	return scanScalar(b, i)
}

func (c *checker) array(b []byte, i, depth int) (at int, kind string) {
	if depth > c.lim.MaxDepth {
		return i, KindDeep
	}
	i = SkipSpace(b, i+1)
	if i < len(b) && b[i] == ']' {
		return i + 1, ""
	}
	for closed := false; !closed; {
		if i, kind = c.value(b, i, depth); kind != "" {
			return i, kind
		}
		if i, closed, kind = scanSeparator(b, i, ']'); kind != "" {
			return i, kind
		}
	}
	return i, ""
}

func (c *checker) object(b []byte, i, depth int) (at int, kind string) {
	if depth > c.lim.MaxDepth {
		return i, KindDeep
	}
	i = SkipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1, ""
	}
	names := nameSet{base: c.n}
	for closed := false; !closed; {
		if i, kind = c.name(b, i, &names); kind != "" {
			return i, kind
		}
		if i, kind = c.value(b, i, depth); kind != "" {
			return i, kind
		}
		if i, closed, kind = scanSeparator(b, i, '}'); kind != "" {
			return i, kind
		}
	}
	c.n = names.base
	return i, ""
}

// name checks a key, which white space may precede, and its colon.
func (c *checker) name(b []byte, i int, names *nameSet) (at int, kind string) {
	if i = SkipSpace(b, i); i >= len(b) {
		return i, KindEnd
	}
	if b[i] != '"' {
		return i, KindCharacter
	}
	end, escaped, kind := c.rules.string(b, i)
	if kind != "" {
		return end, kind
	}
	if names.count++; names.count > c.lim.MaxKeys {
		return i, KindKeys
	}
	if c.rules == checkAll {
		key := b[i+1 : end-1]
		if escaped {
			key = unquote(nil, b[i:end], appendSurrogate)
		}
		if !names.add(c, key) {
			return i, KindDuplicate
		}
	}
	return scanColon(b, end)
}

// A nameSet has the keys of one object: in checker.keys from base on or, if there are many, in a map.
type nameSet struct {
	count int // number of keys
	base  int // index in checker.keys of the first key of the object
	many  map[string]bool
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
