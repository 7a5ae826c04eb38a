package dialect

// maxJSONDepth is the maximal nesting of a value that a jsonScan accepts.
const maxJSONDepth = 1024

// A jsonScan reads one JSON value (RFC 8259) in pieces, byte by byte, and finds its end, or the first byte that breaks the grammar. It
// does not check for duplicate keys, surrogates or UTF-8. The zero value is ready to use.
type jsonScan struct {
	state jsonState
	outer int    // the number of outermost levels at which scan returns after each step, so that the caller sees every token
	key   bool   // the string being read is an object's key
	lax   bool   // accept line ends and tabs in strings, and a comma before a closing bracket: the runner repairs these
	lit   string // the rest of true, false or null that must follow
	hex   int    // number of digits missing in a \u escape
	levels
}

// levels are the open objects and arrays around the next byte.
type levels struct {
	depth  int
	object [maxJSONDepth / 64]uint64 // one bit for each level: 1 is an object, 0 an array
}

// open begins the object or the array that bracket, '{' or '[', opens. It returns false if there are maxJSONDepth levels already.
func (l *levels) open(bracket byte) bool {
	if l.depth == maxJSONDepth {
		return false
	}
	bit := uint64(1) << (l.depth % 64)
	l.object[l.depth/64] &^= bit
	if bracket == '{' {
		l.object[l.depth/64] |= bit
	}
	l.depth++
	return true
}

// inObject reports whether the innermost level is an object.
func (l *levels) inObject() bool {
	return l.object[(l.depth-1)/64]&(1<<((l.depth-1)%64)) != 0
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
				if i+1 < len(s) && shortEscapes[s[i+1]] {
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
			if space(c) && j.state <= jsonAfter || j.step(c) { // white space is allowed up to jsonAfter
				i++
			}
		}
		if min(depth, j.depth) < j.outer {
			return i
		}
	}
	return len(s)
}

func space(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// step reads one byte outside the plain part of a string. It returns false if the byte was not consumed.
func (j *jsonScan) step(c byte) bool {
	switch j.state {
	case jsonFirstVal:
		if c == ']' {
			return j.closeLevel(c)
		}
		return j.value(c)
	case jsonValue:
		return j.value(c)
	case jsonFirstKey, jsonKey:
		if c == '"' {
			j.state, j.key = jsonString, true
			return true
		}
		if c == '}' && (j.state == jsonFirstKey || j.lax) {
			return j.closeLevel(c)
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
			return j.closeLevel(c)
		}
	case jsonEscape:
		if shortEscapes[c] {
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
	case (c == '{' || c == '[') && j.open(c):
		j.state = jsonFirstVal
		if c == '{' {
			j.state = jsonFirstKey
		}
	case c == '"':
		j.state, j.key = jsonString, false
	case c == 't' || c == 'f' || c == 'n':
		j.state, j.lit = jsonLiteral, wordRest(c)
	case c == '-':
		j.state = jsonMinus
	case c == '0':
		j.state = jsonZero
	case '1' <= c && c <= '9':
		j.state = jsonInt
	default:
		j.state = jsonBad
		return false
	}
	return true
}

// wordRest returns the rest of the word true, false, null, True, False or None that begins with c, or "" for other bytes.
func wordRest(c byte) string {
	switch c {
	case 't', 'T':
		return "rue"
	case 'f', 'F':
		return "alse"
	case 'n':
		return "ull"
	case 'N':
		return "one"
	}
	return ""
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

// closeLevel ends the innermost level at bracket, '}' or ']'.
func (j *jsonScan) closeLevel(bracket byte) bool {
	if j.inObject() != (bracket == '}') {
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

// shortEscapes contains the bytes that may follow a backslash, except u.
var shortEscapes = [256]bool{'"': true, '\\': true, '/': true, 'b': true, 'f': true, 'n': true, 'r': true, 't': true}
