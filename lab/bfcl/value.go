package bfcl

import (
	"bytes"
	"errors"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// maxDigits is the maximal number of digits of an integer, which is Python's limit, too.
const maxDigits = 4300

// A kind is the type of a value in the leaderboard's rules: 1, 1.0 and true have three different kinds, but are equal.
type kind uint8

const (
	null kind = iota
	boolean
	integer
	float
	text
	list
	dict
)

// A value is one JSON value. Only the fields of its kind are set.
type value struct {
	kind  kind
	flag  bool     // a boolean
	whole *big.Int // an integer
	real  float64  // a float
	text  string
	list  []value
	keys  []string // keys of a dict, in order
	dict  map[string]value
}

func textValue(s string) value { return value{kind: text, text: s} }

// readValue parses JSON. A duplicate key is an error.
func readValue(raw []byte) (value, error) {
	if err := rawjson.Check(raw, rawjson.Limits{}); err != nil {
		return value{}, err
	}
	return toValue(bytes.TrimSpace(raw))
}

// toValue parses JSON that rawjson.Check has accepted, without white space around it.
func toValue(raw []byte) (value, error) {
	switch raw[0] {
	case 'n':
		return value{}, nil
	case 't', 'f':
		return value{kind: boolean, flag: raw[0] == 't'}, nil
	case '"':
		s, err := rawjson.AppendUnquote(nil, raw)
		return textValue(string(s)), err
	case '[':
		v := value{kind: list, list: []value{}}
		for el := range rawjson.Elements(raw) {
			item, err := toValue(el)
			if err != nil {
				return value{}, err
			}
			v.list = append(v.list, item)
		}
		return v, nil
	case '{':
		v := newDict()
		for key, member := range rawjson.Members(raw) {
			name, err := rawjson.AppendUnquote(nil, key)
			if err != nil {
				return value{}, err
			}
			item, err := toValue(member)
			if err != nil {
				return value{}, err
			}
			v.set(string(name), item)
		}
		return v, nil
	default:
		return number(string(raw))
	}
}

// number parses a JSON number. It is an integer if it has neither fraction nor exponent.
func number(s string) (value, error) {
	if n, ok := wholeNumber(s); ok {
		return n, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) { // a number out of range is infinite
		return value{}, errors.New("not a number")
	}
	if strings.ContainsAny(s, ".eE") {
		return value{kind: float, real: f}, nil
	}
	return value{}, errors.New("an integer of too many digits")
}

// wholeNumber parses an optional minus sign and decimal digits.
func wholeNumber(s string) (value, bool) {
	digits := strings.TrimPrefix(s, "-")
	if len(digits) == 0 || len(digits) > maxDigits || strings.Trim(digits, "0123456789") != "" {
		return value{}, false
	}
	n, ok := new(big.Int).SetString(s, 10)
	return value{kind: integer, whole: n}, ok
}

func newDict() value { return value{kind: dict, dict: map[string]value{}} }

func (v *value) set(key string, item value) {
	if _, ok := v.dict[key]; !ok {
		v.keys = append(v.keys, key)
	}
	v.dict[key] = item
}

func (v value) isText(s string) bool { return v.kind == text && v.text == s }

// items returns the elements of a list, or the characters of a text. An empty dict counts as an empty list; for other values it returns
// false.
func (v value) items() ([]value, bool) {
	switch v.kind {
	case list:
		return v.list, true
	case dict:
		return nil, len(v.keys) == 0
	case text:
		var chars []value
		for _, r := range v.text {
			chars = append(chars, textValue(string(r)))
		}
		return chars, true
	}
	return nil, false
}

func equal(a, b value) bool {
	if a.kind.numeric() && b.kind.numeric() {
		return equalNumbers(a, b)
	}
	return a.kind == b.kind && a.text == b.text && slices.EqualFunc(a.list, b.list, equal) && maps.EqualFunc(a.dict, b.dict, equal)
}

func (k kind) numeric() bool { return k == boolean || k == integer || k == float }

func equalNumbers(a, b value) bool {
	if a.kind == float && b.kind == float {
		return a.real == b.real
	}
	x, y := a.rational(), b.rational()
	return x != nil && y != nil && x.Cmp(y) == 0
}

// rational returns a boolean as 0 or 1, or a number; nil if it is infinite or not a number.
func (v value) rational() *big.Rat {
	r := new(big.Rat)
	switch {
	case v.kind == integer:
		return r.SetInt(v.whole)
	case v.kind == float:
		return r.SetFloat64(v.real)
	case v.flag:
		return r.SetInt64(1)
	}
	return r
}

func contains(vs []value, v value) bool {
	return slices.ContainsFunc(vs, func(other value) bool { return equal(other, v) })
}
