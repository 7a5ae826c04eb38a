package schema

import (
	"math/big"
	"math/bits"
)

// A decimal is (-)m / 10^scale, with m of at most maxFigures figures and the smallest scale of at
// least 0 that serves. What does not fit is not a decimal: package jsonschema decides about it.
type decimal struct {
	m     uint64
	scale int
	neg   bool
}

const maxFigures = 18

// tens are the powers of ten that fit a uint64.
var tens = [...]uint64{
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9,
	1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
}

// A numeral is the text of a JSON number, read.
type numeral struct {
	decimal
	exact bool // the decimal is the number; else it does not fit
	whole bool // neither a fraction nor an exponent is written
}

// readNumber reads the number that starts at b[i]. ok is false for what is no JSON number and for
// one that is beyond MaxDigits or MaxExponent.
func readNumber(b []byte, i int) (n numeral, end int, ok bool) {
	start := i
	if i < len(b) && b[i] == '-' {
		n.neg = true
		i++
	}
	first, figures := i, 0
	for ; i < len(b) && b[i]-'0' <= 9; i++ {
		n.m = n.m*10 + uint64(b[i]-'0')
	}
	if figures = i - first; figures == 0 || figures > 1 && b[first] == '0' {
		return n, i, false
	}
	n.exact, n.whole = true, true
	exponent := 0
	if i < len(b) && b[i] == '.' {
		n.whole = false
		point := i + 1
		for i++; i < len(b) && b[i]-'0' <= 9; i++ {
			n.m = n.m*10 + uint64(b[i]-'0')
		}
		if i == point {
			return n, i, false
		}
		n.scale = i - point
		figures += n.scale
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		n.whole = false
		if exponent, i, ok = readExponent(b, i+1); !ok {
			return n, i, false
		}
	}
	if i-start > MaxDigits {
		return n, i, false
	}
	n.exact = figures <= maxFigures && n.reduce(exponent)
	return n, i, true
}

func readExponent(b []byte, i int) (exponent, end int, ok bool) {
	neg := false
	if i < len(b) && (b[i] == '+' || b[i] == '-') {
		neg = b[i] == '-'
		i++
	}
	start := i
	for ; i < len(b) && b[i]-'0' <= 9; i++ {
		if exponent = exponent*10 + int(b[i]-'0'); exponent > MaxExponent {
			return 0, i, false
		}
	}
	if neg {
		exponent = -exponent
	}
	return exponent, i, i > start
}

// reduce multiplies by 10^exponent and brings d into its one form, if it has one.
func (d *decimal) reduce(exponent int) bool {
	if d.m == 0 {
		*d = decimal{}
		return true
	}
	d.scale -= exponent
	for d.scale > 0 && d.m%10 == 0 {
		d.m /= 10
		d.scale--
	}
	if d.scale < 0 {
		if -d.scale > maxFigures || d.m >= tens[maxFigures+d.scale] {
			return false
		}
		d.m *= tens[-d.scale]
		d.scale = 0
	}
	return d.scale <= maxFigures
}

// compare returns -1, 0 or 1.
func (d decimal) compare(e decimal) int {
	if d.neg != e.neg {
		if d.neg {
			return -1
		}
		return 1
	}
	dHigh, dLow := bits.Mul64(d.m, tens[max(e.scale-d.scale, 0)])
	eHigh, eLow := bits.Mul64(e.m, tens[max(d.scale-e.scale, 0)])
	order := 0
	switch {
	case dHigh < eHigh || dHigh == eHigh && dLow < eLow:
		order = -1
	case dHigh != eHigh || dLow != eLow:
		order = 1
	}
	if d.neg {
		return -order
	}
	return order
}

// multipleOf reports whether d is a multiple of e, which is above 0.
func (d decimal) multipleOf(e decimal) bool {
	if d.m == 0 {
		return true
	}
	if up := d.scale - e.scale; up > 0 {
		high, low := bits.Mul64(e.m, tens[up])
		return high == 0 && d.m%low == 0
	}
	high, low := bits.Mul64(d.m, tens[e.scale-d.scale])
	return bits.Rem64(high, low, e.m) == 0
}

// decimalOf returns r as a decimal, if it is one.
func decimalOf(r *big.Rat) (d decimal, ok bool) {
	scaled := new(big.Int).Mul(r.Num(), new(big.Int).SetUint64(tens[maxFigures]))
	m, rest := scaled.QuoRem(scaled, r.Denom(), new(big.Int))
	d.neg = m.Sign() < 0
	m.Abs(m)
	ten, digit := big.NewInt(10), new(big.Int)
	d.scale = maxFigures
	for d.scale > 0 && m.Sign() != 0 {
		q, _ := new(big.Int).QuoRem(m, ten, digit)
		if digit.Sign() != 0 {
			break
		}
		m = q
		d.scale--
	}
	if rest.Sign() != 0 || !m.IsUint64() || m.Uint64() >= tens[maxFigures] {
		return decimal{}, false
	}
	d.m = m.Uint64()
	return d, d.reduce(0)
}
