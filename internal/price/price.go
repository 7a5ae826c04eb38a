// Package price computes what model calls cost, in whole nano-dollars.
//
//	p := price.Price{Input: 3 * price.Dollar, CachedInput: price.Dollar * 3 / 10, CacheWrite: price.Dollar * 15 / 4, Output: 15 * price.Dollar}
//	p.Cost(lathe.Usage{InputTokens: 1000, OutputTokens: 200}) // 0.006
package price

import (
	"math"
	"math/bits"

	"github.com/lathe-run/lathe"
)

// A Price is what a model costs: US dollars per million tokens of each kind. The zero value costs nothing.
type Price struct {
	Input       Money // uncached input tokens
	CachedInput Money // input tokens that the vendor read from its cache
	CacheWrite  Money // input tokens that the vendor wrote to its cache
	Output      Money // output tokens, reasoning included
}

// Million is the number of tokens to which the amounts of a [Price] apply.
const Million = 1_000_000

// Cost returns the cost of a model call with this usage, rounded up to a whole nano-dollar. Negative counts count as 0. A sum beyond the
// largest [Money] becomes the largest [Money].
func (p Price) Cost(u lathe.Usage) Money {
	cached, written := max(u.CachedTokens, 0), max(u.CacheWriteTokens, 0)
	return sum(product{max(u.InputTokens-cached-written, 0), p.Input}, product{cached, p.CachedInput},
		product{written, p.CacheWrite}, product{max(u.OutputTokens, 0), p.Output})
}

// Most returns the highest possible cost of a model call with at most this many tokens: the input is priced at the highest of the three
// input prices.
func (p Price) Most(input, output int64) Money {
	return sum(product{max(input, 0), max(p.Input, p.CachedInput, p.CacheWrite)}, product{max(output, 0), p.Output})
}

// A product is a number of tokens at a price per million.
type product struct {
	tokens int64
	each   Money
}

// sum adds the products in 128 bits and divides the sum by a million, rounding up.
func sum(products ...product) Money {
	var high, low, carry uint64
	for _, p := range products {
		h, l := bits.Mul64(uint64(p.tokens), uint64(max(p.each, 0)))
		low, carry = bits.Add64(low, l, 0)
		high, carry = bits.Add64(high, h, carry)
		if carry != 0 {
			return math.MaxInt64
		}
	}
	low, carry = bits.Add64(low, Million-1, 0)
	high += carry
	if high >= Million {
		return math.MaxInt64
	}
	quotient, _ := bits.Div64(high, low, Million)
	if quotient > math.MaxInt64 {
		return math.MaxInt64
	}
	return Money(quotient)
}
