package rawjson

import (
	"bytes"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// AppendCanonical appends b in the canonical form of RFC 8785: no white space, keys in the order of their UTF-16 units, strings as written
// by [AppendQuote], and numbers as ECMAScript writes the nearest double. b must pass [Check] with the default limits; otherwise
// AppendCanonical returns dst unchanged and the error of Check.
//
// In three cases that RFC 8785 excludes, a number retains all its digits, in the layout of ECMAScript, so that two different integers never
// have the same form: an integer whose shortest double form is another integer (9007199254740993), a number beyond the range of doubles
// (1e400), and a number other than 0 that would round to 0. A number whose exponent has more than 15 digits is unchanged.
func AppendCanonical(dst, b []byte) ([]byte, error) {
	if err := Check(b, Limits{}); err != nil {
		return dst, err
	}
	return AppendCanonicalValid(dst, b), nil
}

// AppendCanonicalValid is [AppendCanonical] for a text that has passed [Check] with the default limits.
func AppendCanonicalValid(dst, b []byte) []byte {
	return canonicalForm.value(dst, b[SkipSpace(b, 0):])
}

// Equal reports whether a and b pass [Check] with the default limits and are equal in the form of [AppendCanonical].
func Equal(a, b []byte) bool {
	x, errX := AppendCanonical(nil, a)
	y, errY := AppendCanonical(nil, b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// AppendPython appends b as Python's json.dumps(json.loads(b), sort_keys=True) writes it: with ", " and ": ", all characters other than
// printable ASCII escaped, integers with all their digits, floats as written by repr, and keys in the order of their code points. As in
// Python, the last of equal keys counts, lone surrogates are allowed, and 1e999 becomes Infinity. In all other respects b must pass [Check]
// with the default limits; otherwise AppendPython returns dst unchanged and the error of Check.
func AppendPython(dst, b []byte) ([]byte, error) {
	if err := checkLoose(b); err != nil {
		return dst, err
	}
	return pythonForm.value(dst, b[SkipSpace(b, 0):]), nil
}

// A form is the form in which a checked text is written.
type form uint8

const (
	canonicalForm form = iota
	pythonForm
)

// A member is one member of an object, with its decoded key.
type member struct{ name, key, value []byte }

// value appends the value v, which no white space precedes.
func (f form) value(dst, v []byte) []byte {
	switch v[0] {
	case '[':
		comma := ""
		dst = append(dst, '[')
		for element := range Elements(v) {
			dst = f.value(append(dst, comma...), element)
			comma = f.comma()
		}
		return append(dst, ']')
	case '{':
		var few [8]member
		comma := ""
		dst = append(dst, '{')
		for _, m := range f.sorted(few[:0], v) {
			dst = append(f.string(append(dst, comma...), m.key), ':')
			if f == pythonForm {
				dst = append(dst, ' ')
			}
			dst = f.value(dst, m.value)
			comma = f.comma()
		}
		return append(dst, '}')
	case '"':
		return f.string(dst, v[:skipString(v, 0)])
	}
	v = v[:skip(v, 0)]
	switch {
	case v[0] >= 'a': // true, false, null
		return append(dst, v...)
	case f == pythonForm:
		return appendPythonNumber(dst, v)
	}
	return appendNumber(dst, v)
}

func (f form) comma() string {
	if f == pythonForm {
		return ", "
	}
	return ","
}

// sorted returns the members of an object in key order, without duplicates: the last of equal keys counts. members is empty, and its array is
// used if it is large enough.
func (f form) sorted(members []member, obj []byte) []member {
	for key, value := range Members(obj) {
		name := key[1 : len(key)-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			name = unquote(nil, key, appendSurrogate)
		}
		members = append(members, member{name, key, value})
	}
	slices.SortStableFunc(members, func(x, y member) int {
		if f == pythonForm {
			return bytes.Compare(x.name, y.name)
		}
		return compareUTF16(x.name, y.name)
	})
	last := members[:0]
	for i, m := range members {
		if i+1 == len(members) || !bytes.Equal(m.name, members[i+1].name) {
			last = append(last, m)
		}
	}
	return last
}

// string appends a valid string literal. The canonical form has no unnecessary escapes.
func (f form) string(dst, quoted []byte) []byte {
	switch {
	case f == pythonForm:
		return appendASCII(dst, quoted)
	case bytes.IndexByte(quoted, '\\') < 0:
		return append(dst, quoted...)
	}
	return AppendQuote(dst, Text(quoted))
}

// appendASCII appends a valid string literal with all characters other than printable ASCII escaped.
func appendASCII(dst, quoted []byte) []byte {
	dst = append(dst, '"')
	for i, end := 1, len(quoted)-1; i < end; {
		c := quoted[i]
		switch {
		case c == '\\' && quoted[i+1] == 'u':
			dst = appendUnit(dst, unit(quoted[i+2:]))
			i += 6
		case c == '\\' && quoted[i+1] == '/':
			dst = append(dst, '/')
			i += 2
		case c == '\\':
			dst = append(dst, c, quoted[i+1])
			i += 2
		case c < 0x7f:
			dst = append(dst, c)
			i++
		default:
			r, n := utf8.DecodeRune(quoted[i:])
			i += n
			if r > 0xffff {
				hi, lo := utf16.EncodeRune(r)
				dst = appendUnit(dst, hi)
				r = lo
			}
			dst = appendUnit(dst, r)
		}
	}
	return append(dst, '"')
}

// appendUnit appends one UTF-16 unit, escaped unless it is printable ASCII.
func appendUnit(dst []byte, u rune) []byte {
	if u >= 0x7f {
		return append(dst, '\\', 'u', hexDigits[u>>12], hexDigits[u>>8&15], hexDigits[u>>4&15], hexDigits[u&15])
	}
	if u >= ' ' && u != '"' && u != '\\' {
		return append(dst, byte(u))
	}
	return appendEscape(dst, byte(u))
}

// compareUTF16 compares two UTF-8 texts by their UTF-16 units. The order is that of the bytes, except that characters above U+FFFF (lead
// byte from 0xf0) precede U+E000 to U+FFFF (lead bytes 0xee and 0xef).
func compareUTF16(x, y []byte) int {
	for i := range min(len(x), len(y)) {
		if p, q := x[i], y[i]; p != q {
			if p >= 0xee && q >= 0xee && (p >= 0xf0) != (q >= 0xf0) {
				return int(q) - int(p)
			}
			return int(p) - int(q)
		}
	}
	return len(x) - len(y)
}
