package rawjson

import "unicode/utf8"

// Check returns nil if and only if b is exactly one JSON value according to RFC 8259, surrounded by at most white space, that all parsers
// interpret in the same way: it is valid UTF-8 without byte order mark, no object has two keys that are equal after unescaping, and no string
// has a lone surrogate. Numbers may have any size. A zero lim means the default limits. The error is a *[SyntaxError].
func Check(b []byte, lim Limits) error {
	c := checker{lim: lim.orDefault()}
	if !c.run(b) {
		return &SyntaxError{Offset: c.at, Kind: c.kind}
	}
	return nil
}

// checkLoose is Check without the rules on repeated keys and lone surrogates.
func checkLoose(b []byte) error {
	c := checker{lim: Limits{}.orDefault(), loose: true}
	if !c.run(b) {
		return &SyntaxError{Offset: c.at, Kind: c.kind}
	}
	return nil
}

// fewKeys is the number of keys of an object above which duplicates are found with a map.
const fewKeys = 32

// A checker checks a text in one pass.
type checker struct {
	lim   Limits
	loose bool
	keys  [64][]byte // keys of the open objects that have few keys, innermost object last
	n     int        // number of elements of keys in use
	at    int        // offset of the error
	kind  string     // kind of the error
}

func (c *checker) run(b []byte) bool {
	i := SkipSpace(b, 0)
	if i == len(b) {
		c.fail(i, KindEmpty)
		return false
	}
	if i = c.value(b, i, 0); i < 0 {
		return false
	}
	if i = SkipSpace(b, i); i < len(b) {
		c.fail(i, KindTrailing)
		return false
	}
	return true
}

func (c *checker) fail(at int, kind string) int {
	c.at, c.kind = at, kind
	return -1
}

// value checks the value at b[i] and returns its end, or -1 on error. depth is the number of enclosing containers.
func (c *checker) value(b []byte, i, depth int) int {
	if i >= len(b) {
		return c.fail(i, KindEnd)
	}
	switch b[i] {
	case '"':
		end, _ := c.str(b, i)
		return end
	case '{':
		return c.object(b, i, depth+1)
	case '[':
		return c.array(b, i, depth+1)
	}
	end, kind := scanScalar(b, i)
	if kind != "" {
		return c.fail(end, kind)
	}
	return end
}

func (c *checker) array(b []byte, i, depth int) int {
	if depth > c.lim.MaxDepth {
		return c.fail(i, KindDeep)
	}
	i = SkipSpace(b, i+1)
	if i < len(b) && b[i] == ']' {
		return i + 1
	}
	for {
		if i = c.value(b, i, depth); i < 0 {
			return i
		}
		i = SkipSpace(b, i)
		if i >= len(b) {
			return c.fail(i, KindEnd)
		}
		switch b[i] {
		case ',':
			i = SkipSpace(b, i+1)
		case ']':
			return i + 1
		default:
			return c.fail(i, KindCharacter)
		}
	}
}

func (c *checker) object(b []byte, i, depth int) int {
	if depth > c.lim.MaxDepth {
		return c.fail(i, KindDeep)
	}
	i = SkipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1
	}
	names := nameSet{base: c.n}
	for n := 1; ; n++ {
		if i >= len(b) {
			return c.fail(i, KindEnd)
		}
		if b[i] != '"' {
			return c.fail(i, KindCharacter)
		}
		end, escaped := c.str(b, i)
		if end < 0 {
			return end
		}
		if n > c.lim.MaxKeys {
			return c.fail(i, KindKeys)
		}
		key := b[i+1 : end-1]
		if escaped {
			key, _ = unquote(nil, b[i:end], keepSurrogates)
		}
		if !c.loose && !names.add(c, key) {
			return c.fail(i, KindDuplicate)
		}
		end, kind := scanColon(b, end)
		if kind != "" {
			return c.fail(end, kind)
		}
		if i = c.value(b, SkipSpace(b, end), depth); i < 0 {
			return i
		}
		i = SkipSpace(b, i)
		if i >= len(b) {
			return c.fail(i, KindEnd)
		}
		switch b[i] {
		case ',':
			i = SkipSpace(b, i+1)
		case '}':
			c.n = names.base
			return i + 1
		default:
			return c.fail(i, KindCharacter)
		}
	}
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

// str checks the string that begins at b[i]. It returns the end of the string, or -1 on error, and whether the string has escapes.
func (c *checker) str(b []byte, i int) (end int, escaped bool) {
	start, ascii := i+1, true
	for i++; ; {
		end, plain := plainEnd(b, i)
		ascii = ascii && plain
		if end >= len(b) {
			return c.fail(end, KindEnd), false
		}
		i = end
		if b[i] == '"' {
			break
		}
		if b[i] != '\\' {
			return c.fail(i, KindControl), false
		}
		escaped = true
		next, kind := scanEscape(b, i)
		if kind == "" && !c.loose {
			next, kind = pairEscape(b, i, next)
		}
		if kind != "" {
			return c.fail(next, kind), false
		}
		i = next
	}
	if !ascii && !utf8.Valid(b[start:i]) {
		return c.fail(start+validPrefix(b[start:i]), KindUTF8), false
	}
	return i + 1, escaped
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
