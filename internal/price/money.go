package price

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Money is an amount of US dollars in whole nano-dollars: one dollar is 1,000,000,000. Amounts are never floating point numbers, whose sums
// depend on their order.
type Money int64

// Dollar is one US dollar.
const Dollar Money = 1_000_000_000

// decimals is the number of decimal places of an amount in dollars.
const decimals = 9

// ErrNotMoney is wrapped by the errors of [Parse].
var ErrNotMoney = errors.New("is not an amount of US dollars: write 0, 2.50 or 0.0375, with at most 9 digits after the point")

// Parse reads an amount of dollars such as "0", "2.50" or "0.0375". It refuses signs, exponents, more than 9 digits after the
// point and amounts beyond the largest [Money].
func Parse(s string) (Money, error) {
	whole, fraction, point := strings.Cut(s, ".")
	if !digits(whole) || point && !digits(fraction) || len(fraction) > decimals {
		return 0, fmt.Errorf("%.40q %w", s, ErrNotMoney)
	}
	n, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", decimals-len(fraction)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%.40q is more than %s US dollars", s, Money(math.MaxInt64))
	}
	return Money(n), nil
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// String returns the amount in dollars without a sign of the currency, with as many digits after the point as it needs.
// [Parse] reads it back, unless it is negative.
func (m Money) String() string {
	sign, n := "", uint64(m)
	if m < 0 {
		sign, n = "-", -n
	}
	s := fmt.Sprintf("%d.%09d", n/uint64(Dollar), n%uint64(Dollar))
	return sign + strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// Dollars returns the nearest floating point number of dollars, for events, metrics and JSON.
func (m Money) Dollars() float64 {
	f, _ := strconv.ParseFloat(m.String(), 64) // the text is always a decimal number
	return f
}

// FromDollars returns the amount of a floating point number of dollars, such as one that a server reports, rounded up to a whole
// nano-dollar. Numbers not above 0 and NaN become 0; numbers beyond the largest [Money] become the largest [Money].
func FromDollars(f float64) Money {
	switch n := math.Ceil(f * float64(Dollar)); {
	case !(n > 0):
		return 0
	case n >= math.MaxInt64:
		return math.MaxInt64
	default:
		return Money(n)
	}
}
