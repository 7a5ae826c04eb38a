package dialect

import (
	"strings"
	"unicode/utf8"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// A rawValue reads the value of a parameter that is written unquoted between tags, such as the 3 of <parameter=n>3</parameter>, and emits it
// as JSON of a type that the tool's schema allows: "3" if n is a string, else 3. If only a string is allowed, it emits the text as it
// arrives. For other types it parses the value as a literal and buffers it until it is complete; text that is not a literal becomes a
// string.
//
// The caller calls begin, add for each piece, and then end, endLast or cut.
type rawValue struct {
	r      *reader
	lit    literal
	python bool // None is read as null

	mode   valueMode
	types  valueTypes
	prefix string // the JSON before the value, until it is emitted
	sole   bool   // the only parameter, which contains all arguments if it is an object; the caller sets it before begin
	text   []byte // the buffered text of the model
	json   []byte // the buffered text as JSON
}

type valueMode uint8

const (
	valueString   valueMode = iota
	valueNull               // a string, or null
	valueBuffered           // a literal, buffered
	valueLong               // a literal longer than max_payload_bytes: it is scanned only to find marks outside of its strings
)

func (v *rawValue) init(r *reader) {
	v.r = r
	v.lit.emit = v.emit
}

// emit receives the JSON of a literal.
func (v *rawValue) emit(s string) {
	if v.mode == valueBuffered {
		v.json = append(v.json, s...)
		return
	}
	v.r.args(s)
}

// begin starts a value. prefix is the JSON before it.
func (v *rawValue) begin(prefix string, types valueTypes) {
	v.types, v.prefix = types, prefix
	v.text, v.json = v.text[:0], v.json[:0]
	v.lit.reset()
	switch {
	case v.sole:
		v.mode = valueBuffered
	case types == typeString:
		v.string()
	case types&typeString != 0 && types&typeNull != 0:
		v.mode = valueNull
	case types&typeString != 0:
		v.string()
	default:
		v.mode = valueBuffered
	}
}

func (v *rawValue) emitPrefix() {
	if v.prefix != "" {
		v.r.args(v.prefix)
		v.prefix = ""
	}
}

// string emits the value as a string from here on, beginning with the buffered text.
func (v *rawValue) string() {
	v.mode = valueString
	v.emitPrefix()
	v.r.args(`"`)
	v.r.args(escaped(string(v.text)))
}

// inString reports whether the next byte belongs to a string of a literal, in a value of known type.
func (v *rawValue) inString() bool {
	return v.types != 0 && (v.mode == valueBuffered || v.mode == valueLong) && v.lit.inString()
}

// add reads the next piece of the value.
func (v *rawValue) add(s string) {
	if s == "" {
		return
	}
	switch v.mode {
	case valueString:
		v.r.args(escaped(s))
	case valueNull:
		v.text = append(v.text, s...)
		if t := string(v.text); !strings.HasPrefix("null", t) && !(v.python && strings.HasPrefix("None", t)) {
			v.string()
		}
	case valueBuffered:
		n := runeCut(s, min(len(s), v.r.opts.MaxPayloadBytes-len(v.text)))
		v.text = append(v.text, s[:n]...)
		if !v.read(s[:n]) {
			v.string()
		} else if n < len(s) {
			v.mode = valueLong
		}
		if n < len(s) {
			v.add(s[n:])
		}
	case valueLong:
		v.read(s)
	}
}

// runeCut returns n, or the beginning of the rune in s that a cut at n would divide.
func runeCut(s string, n int) int {
	for begin := n - 1; begin >= max(0, n-utf8.UTFMax+1); begin-- {
		if !utf8.RuneStart(s[begin]) {
			continue
		}
		_, size := utf8.DecodeRuneInString(s[begin:])
		if begin+size > n {
			return begin
		}
		break
	}
	return n
}

// read reads the next piece of the literal and reports whether the text is a literal so far.
func (v *rawValue) read(s string) bool {
	begins := v.lit.state == literalValue && v.lit.depth == 0
	if first := trimSpace(s); begins && v.types == 0 && first != "" && (first[0] == '"' || first[0] == '\'') {
		return false // quotes are part of a string if no type is known
	}
	s = s[v.lit.scan(s):]
	return s == "" || v.lit.state == literalDone && trimSpace(s) == ""
}

// end ends the value.
func (v *rawValue) end() {
	switch v.mode {
	case valueLong:
		return
	case valueNull:
		if len(v.text) == len("null") {
			v.emitPrefix()
			v.r.args("null")
			return
		}
		v.string()
	case valueBuffered:
		if v.lit.finish() {
			v.emitPrefix()
			v.r.args(string(v.json))
			return
		}
		v.string()
	}
	v.r.args(`"`)
}

// endLast ends a value after which no other parameter follows. It returns true if the value replaces all arguments.
func (v *rawValue) endLast() (replaces bool) {
	replaces = v.sole && v.mode == valueBuffered && v.lit.state == literalDone && rawjson.Kind(v.json) == '{'
	if replaces {
		v.prefix = ""
	}
	v.end()
	return replaces
}

// cut emits the buffered part of a value that the end of the text truncates.
func (v *rawValue) cut() {
	switch v.mode {
	case valueNull:
		v.string()
	case valueBuffered:
		v.emitPrefix()
		v.r.args(string(v.json))
	}
}

// memberPrefix returns `before"key":`.
func memberPrefix(before string, key []byte) string {
	b := make([]byte, 0, len(before)+len(key)+8)
	b = append(b, before...)
	b = rawjson.AppendQuote(b, string(key))
	return string(append(b, ':'))
}
