package rules

import (
	"bytes"
	"errors"
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
	m, ok := value(object).(map[string]any)
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
	d, ok := parseDecimal(text)
	if ok && d.exponent < 0 {
		f, err := strconv.ParseFloat(text, 64)
		if short, ok := parseDecimal(strconv.FormatFloat(f, 'e', -1, 64)); err == nil && ok && short == d {
			return f
		}
	} else if ok && len(d.digits)+d.exponent <= maxInt64Digits {
		whole := d.digits + strings.Repeat("0", d.exponent)
		if d.negative {
			whole = "-" + whole
		}
		if n, err := strconv.ParseInt(whole, 10, 64); err == nil {
			return n
		}
		if n, err := strconv.ParseUint(whole, 10, 64); err == nil {
			return n
		}
	}
	return types.NewErr("a number does not fit into 64 bits")
}

const maxInt64Digits = 20

// A decimal is the number digits·10^exponent, with its sign. digits has no zeros at either end; that of zero is "0".
type decimal struct {
	negative bool
	digits   string
	exponent int
}

// parseDecimal parses a JSON number. ok is false if the exponent does not fit into 32 bits.
func parseDecimal(text string) (d decimal, ok bool) {
	text, d.negative = strings.CutPrefix(text, "-")
	mantissa := text
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		n, err := strconv.ParseInt(text[i+1:], 10, 32)
		if err != nil {
			return d, false
		}
		mantissa, d.exponent = text[:i], int(n)
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	d.digits = strings.TrimRight(digits, "0")
	if d.digits == "" {
		d.digits, d.exponent = "0", 0
		return d, true
	}
	d.exponent += len(digits) - len(d.digits) - len(fraction)
	return d, true
}
