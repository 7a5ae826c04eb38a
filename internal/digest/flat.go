package digest

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// Arguments are mostly one flat object of plain texts, small numbers and lists of these, and for
// that the canonical text needs no reader of all JSON: members are put in order, and what is between
// them is written anew. appendFlat knows only what Python writes as it stands; everything else it leaves to rawjson.

// The bounds of flat arguments.
const (
	FlatKeys  = 16
	FlatDepth = 2
)

const (
	maxFlatBytes   = 512
	maxFlatInteger = 18 // digits
	maxFlatDigits  = 15 // of a fraction: a double keeps them
)

// flatMember is one member of the text: key literal, with its quotes, and value.
type flatMember struct{ key, keyEnd, value, valueEnd uint16 }

// appendFlat appends what [rawjson.AppendPython] appends, or reports that it cannot say what that is.
func appendFlat(dst, b []byte) ([]byte, bool) {
	if len(b) > maxFlatBytes {
		return dst, false
	}
	var space [FlatKeys]flatMember
	members, ok := flatMembers(space[:0], b)
	if !ok {
		return dst, false
	}
	dst = append(dst, '{')
	for i, m := range members {
		if i > 0 {
			dst = append(dst, ',', ' ')
		}
		dst = append(dst, b[m.key:m.keyEnd]...)
		dst = append(dst, ':', ' ')
		dst = appendFlatValue(dst, b[m.value:m.valueEnd])
	}
	return append(dst, '}'), true
}

// appendFlatValue appends a value that flatValue has taken.
func appendFlatValue(dst, b []byte) []byte {
	if b[0] != '[' {
		return append(dst, b...)
	}
	dst = append(dst, '[')
	for i := flatSpace(b, 1); b[i] != ']'; {
		end := flatScalar(b, i)
		dst = append(dst, b[i:end]...)
		if i = flatSpace(b, end); b[i] == ',' {
			dst = append(dst, ',', ' ')
			i = flatSpace(b, i+1)
		}
	}
	return append(dst, ']')
}

// flatMembers reads the whole of b, and returns its members by key.
func flatMembers(members []flatMember, b []byte) (_ []flatMember, ok bool) {
	i := flatSpace(b, 0)
	if at(b, i) != '{' {
		return nil, false
	}
	for i = flatSpace(b, i+1); ; i = flatSpace(b, i+1) {
		if at(b, i) == '}' && len(members) == 0 {
			break
		}
		keyEnd := flatString(b, i)
		value := flatSpace(b, keyEnd)
		if keyEnd == 0 || at(b, value) != ':' || len(members) == FlatKeys {
			return nil, false
		}
		value = flatSpace(b, value+1)
		valueEnd := flatValue(b, value)
		if valueEnd == 0 {
			return nil, false
		}
		if members, ok = insert(members, b, flatMember{uint16(i), uint16(keyEnd), uint16(value), uint16(valueEnd)}); !ok {
			return nil, false
		}
		if i = flatSpace(b, valueEnd); at(b, i) != ',' {
			break
		}
	}
	return members, at(b, i) == '}' && flatSpace(b, i+1) == len(b)
}

// insert puts m where it belongs among members. Two of one key are no matter of order.
func insert(members []flatMember, b []byte, m flatMember) (_ []flatMember, ok bool) {
	n := len(members)
	members = append(members, m)
	for ; n > 0; n-- {
		before := members[n-1]
		order := bytes.Compare(b[before.key+1:before.keyEnd-1], b[m.key+1:m.keyEnd-1])
		if order == 0 {
			return nil, false
		}
		if order < 0 {
			break
		}
		members[n] = before
	}
	members[n] = m
	return members, true
}

// at returns b[i], and 0 behind the end.
func at(b []byte, i int) byte {
	if i < len(b) {
		return b[i]
	}
	return 0
}

func flatSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// flatValue returns the end of the scalar, or of the array of scalars, at b[i], and 0 where it is neither.
func flatValue(b []byte, i int) (end int) {
	if at(b, i) != '[' {
		return flatScalar(b, i)
	}
	i = flatSpace(b, i+1)
	if at(b, i) == ']' {
		return i + 1
	}
	for {
		if i = flatScalar(b, i); i == 0 {
			return 0
		}
		switch i = flatSpace(b, i); at(b, i) {
		case ',':
			i = flatSpace(b, i+1)
		case ']':
			return i + 1
		default:
			return 0
		}
	}
}

// flatScalar returns the end of the scalar at b[i], 0 where it is none that Python writes as it stands.
func flatScalar(b []byte, i int) (end int) {
	switch c := at(b, i); {
	case c == '"':
		return flatString(b, i)
	case c == '-' || c >= '0' && c <= '9':
		return flatNumber(b, i)
	case bytes.HasPrefix(b[min(i, len(b)):], []byte("true")), bytes.HasPrefix(b[min(i, len(b)):], []byte("null")):
		return i + 4
	case bytes.HasPrefix(b[min(i, len(b)):], []byte("false")):
		return i + 5
	}
	return 0
}

// flatNumber takes integers, and fractions of few digits that are not below a tenth and do not end
// in a 0 too many: their shortest form is the one they have.
func flatNumber(b []byte, i int) (end int) {
	if at(b, i) == '-' {
		i++
	}
	start := i
	for at(b, i) >= '0' && at(b, i) <= '9' {
		i++
	}
	digits := i - start
	switch c := at(b, i); {
	case digits == 0 || b[start] == '0' && digits > 1 || c == 'e' || c == 'E':
		return 0
	case c != '.':
		if digits > maxFlatInteger || b[start] == '0' && start > 0 && b[start-1] == '-' {
			return 0
		}
		return i
	}
	point := i
	for i++; at(b, i) >= '0' && at(b, i) <= '9'; {
		i++
	}
	switch places := i - point - 1; {
	case places == 0 || digits+places > maxFlatDigits || at(b, i) == 'e' || at(b, i) == 'E':
		return 0
	case b[i-1] == '0' && places > 1, b[start] == '0' && b[point+1] == '0':
		return 0
	}
	return i
}

// flatString returns the end of the string literal at b[i], 0 where it is not printable ASCII without escapes.
func flatString(b []byte, i int) (end int) {
	if at(b, i) != '"' {
		return 0
	}
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for i++; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		quote, slash := x^(ones*'"'), x^(ones*'\\')
		// The lowest byte that is marked is one of these; those above it may be marked by a carry.
		marks := (x | (x + ones) | (x-ones*' ')&^x | (quote-ones)&^quote | (slash-ones)&^slash) & highs
		if marks != 0 {
			i += bits.TrailingZeros64(marks) / 8
			if b[i] == '"' {
				return i + 1
			}
			return 0
		}
	}
	for ; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return i + 1
		case c < ' ' || c == '\\' || c > '~':
			return 0
		}
	}
	return 0
}
