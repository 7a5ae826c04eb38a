package rawjson

import "math/bits"

// Scan returns the index after the JSON value that starts at b[i], which white space may precede. It checks only the grammar of RFC 8259:
// keys may repeat, strings may contain any bytes from 0x20 up, and the depth is not limited. It does not check what follows the value,
// except that no digit may follow a leading zero. A truncated value is an error of kind [KindEnd].
func Scan(b []byte, i int) (end int, err error) {
	end, kind := scan(b, i)
	if kind != "" {
		return 0, &SyntaxError{Offset: end, Kind: kind}
	}
	return end, nil
}

// scan returns the end of the value at b[i], or the offset and the kind of an error. Unlike [checker.value], it reads nested values without
// recursion, because their depth is not limited.
func scan(b []byte, i int) (at int, kind string) {
	if i = SkipSpace(b, i); i >= len(b) {
		return i, KindEmpty
	}
	var shallow [64]byte
	open := shallow[:0] // the brackets of the arrays and objects whose end was not read
	complete := false   // a value has ended: a comma or a closing bracket follows
	for kind == "" && (len(open) > 0 || !complete) {
		if i = SkipSpace(b, i); i >= len(b) {
			return i, KindEnd
		}
		switch c := b[i]; {
		case complete && c == ',':
			i, complete = i+1, false
			if open[len(open)-1] == '{' {
				i, kind = scanName(b, i)
			}
		case complete && c == open[len(open)-1]+closingDistance:
			i, open = i+1, open[:len(open)-1]
		case complete:
			return i, KindCharacter
		case c == '"':
			i, _, kind = checkGrammar.string(b, i)
			complete = true
		case c == '[' || c == '{':
			i = SkipSpace(b, i+1)
			if complete = i < len(b) && b[i] == c+closingDistance; complete {
				i++
				break
			}
			open = append(open, c)
			if c == '{' {
				i, kind = scanName(b, i)
			}
		default:
			i, kind = scanScalar(b, i)
			complete = true
		}
	}
	return i, kind
}

// closingDistance is the difference between a closing and its opening bracket.
const closingDistance = '}' - '{'

// scanSeparator reads what follows a value of an array or object: a comma or the closing bracket.
func scanSeparator(b []byte, i int, closing byte) (at int, closed bool, kind string) {
	switch i = SkipSpace(b, i); {
	case i >= len(b):
		return i, false, KindEnd
	case b[i] == ',', b[i] == closing:
		return i + 1, b[i] == closing, ""
	}
	return i, false, KindCharacter
}

// scanName skips the name of a member and its colon.
func scanName(b []byte, i int) (at int, kind string) {
	if i = SkipSpace(b, i); i >= len(b) {
		return i, KindEnd
	}
	if b[i] != '"' {
		return i, KindCharacter
	}
	if i, _, kind = checkGrammar.string(b, i); kind != "" {
		return i, kind
	}
	return scanColon(b, i)
}

func scanColon(b []byte, i int) (at int, kind string) {
	if i = SkipSpace(b, i); i >= len(b) {
		return i, KindEnd
	}
	if b[i] != ':' {
		return i, KindCharacter
	}
	return i + 1, ""
}

// scanEscape skips the escape whose backslash is b[i].
func scanEscape(b []byte, i int) (at int, kind string) {
	if i+1 >= len(b) {
		return len(b), KindEnd
	}
	switch b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2, ""
	case 'u':
		for j := i + 2; j < i+6; j++ {
			if j >= len(b) {
				return j, KindEnd
			}
			if unhex(b[j]) < 0 {
				return i, KindEscape
			}
		}
		return i + 6, ""
	}
	return i, KindEscape
}

// scanScalar skips a number or a literal.
func scanScalar(b []byte, i int) (at int, kind string) {
	switch b[i] {
	case 't':
		return scanLiteral(b, i, "true")
	case 'f':
		return scanLiteral(b, i, "false")
	case 'n':
		return scanLiteral(b, i, "null")
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return scanNumber(b, i)
	}
	return i, KindCharacter
}

func scanLiteral(b []byte, i int, word string) (at int, kind string) {
	if len(b)-i >= len(word) {
		if string(b[i:i+len(word)]) == word {
			return i + len(word), ""
		}
		return i, KindLiteral
	}
	if string(b[i:]) == word[:len(b)-i] {
		return len(b), KindEnd
	}
	return i, KindLiteral
}

func scanNumber(b []byte, i int) (at int, kind string) {
	start := i
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
		if i < len(b) && isDigit(b[i]) {
			return start, KindNumber
		}
	} else if i, kind = scanDigits(b, start, i); kind != "" {
		return i, kind
	}
	if i < len(b) && b[i] == '.' {
		if i, kind = scanDigits(b, start, i+1); kind != "" {
			return i, kind
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		return scanDigits(b, start, i)
	}
	return i, ""
}

// scanDigits skips the digits at b[i], of which there must be at least one. start is the offset of the number.
func scanDigits(b []byte, start, i int) (at int, kind string) {
	if i >= len(b) {
		return i, KindEnd
	}
	if !isDigit(b[i]) {
		return start, KindNumber
	}
	for i < len(b) && isDigit(b[i]) {
		i++
	}
	return i, ""
}

func isDigit(c byte) bool { return c-'0' <= 9 }

// unhex returns the value of a hexadecimal digit, or -1.
func unhex(c byte) int {
	switch {
	case c-'0' <= 9:
		return int(c - '0')
	case c-'a' <= 5:
		return int(c-'a') + 10
	case c-'A' <= 5:
		return int(c-'A') + 10
	}
	return -1
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// plainEnd returns the index of the first quote, backslash or control character at or after i, or len(s), and whether all bytes before it
// are ASCII.
//
// It tests eight bytes at a time. The borrow of the subtractions can set wrong bits in the mask, but only above a correct bit: the lowest
// bit is correct.
func plainEnd[T string | []byte](s T, i int) (end int, ascii bool) {
	var all uint64
	for ; i+8 <= len(s); i += 8 {
		w := s[i : i+8]
		x := uint64(w[0]) | uint64(w[1])<<8 | uint64(w[2])<<16 | uint64(w[3])<<24 |
			uint64(w[4])<<32 | uint64(w[5])<<40 | uint64(w[6])<<48 | uint64(w[7])<<56 // compiled to one load
		quote, slash := x^(ones*'"'), x^(ones*'\\')
		stop := ((x-ones*' ')&^x | (quote-ones)&^quote | (slash-ones)&^slash) & highs
		if stop != 0 {
			n := bits.TrailingZeros64(stop) >> 3
			all |= x & (1<<(n*8) - 1)
			return i + n, all&highs == 0
		}
		all |= x
	}
	for ; i < len(s); i++ {
		c := s[i]
		if c == '"' || c == '\\' || c < ' ' {
			break
		}
		all |= uint64(c)
	}
	return i, all&highs == 0
}
