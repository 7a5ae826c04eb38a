package schema

import (
	"bytes"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// Most tools take an object of a few scalars. A flat checks the text of such an object in one pass, without decoding it: with the library
// the check takes a tenth of the CPU time of a tool run. If a flat does not accept a value, the library checks it.

const maxFlatMembers = 64 // each member has one bit of a uint64

// A flat is the compiled form of a schema for an object whose members are scalars.
type flat struct {
	members  map[string]*flatMember
	required uint64 // bits of the required members
	open     bool   // other members are allowed
}

type flatMember struct {
	bit                  uint64
	kinds                kinds    // the kinds of values that are allowed
	choices              []string // allowed strings; nil: any
	minLength, maxLength int      // of strings, in characters
	low, high            int64    // bounds of integers
}

// kinds is a set of kinds of scalars.
type kinds uint8

const (
	stringKind kinds = 1 << iota
	booleanKind
	nullKind
	integerKind
	fractionKind // all numbers that are no integers
)

// kindsOf are the kinds of the values of each type.
var kindsOf = map[string]kinds{"string": stringKind, "number": integerKind | fractionKind, "integer": integerKind, "boolean": booleanKind, "null": nullKind}

// newFlat returns nil if the schema has a keyword that a flat does not support.
func newFlat(s *jsonschema.Schema) *flat {
	if s.Types == nil || s.Types.String() != "[object]" || len(s.Properties) > maxFlatMembers ||
		!hasOnly(s, "Types", "Properties", "Required", "AdditionalProperties") {
		return nil
	}
	f := &flat{members: make(map[string]*flatMember, len(s.Properties)), open: s.AdditionalProperties == nil}
	for name, sub := range s.Properties {
		m := newFlatMember(sub)
		if m == nil || strings.Contains(name, `\`) {
			return nil
		}
		m.bit = 1 << len(f.members)
		f.members[name] = m
	}
	for _, name := range s.Required {
		if f.members[name] == nil {
			return nil
		}
		f.required |= f.members[name].bit
	}
	return f
}

func newFlatMember(s *jsonschema.Schema) *flatMember {
	low, lowFits := flatBound(s.Minimum, math.MinInt64)
	high, highFits := flatBound(s.Maximum, math.MaxInt64)
	if s.Types == nil && s.Enum == nil || !lowFits || !highFits || !hasOnly(s, "Types", "Enum", "MinLength", "MaxLength", "Minimum", "Maximum") {
		return nil
	}
	m := &flatMember{maxLength: math.MaxInt, low: low, high: high}
	types := []string{"string"} // only strings of an enum are supported
	if s.Types != nil {
		types = s.Types.ToStrings()
	}
	for _, name := range types {
		if kindsOf[name] == 0 {
			return nil
		}
		m.kinds |= kindsOf[name]
	}
	if s.Minimum != nil || s.Maximum != nil {
		m.kinds &^= fractionKind // the bounds are integers
	}
	if s.Enum != nil {
		m.kinds, m.choices = m.kinds&stringKind, []string{}
		for _, v := range s.Enum.Values {
			if choice, isText := v.(string); isText {
				m.choices = append(m.choices, choice)
			}
		}
	}
	if s.MinLength != nil {
		m.minLength = *s.MinLength
	}
	if s.MaxLength != nil {
		m.maxLength = *s.MaxLength
	}
	return m
}

func flatBound(r *big.Rat, none int64) (n int64, fits bool) {
	if r == nil {
		return none, true
	}
	return r.Num().Int64(), r.IsInt() && r.Num().IsInt64()
}

// admits reports whether value is certainly valid. It may return false for a valid value.
func (f *flat) admits(value []byte) bool {
	object, ok := rawjson.Object(value)
	if !ok {
		return false
	}
	seen := uint64(0)
	for key, v := range rawjson.Members(object) {
		m := f.members[string(key[1:len(key)-1])]
		switch {
		case m == nil:
			if !f.open || bytes.IndexByte(key, '\\') >= 0 || checkBounds(v, 1) != nil {
				return false
			}
		case seen&m.bit != 0 || !m.admits(v):
			return false
		default:
			seen |= m.bit
		}
	}
	return seen&f.required == f.required
}

func (m *flatMember) admits(v []byte) bool {
	switch v[0] {
	case '"':
		return m.kinds&stringKind != 0 && m.admitsText(v)
	case 't', 'f':
		return m.kinds&booleanKind != 0
	case 'n':
		return m.kinds&nullKind != 0
	case '{', '[':
		return false
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil { // the number has a fraction, an exponent or too many digits
		return m.kinds&fractionKind != 0 && checkNumber(v) == nil
	}
	return m.kinds&integerKind != 0 && n >= m.low && n <= m.high
}

// admitsText does what admits does for a string. Without restrictions, the text need not be decoded; with some, texts with escapes are left
// to the library.
func (m *flatMember) admitsText(v []byte) bool {
	if m.choices == nil && m.minLength == 0 && m.maxLength == math.MaxInt {
		return true
	}
	text, length := v[1:len(v)-1], utf8.RuneCount(v)-len(`""`)
	if bytes.IndexByte(text, '\\') >= 0 || length < m.minLength || length > m.maxLength {
		return false
	}
	return m.choices == nil || slices.Contains(m.choices, string(text))
}
