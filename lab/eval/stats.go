package eval

import (
	"cmp"
	"math"
	"slices"
)

// z95 is the 97.5 % quantile of the normal distribution, for 95 % intervals.
const z95 = 1.959963984540054

// Interval returns the 95 % Wilson score interval, from 0 to 1, for ok successes in n tries. For n = 0 it is 0 to 1.
func Interval(ok, n int) (low, high float64) {
	if n == 0 {
		return 0, 1
	}
	p, m := float64(ok)/float64(n), float64(n)
	z2 := z95 * z95
	centre := (p + z2/(2*m)) / (1 + z2/m)
	half := z95 / (1 + z2/m) * math.Sqrt(p*(1-p)/m+z2/(4*m*m))
	low, high = max(0, centre-half), min(1, centre+half)
	if ok == 0 {
		low = 0
	}
	if ok == n {
		high = 1
	}
	return low, high
}

// Quantile returns the element at index floor(n·p), at most the last one, of the sorted values; 0 if none exist.
func Quantile[T cmp.Ordered](values []T, p float64) (v T) {
	if len(values) == 0 {
		return v
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(float64(len(sorted))*p), len(sorted)-1)]
}

// Chance returns the two-sided p-value of Fisher's exact test: the probability that okA of nA and okB of nB differ at least this much by
// chance. It is 1 if nA or nB is 0.
func Chance(okA, nA, okB, nB int) float64 {
	if nA == 0 || nB == 0 {
		return 1
	}
	ok := okA + okB
	all := logChoose(nA+nB, ok)
	chance := func(a int) float64 { return math.Exp(logChoose(nA, a) + logChoose(nB, ok-a) - all) }
	seen, p := chance(okA), 0.0
	for a := max(0, ok-nB); a <= min(nA, ok); a++ {
		if c := chance(a); c <= seen*(1+1e-9) { // at most as likely, up to rounding
			p += c
		}
	}
	return min(1, p)
}

// logChoose returns the logarithm of the binomial coefficient n over k.
func logChoose(n, k int) float64 {
	of := func(n int) float64 { v, _ := math.Lgamma(float64(n) + 1); return v }
	return of(n) - of(k) - of(n-k)
}
