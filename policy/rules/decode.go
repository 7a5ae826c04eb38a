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

// decode returns a JSON object as values of CEL: a number without a fraction is an int, above
// that range a uint. A number that 64 bits cannot represent exactly is an error value, which fails any condition
// that reads it, because a condition must not decide on another number than the tool reads.
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

// value decodes valid JSON.
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

// number decodes a number by its value, not by how it is written: 1e2 and 100.0 are the int 100, and
// 9007199254740993.0 is not its neighbour. A fraction that the nearest double does not stand for
// is an error, too.
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

// decimal takes a JSON number apart: its digits, without zeros at either end, times ten to the
// exponent. It fails where the exponent itself is beyond measure. Zero is "0".
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
