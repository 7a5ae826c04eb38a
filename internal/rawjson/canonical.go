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
	w := writer{form: canonicalForm}
	dst, _ = w.value(dst, b, SkipSpace(b, 0))
	return dst
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
	w := writer{form: pythonForm}
	dst, _ = w.value(dst, b, SkipSpace(b, 0))
	return dst, nil
}

type form uint8

const (
	canonicalForm form = iota
	pythonForm
)

// A writer appends a checked text in the canonical or the Python form.
type writer struct {
	form  form
	names []byte // decoded keys of open objects, if the keys have escapes
}

// A member describes one member of an object in the text: the offsets of its key literal, of its value and of the end of its value, and its
// decoded key. It has no pointers, which makes sorting fast.
type member struct {
	key, value, end int
	name            span // decoded key, in the text or in writer.names
}

// A span is text[start:end], or writer.names[^start:end] if start is negative.
type span struct{ start, end int }

func (w *writer) name(b []byte, s span) []byte {
	if s.start < 0 {
		return w.names[^s.start:s.end]
	}
	return b[s.start:s.end]
}

// compare compares two keys: by their UTF-16 units for RFC 8785, by their code points for Python.
func (w *writer) compare(b []byte, x, y span) int {
	if w.form == canonicalForm {
		return compareUTF16(w.name(b, x), w.name(b, y))
	}
	return bytes.Compare(w.name(b, x), w.name(b, y))
}

// value appends the value at b[i] and returns its end. Its only recursive calls are direct: otherwise the compiler could not prove that dst does
// not escape, and callers could not allocate dst on the stack.
func (w *writer) value(dst, b []byte, i int) ([]byte, int) {
	switch b[i] {
	case '[':
		dst = append(dst, '[')
		i = SkipSpace(b, i+1)
		for first := true; b[i] != ']'; first = false {
			if !first {
				dst = w.comma(dst)
			}
			dst, i = w.value(dst, b, i)
			if i = SkipSpace(b, i); b[i] == ',' {
				i = SkipSpace(b, i+1)
			}
		}
		return append(dst, ']'), i + 1
	case '{':
		var few [16]member
		text := len(w.names)
		members, end := w.sorted(few[:0], b, i)
		dst = append(dst, '{')
		for j, m := range members {
			if j > 0 {
				dst = w.comma(dst)
			}
			dst = w.string(dst, b[m.key:skipString(b, m.key)])
			dst = append(dst, ':')
			if w.form == pythonForm {
				dst = append(dst, ' ')
			}
			if b[m.value] == '"' {
				dst = w.string(dst, b[m.value:m.end]) // its end is known
			} else {
				dst, _ = w.value(dst, b, m.value)
			}
		}
		w.names = w.names[:text]
		return append(dst, '}'), end
	}
	end := skip(b, i)
	switch v := b[i:end]; {
	case v[0] == '"':
		dst = w.string(dst, v)
	case v[0] >= 'a': // true, false, null
		dst = append(dst, v...)
	case w.form == pythonForm:
		dst = appendPythonNumber(dst, v)
	default:
		dst = appendNumber(dst, v)
	}
	return dst, end
}

// sorted returns the members of the object at b[i] in key order, without duplicates: the last of equal keys counts. It uses the memory of
// members if that is large enough. after is the end of the object.
func (w *writer) sorted(members []member, b []byte, i int) (out []member, after int) {
	inOrder := true
	for i = SkipSpace(b, i+1); b[i] == '"'; {
		end := skipString(b, i)
		m := member{key: i, name: span{i + 1, end - 1}}
		if bytes.IndexByte(b[i:end], '\\') >= 0 {
			n := len(w.names)
			w.names, _ = unquote(w.names, b[i:end], keepSurrogates)
			m.name = span{^n, len(w.names)}
		}
		m.value = SkipSpace(b, SkipSpace(b, end)+1)
		m.end = skip(b, m.value)
		if n := len(members); inOrder && n > 0 {
			inOrder = w.compare(b, members[n-1].name, m.name) < 0
		}
		members = append(members, m)
		if i = SkipSpace(b, m.end); b[i] == ',' {
			i = SkipSpace(b, i+1)
		}
	}
	if inOrder {
		return members, i + 1
	}
	slices.SortStableFunc(members, func(x, y member) int { return w.compare(b, x.name, y.name) })
	n := 0
	for j, m := range members {
		if j+1 == len(members) || w.compare(b, m.name, members[j+1].name) != 0 {
			members[n] = m
			n++
		}
	}
	return members[:n], i + 1
}

func (w *writer) comma(dst []byte) []byte {
	if w.form == pythonForm {
		return append(dst, ',', ' ')
	}
	return append(dst, ',')
}

func (w *writer) string(dst, quoted []byte) []byte {
	if w.form == pythonForm {
		return appendASCII(dst, quoted)
	}
	return appendShortest(dst, quoted)
}

// appendShortest appends a valid string literal without unnecessary escapes.
func appendShortest(dst, quoted []byte) []byte {
	start := 0
	for {
		n := bytes.IndexByte(quoted[start:], '\\')
		if n < 0 {
			return append(dst, quoted[start:]...)
		}
		i := start + n
		dst = append(dst, quoted[start:i]...)
		start = i + 2
		switch c := quoted[i+1]; c {
		case '/':
			dst = append(dst, c)
		case 'u':
			start, _ = pairEscape(quoted, i, i+6)
			if r := codePoint(quoted[i:start]); r < ' ' || r == '"' || r == '\\' {
				dst = appendEscape(dst, byte(r))
			} else {
				dst = utf8.AppendRune(dst, r)
			}
		default:
			dst = append(dst, '\\', c)
		}
	}
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
