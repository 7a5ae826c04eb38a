package dialect

import "math/bits"

// maxJSONDepth bounds the nesting that a jsonScan follows.
const maxJSONDepth = 1024

// A jsonScan follows one JSON value (RFC 8259) that comes in pieces, byte by byte, and knows where
// it ends and where it breaks the grammar. It does not look at duplicate keys, surrogates or UTF-8.
// The zero value is ready.
type jsonScan struct {
	state  jsonState
	outer  int    // stop after each step at as many of the outermost levels, so that a caller can follow them
	key    bool   // the string being read is an object's key
	lax    bool   // takes line ends and tabs in strings, and a comma before a closing bracket: faults of one reading, which the runner mends
	lit    string // what is missing of true, false or null
	hex    int    // digits missing of a \u escape
	depth  int
	object [maxJSONDepth / 64]uint64 // one bit a level: object or array
}

type jsonState uint8

const (
	jsonValue    jsonState = iota // a value must come
	jsonFirstVal                  // a value or ]
	jsonFirstKey                  // a key or }
	jsonKey                       // a key must come
	jsonColon
	jsonAfter // a comma or the end of the object or array
	jsonString
	jsonEscape
	jsonHex
	jsonLiteral
	jsonMinus // number states: after the sign
	jsonZero
	jsonInt
	jsonPoint
	jsonFrac
	jsonExp
	jsonExpSign
	jsonExpInt
	jsonDone // the value is whole; nothing more is read
	jsonBad  // the grammar is broken at the byte that was not read
)

// inString reports whether the next byte belongs to a string.
func (j *jsonScan) inString() bool {
	return j.state == jsonString || j.state == jsonEscape || j.state == jsonHex
}

// whole reports whether the value would be whole if the text ended here.
func (j *jsonScan) whole() bool {
	switch j.state {
	case jsonDone:
		return true
	case jsonZero, jsonInt, jsonFrac, jsonExpInt:
		return j.depth == 0
	}
	return false
}

// scan reads the front of s and returns how much. It stops early when the value is whole or broken.
func (j *jsonScan) scan(s string) int {
	for i := 0; i < len(s); {
		c, depth := s[i], j.depth
		switch j.state {
		case jsonString:
			i += plainRun(s[i:])
			if i == len(s) {
				return i
			}
			switch s[i] {
			case '"':
				if j.key {
					j.state = jsonColon
				} else {
					j.valueEnd()
				}
			case '\\':
				if i+1 < len(s) && shortEscape(s[i+1]) {
					i += 2
					continue
				}
				j.state = jsonEscape
			case '\n', '\r', '\t':
				if !j.lax {
					j.state = jsonBad
					return i
				}
			default:
				j.state = jsonBad
				return i
			}
			i++
		case jsonDone, jsonBad:
			return i
		default:
			if space(c) && j.spaced() || j.step(c) {
				i++
			}
		}
		if min(depth, j.depth) < j.outer {
			return i
		}
	}
	return len(s)
}

// spaced reports whether white space may stand here.
func (j *jsonScan) spaced() bool { return j.state <= jsonAfter }

