package dialect

// maxJSONDepth is the maximal nesting of a value that a jsonScan accepts.
const maxJSONDepth = 1024

// A jsonScan reads one JSON value (RFC 8259) in pieces, byte by byte, and finds its end, or the first byte that breaks the grammar. It
// does not check for duplicate keys, surrogates or UTF-8. The zero value is ready to use.
type jsonScan struct {
	state  jsonState
	outer  int    // the number of outermost levels at which scan returns after each step, so that the caller sees every token
	key    bool   // the string being read is an object's key
	lax    bool   // accept line ends and tabs in strings, and a comma before a closing bracket: the runner repairs these
	lit    string // the rest of true, false or null that must follow
	hex    int    // number of digits missing in a \u escape
	depth  int
	object [maxJSONDepth / 64]uint64 // one bit for each level: 1 is an object, 0 an array
}

type jsonState uint8

const (
	jsonValue    jsonState = iota // a value must follow
	jsonFirstVal                  // a value or ] must follow
	jsonFirstKey                  // a key or } must follow
	jsonKey                       // a key must follow
	jsonColon
	jsonAfter // a comma or the end of the object or array
	jsonString
	jsonEscape
	jsonHex
	jsonLiteral
	jsonMinus // in a number, after the sign
	jsonZero
	jsonInt
	jsonPoint
	jsonFrac
	jsonExp
	jsonExpSign
	jsonExpInt
	jsonDone // the value is complete; no more bytes are read
	jsonBad  // the next byte, which was not read, breaks the grammar
)

// inString reports whether the next byte belongs to a string.
func (j *jsonScan) inString() bool {
	return j.state == jsonString || j.state == jsonEscape || j.state == jsonHex
}

// whole reports whether the value would be complete if the text ended here.
func (j *jsonScan) whole() bool {
	switch j.state {
	case jsonDone:
		return true
	case jsonZero, jsonInt, jsonFrac, jsonExpInt:
		return j.depth == 0
	}
	return false
}

// scan reads the beginning of s and returns the number of bytes read. It stops before the end of s if the value is complete or invalid.
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

// spaced reports whether white space is allowed next.
func (j *jsonScan) spaced() bool { return j.state <= jsonAfter }

func space(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// step reads one byte outside the plain part of a string. It returns false if the byte was not consumed.
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

// value reads the first byte of a value.
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

// mayClose reports whether a closing brace is allowed instead of a key.
func (j *jsonScan) mayClose() bool { return j.state == jsonFirstKey || j.lax }

// afterComma returns the state after a comma.
func (j *jsonScan) afterComma() jsonState {
	switch {
	case j.inObject():
		return jsonKey
	case j.lax:
		return jsonFirstVal
	}
	return jsonValue
}

// inObject reports whether the innermost level is an object.
func (j *jsonScan) inObject() bool {
	return j.object[(j.depth-1)/64]&(1<<((j.depth-1)%64)) != 0
}

// closeLevel ends the innermost level; object says that the byte was a brace.
func (j *jsonScan) closeLevel(object bool) bool {
	if j.inObject() != object {
		j.state = jsonBad
		return false
	}
	j.depth--
	j.valueEnd()
	return true
}

// valueEnd sets the state after a complete value.
func (j *jsonScan) valueEnd() {
	j.state = jsonAfter
	if j.depth == 0 {
		j.state = jsonDone
	}
}

func shortEscape(c byte) bool { return shortEscapes[c] }

// shortEscapes contains the bytes that may follow a backslash, except u.
var shortEscapes = [256]bool{'"': true, '\\': true, '/': true, 'b': true, 'f': true, 'n': true, 'r': true, 't': true}
