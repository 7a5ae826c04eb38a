package rawjson

import (
	"bytes"
	"math"
	"strconv"
	"strings"
)

// A decimal is the number 0.digits × 10^point: -12.50 has the digits 125 and the point 2, 0.00125 the point -2. digits have no leading or
// trailing zeros; they are empty for zero.
type decimal struct {
	neg    bool
	digits []byte
	point  int
}

// maxExponentDigits is the largest number of digits of an exponent that is evaluated.
const maxExponentDigits = 15

// parseDecimal parses the valid JSON number b and appends its digits to buf. ok is false if the exponent has too many digits.
func parseDecimal(buf, b []byte) (d decimal, ok bool) {
	mantissa, exponent := b, []byte(nil)
	if i := bytes.IndexAny(b, "eE"); i >= 0 {
		mantissa, exponent = b[:i], b[i+1:]
	}
	mantissa, d.neg = bytes.CutPrefix(mantissa, []byte("-"))
	whole, fraction, _ := bytes.Cut(mantissa, []byte("."))
	whole = bytes.TrimLeft(whole, "0")
	d.point = len(whole)
	if len(whole) == 0 {
		significant := bytes.TrimLeft(fraction, "0")
		d.point = len(significant) - len(fraction)
		fraction = significant
	}
	d.digits = bytes.TrimRight(append(append(buf[:0], whole...), fraction...), "0")
	if len(d.digits) == 0 {
		return decimal{digits: d.digits}, true
	}
	if exponent == nil {
		return d, true
	}
	digits := bytes.TrimLeft(exponent, "+-0")
	if len(digits) > maxExponentDigits {
		return d, false
	}
	n, _ := strconv.Atoi(string(digits)) // no digits are 0
	if exponent[0] == '-' {
		n = -n
	}
	d.point += n
	return d, true
}

// appendES6 appends d with all its digits, in the layout of ECMAScript's Number::toString: 1e21 has an exponent and 1e20 has none. The names k
// and n are those of its specification.
func appendES6(dst []byte, d decimal) []byte {
	k, n := len(d.digits), d.point
	if k == 0 {
		return append(dst, '0')
	}
	if d.neg {
		dst = append(dst, '-')
	}
	switch {
	case k <= n && n <= 21:
		dst = append(dst, d.digits...)
		return appendZeros(dst, n-k)
	case 0 < n && n <= 21:
		dst = append(dst, d.digits[:n]...)
		dst = append(dst, '.')
		return append(dst, d.digits[n:]...)
	case -6 < n && n <= 0:
		dst = append(dst, '0', '.')
		dst = appendZeros(dst, -n)
		return append(dst, d.digits...)
	}
	dst = append(dst, d.digits[0])
	if k > 1 {
		dst = append(dst, '.')
		dst = append(dst, d.digits[1:]...)
	}
	dst = append(dst, 'e')
	if n > 0 {
		dst = append(dst, '+')
	}
	return strconv.AppendInt(dst, int64(n-1), 10)
}

func appendZeros(dst []byte, n int) []byte { return append(dst, strings.Repeat("0", n)...) }

// appendNumber appends the valid JSON number b in the form of RFC 8785, with the exceptions that AppendCanonical documents.
func appendNumber(dst, b []byte) []byte {
	var exactBuf, shortBuf, text [64]byte
	exact, ok := parseDecimal(exactBuf[:0], b)
	if !ok {
		return append(dst, b...)
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil || math.IsInf(f, 0) || f == 0 {
		return appendES6(dst, exact)
	}
	short, _ := parseDecimal(shortBuf[:0], strconv.AppendFloat(text[:0], f, 'e', -1, 64))
	isInteger := len(exact.digits) <= exact.point
	isChanged := short.point != exact.point || string(short.digits) != string(exact.digits)
	if isInteger && isChanged {
		return appendES6(dst, exact)
	}
	return appendES6(dst, short)
}

// isInt reports whether the number has neither fraction nor exponent.
func isInt(b []byte) bool { return !bytes.ContainsAny(b, ".eE") }

// appendPythonNumber appends the valid JSON number b as Python's json writes it after reading it.
func appendPythonNumber(dst, b []byte) []byte {
	if isInt(b) {
		if string(b) == "-0" {
			b = b[1:]
		}
		return append(dst, b...)
	}
	f, _ := strconv.ParseFloat(string(b), 64) // a value out of range becomes an infinity, as in Python
	if math.IsInf(f, 0) {
		if f < 0 {
			dst = append(dst, '-')
		}
		return append(dst, "Infinity"...)
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.AppendFloat(dst, f, 'e', -1, 64)
	}
	n := len(dst)
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	if isInt(dst[n:]) {
		dst = append(dst, '.', '0')
	}
	return dst
}

// maxIntegerDigits is the number of digits of the longest integer that [Integer] writes: that of a uint64.
const maxIntegerDigits = 20

// Integer returns the JSON number b without fraction and exponent. ok is false if b is not a JSON number, or if its value is not an integer
// or has more than 20 digits.
func Integer(b []byte) (integer []byte, ok bool) {
	if end, err := Scan(b, 0); err != nil || end != len(b) || b[0] != '-' && (b[0] < '0' || b[0] > '9') {
		return nil, false
	}
	var buf [64]byte
	d, ok := parseDecimal(buf[:0], b)
	switch {
	case !ok || d.point < len(d.digits) || d.point > maxIntegerDigits:
		return nil, false
	case len(d.digits) == 0:
		return []byte("0"), true
	}
	if d.neg {
		integer = append(integer, '-')
	}
	return appendZeros(append(integer, d.digits...), d.point-len(d.digits)), true
}
