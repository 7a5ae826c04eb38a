package dialect

import (
	"strings"
	"unicode/utf8"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// A rawValue is a parameter's value that stands raw between tags. It is said as JSON of the type
// that the tool's schema allows: where that is a string alone, the text as it stands, as it comes.
// Of another type the value is read as a literal and held back until it is whole, or until
// max_payload_bytes of it were good. What is no literal then is a string after all.
type rawValue struct {
	r      *reader
	lit    literal
	python bool // None is null

	mode   valueMode
	types  valueTypes
	prefix string // what stands before the value, until it is said
	single bool   // an object may take the place of the whole arguments
	text   []byte // what is held back, as the model wrote it
	json   []byte // and as JSON
}

type valueMode uint8

const (
	valueString valueMode = iota
	valueNull             // a string, or null
	valueHeld             // a literal, held back
	valueSaid             // a literal, said as it comes
	valueBad
)

func (v *rawValue) init(r *reader) {
	v.r = r
	v.lit.emit = v.say
}

// say takes the JSON of a literal.
func (v *rawValue) say(s string) {
	if v.mode == valueHeld {
		v.json = append(v.json, s...)
		return
	}
	v.r.args(s)
}

// begin starts a value. prefix is said before it; alone says that the value may take the place of
// the whole arguments, which end decides.
func (v *rawValue) begin(prefix string, types valueTypes, alone bool) {
	v.types, v.prefix, v.single = types, prefix, alone
	v.text, v.json = v.text[:0], v.json[:0]
	v.lit.reset()
	switch {
	case alone:
		v.mode = valueHeld
	case types == typeString:
		v.string()
	case types&typeString != 0 && types&typeNull != 0:
		v.mode = valueNull
	case types&typeString != 0:
		v.string()
	default:
		v.mode = valueHeld
	}
}

func (v *rawValue) sayPrefix() {
	if v.prefix != "" {
		v.r.args(v.prefix)
		v.prefix = ""
	}
}

// string makes the value a string.
func (v *rawValue) string() {
	v.mode = valueString
	v.sayPrefix()
	v.r.args(`"`)
	sayQuoted(v.r.args, string(v.text))
}

// inString reports whether the next byte belongs to a string of a value that is to be a literal.
func (v *rawValue) inString() bool {
	return v.types != 0 && (v.mode == valueHeld || v.mode == valueSaid) && v.lit.inString()
}

// add goes on with the value.
func (v *rawValue) add(s string) {
	switch v.mode {
	case valueString:
		sayQuoted(v.r.args, s)
	case valueNull:
		v.text = append(v.text, s...)
		if t := string(v.text); !strings.HasPrefix("null", t) && !(v.python && strings.HasPrefix("None", t)) {
			v.string()
		}
	case valueHeld:
		n := runeCut(s, min(len(s), v.r.opts.MaxPayloadBytes-len(v.text)))
		v.text = append(v.text, s[:n]...)
		if !v.read(s[:n]) {
			v.string()
		} else if n < len(s) {
			v.mode = valueSaid
			v.sayPrefix()
			v.r.args(string(v.json))
		}
		if n < len(s) {
			v.add(s[n:])
		}
	case valueSaid:
		if !v.read(s) {
			v.mode = valueBad
		}
	}
}

// runeCut returns n, or where the rune begins that s would be cut in at n.
func runeCut(s string, n int) int {
	for k := 1; k < utf8.UTFMax && k <= n && n < len(s); k++ {
		if utf8.RuneStart(s[n-k]) {
			if _, size := utf8.DecodeRuneInString(s[n-k:]); size > k {
				return n - k
			}
			break
		}
	}
	return n
}

// read goes on with the literal and reports whether it is one so far.
func (v *rawValue) read(s string) bool {
	if t := trimSpace(s); v.types == 0 && v.lit.state == literalValue && v.lit.depth == 0 && t != "" && (t[0] == '"' || t[0] == '\'') {
		return false // where no type is known, quotes are part of a string
	}
	s = s[v.lit.scan(s):]
	return s == "" || v.lit.state == literalDone && trimSpace(s) == ""
}

// end ends the value; last says that no other follows. It reports whether the value took the place
// of the whole arguments, and whether it could be read.
func (v *rawValue) end(last bool) (alone, ok bool) {
	switch v.mode {
	case valueString:
		v.r.args(`"`)
	case valueNull:
		if len(v.text) == len("null") {
			v.sayPrefix()
			v.r.args("null")
			return false, true
		}
		v.string()
		v.r.args(`"`)
	case valueHeld:
		if !v.lit.finish() {
			v.string()
			v.r.args(`"`)
			return false, true
		}
		alone = last && v.alone()
		if !alone {
			v.sayPrefix()
		}
		v.r.args(string(v.json))
	case valueSaid:
		return false, v.lit.finish()
	case valueBad:
		return false, false
	}
	return alone, true
}

// cut says what is held back of a value that the text's end cut off.
func (v *rawValue) cut() {
	switch v.mode {
	case valueNull:
		v.string()
	case valueHeld:
		v.sayPrefix()
		v.r.args(string(v.json))
	}
}

// alone reports whether the value may be the whole arguments.
func (v *rawValue) alone() bool { return v.single && v.json[0] == '{' }

// memberPrefix returns `before"key":`.
func memberPrefix(before string, key []byte) string {
	b := make([]byte, 0, len(before)+len(key)+8)
	b = append(b, before...)
	b = rawjson.AppendQuote(b, string(key))
	return string(append(b, ':'))
}
