package rules

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/types"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// decode converts a JSON object to values of CEL. A number without a fraction is an int, or a uint if it is too large for an int. A number
// that 64 bits cannot represent exactly is an error value: a condition that reads it fails, because otherwise the condition could decide
// about another number than the tool receives.
func decode(object []byte) (map[string]any, error) {
	if err := rawjson.Check(object, rawjson.Limits{}); err != nil {
		return nil, err
	}
	i := rawjson.SkipSpace(object, 0)
	if object[i] != '{' {
		return nil, errors.New("not an object")
	}
	m, ok := value(object[i:]).(map[string]any)
	if !ok {
		return nil, errors.New("not an object")
	}
	return m, nil
}

// value converts valid JSON to a value of CEL.
func value(raw []byte) any {
	raw = bytes.Trim(raw, " \t\r\n")
	switch raw[0] {
	case '{':
		m := map[string]any{}
		for key, member := range rawjson.Members(raw) {
			m[unquote(key)] = value(member)
		}
		return m
	case '[':
		list := []any{}
		for elem := range rawjson.Elements(raw) {
			list = append(list, value(elem))
		}
		return list
	case '"':
		return unquote(raw)
	case 't', 'f':
		return raw[0] == 't'
	case 'n':
		return types.NullValue
	}
	return number(string(raw))
}

func unquote(raw []byte) string {
	b, err := rawjson.AppendUnquote(nil, raw)
	if err != nil {
		return ""
	}
	return string(b)
}

// number converts a JSON number by its value, regardless of its notation: 1e2 and 100.0 are the int 100, and 9007199254740993.0 is exact,
// although no double is. A fraction that no double represents exactly in its shortest decimal form is an error value.
func number(text string) any {
	digits, exponent, negative, ok := decimal(text)
	if ok && exponent >= 0 && len(digits)+exponent <= maxInt64Digits {
		whole := digits + strings.Repeat("0", exponent)
		if negative {
			whole = "-" + whole
		}
		if n, err := strconv.ParseInt(whole, 10, 64); err == nil {
			return n
		}
		if n, err := strconv.ParseUint(whole, 10, 64); err == nil {
			return n
		}
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil && ok && exponent < 0 {
		if short, e, _, same := decimal(strconv.FormatFloat(f, 'e', -1, 64)); same && short == digits && e == exponent {
			return f
		}
	}
	return types.NewErr("a number does not fit into 64 bits")
}

const maxInt64Digits = 20

// decimal splits a JSON number into its digits, without zeros at either end, and the power of ten by which to multiply them. ok is false if
// the exponent does not fit into 32 bits. The digits of zero are "0".
func decimal(text string) (digits string, exponent int, negative, ok bool) {
	text, negative = strings.CutPrefix(text, "-")
	mantissa := text
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		var err error
		if exponent, err = strconv.Atoi(text[i+1:]); err != nil || exponent > math.MaxInt32 || exponent < math.MinInt32 {
			return "", 0, negative, false
		}
		mantissa = text[:i]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits = strings.TrimLeft(whole+fraction, "0")
	exponent -= len(fraction)
	short := strings.TrimRight(digits, "0")
	if short == "" {
		return "0", 0, negative, true
	}
	return short, exponent + len(digits) - len(short), negative, true
}