func space(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// step takes one byte outside the plain part of a string; false: the byte was not read.
func (j *jsonScan) step(c byte) bool {
	switch j.state {
	case jsonFirstVal:
		if c == ']' {
			return j.closeLevel(false)
		}
		return j.value(c)
	case jsonValue:
		return j.value(c)
	case jsonFirstKey, jsonKey:
		if c == '"' {
			j.state, j.key = jsonString, true
			return true
		}
		if c == '}' && j.mayClose() {
			return j.closeLevel(true)
		}
	case jsonColon:
		if c == ':' {
			j.state = jsonValue
			return true
		}
	case jsonAfter:
		switch c {
		case ',':
			j.state = j.afterComma()
			return true
		case '}', ']':
			return j.closeLevel(c == '}')
		}
	case jsonEscape:
		if shortEscape(c) {
			j.state = jsonString
			return true
		}
		if c == 'u' {
			j.state, j.hex = jsonHex, 4
			return true
		}
	case jsonHex:
		if '0' <= c && c <= '9' || 'a' <= lower(c) && lower(c) <= 'f' {
			if j.hex--; j.hex == 0 {
				j.state = jsonString
			}
			return true
		}
	case jsonLiteral:
		if c == j.lit[0] {
			if j.lit = j.lit[1:]; j.lit == "" {
				j.valueEnd()
			}
			return true
		}
	default:
		return j.number(c)
	}
	j.state = jsonBad
	return false
}

func (j *jsonScan) value(c byte) bool {
	switch {
	case c == '{' || c == '[':
		if j.depth == maxJSONDepth {
			break
		}
		bit := uint64(1) << (j.depth % 64)
		if c == '{' {
			j.object[j.depth/64] |= bit
			j.state = jsonFirstKey
		} else {
			j.object[j.depth/64] &^= bit
			j.state = jsonFirstVal
		}
		j.depth++
		return true
	case c == '"':
		j.state, j.key = jsonString, false
		return true
	case c == 't':
		j.state, j.lit = jsonLiteral, "rue"
		return true
	case c == 'f':
		j.state, j.lit = jsonLiteral, "alse"
		return true
	case c == 'n':
		j.state, j.lit = jsonLiteral, "ull"
		return true
	case c == '-':
		j.state = jsonMinus
		return true
	case c == '0':
		j.state = jsonZero
		return true
	case '1' <= c && c <= '9':
		j.state = jsonInt
		return true
	}
	j.state = jsonBad
	return false
}

// number reads the next byte of a number. The byte that ends the number is not part of it and is read in the next state.
func (j *jsonScan) number(c byte) bool {
	digit := '0' <= c && c <= '9'
	next := jsonBad
	switch {
	case digit:
		switch j.state {
		case jsonMinus:
			next = jsonInt
			if c == '0' {
				next = jsonZero
			}
		case jsonInt:
			next = jsonInt
		case jsonPoint, jsonFrac:
			next = jsonFrac
		case jsonExp, jsonExpSign, jsonExpInt:
			next = jsonExpInt
		}
	case c == '.' && (j.state == jsonZero || j.state == jsonInt):
		next = jsonPoint
	case lower(c) == 'e' && (j.state == jsonZero || j.state == jsonInt || j.state == jsonFrac):
		next = jsonExp
	case (c == '+' || c == '-') && j.state == jsonExp:
		next = jsonExpSign
	case j.state == jsonZero || j.state == jsonInt || j.state == jsonFrac || j.state == jsonExpInt:
		j.valueEnd()
		return false
	}
	j.state = next
	return next != jsonBad
}

// mayClose reports whether the end of the object may stand in the place of a key.
func (j *jsonScan) mayClose() bool { return j.state == jsonFirstKey || j.lax }

func (j *jsonScan) afterComma() jsonState {
	switch {
	case j.inObject():
		return jsonKey
	case j.lax:
		return jsonFirstVal
	}
	return jsonValue
}

func (j *jsonScan) inObject() bool {
	return j.object[(j.depth-1)/64]&(1<<((j.depth-1)%64)) != 0
}

func (j *jsonScan) closeLevel(object bool) bool {
	if j.inObject() != object {
		j.state = jsonBad
		return false
	}
	j.depth--
	j.valueEnd()
	return true
}

func (j *jsonScan) valueEnd() {
	j.state = jsonAfter
	if j.depth == 0 {
		j.state = jsonDone
	}
}

func shortEscape(c byte) bool { return shortEscapes[c] }

// shortEscapes has the bytes that may follow a backslash, but for u.
var shortEscapes = [256]bool{'"': true, '\\': true, '/': true, 'b': true, 'f': true, 'n': true, 'r': true, 't': true}

// inString reports whether s, which follows the opening quote of a string, ends inside of that string and not in an escape. It
// may return false for such a text.
func inString(s string) bool { return inStringWithout(s, 0) }

// inStringWithout is inString for a text that does not contain stop, a byte that may not follow a backslash; for other texts it returns false. It reads eight bytes at a time, also
// behind an escape and at the end, where what is missing is taken for spaces.
func inStringWithout(s string, stop byte) bool {
	const ones, tops, spaces = 0x0101010101010101, 0x8080808080808080, 0x2020202020202020
	n, stopped := len(s), ones*uint64(stop)
	for i := 0; i < n; {
		var w uint64
		switch rest := n - i; {
		case rest >= 8:
			w = word(s[i : i+8])
		case n >= 8:
			w = word(s[n-8:n])>>(64-8*rest) | spaces<<(8*rest)
		default:
			w = spaces
			for k := n - 1; k >= i; k-- {
				w = w<<8 | uint64(s[k])
			}
		}
		v := w ^ stopped
		found := stops(w) | (v-ones)&^v&tops
		if found == 0 {
			i += 8
			continue
		}
		if i += bits.TrailingZeros64(found) / 8; s[i] != '\\' || i+1 == n || !shortEscape(s[i+1]) {
			return false
		}
		i += 2
	}
	return true
}

// word returns the eight bytes of s as a number, the first in the lowest bits.
func word(s string) uint64 {
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// plainRun returns how many bytes at the front of s are neither a quote, a backslash nor a control character.
func plainRun(s string) int {
	i := 0
	for ; i+8 <= len(s); i += 8 {
		b := s[i : i+8] // of known length: one load, no checks
		w := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		if stop := stops(w); stop != 0 {
			return i + bits.TrailingZeros64(stop)/8
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c == '"' || c == '\\' || c < 0x20 {
			break
		}
	}
	return i
}

// isASCII reports whether s is ASCII.
func isASCII(s string) bool {
	const tops = 0x8080808080808080
	i := 0
	for ; i+8 <= len(s); i += 8 {
		b := s[i : i+8]
		if (uint64(b[0])|uint64(b[1])<<8|uint64(b[2])<<16|uint64(b[3])<<24|
			uint64(b[4])<<32|uint64(b[5])<<40|uint64(b[6])<<48|uint64(b[7])<<56)&tops != 0 {
			return false
		}
	}
	for ; i < len(s); i++ {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// plainASCII reports whether s is ASCII without quotes, backslashes and control characters. An apostrophe is no quote.
func plainASCII(s string) bool {
	const tops = 0x8080808080808080
	i := 0
	for ; i+8 <= len(s); i += 8 {
		b := s[i : i+8]
		w := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		if stops(w)|w&tops != 0 {
			return false
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c == '"' || c == '\\' || c < 0x20 || c >= 0x80 {
			return false
		}
	}
	return true
}

// indexEither returns where in s, from i on, one of two bytes stands first; len(s) where neither does.
func indexEither(s string, i int, x, y byte) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	xs, ys := ones*uint64(x), ones*uint64(y)
	for ; i+8 <= len(s); i += 8 {
		b := s[i : i+8]
		w := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		v, w := w^xs, w^ys
		if found := ((v-ones)&^v | (w-ones)&^w) & tops; found != 0 { // above the first bit the subtractions may have borrowed
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(s); i++ {
		if s[i] == x || s[i] == y {
			return i
		}
	}
	return len(s)
}

// stops has the top bit set of the first byte of w that is a quote, a backslash or a control
// character, and of none before it. What it has above that says nothing: there the subtractions
// may have borrowed.
func stops(w uint64) uint64 {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	quote, slash := w^(ones*'"'), w^(ones*'\\')
	return ((quote-ones)&^quote | (slash-ones)&^slash | (w-ones*0x20)&^w) & tops
}
