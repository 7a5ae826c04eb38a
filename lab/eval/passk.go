package eval

import "math"

// A PassK is the rate at which k runs of a scenario would all pass: pass^k.
type PassK struct {
	K int `json:"k"`
	// Rate is the mean over the scenarios of C(ok,k)/C(runs,k), the unbiased estimate. Low and High are the interval of 95 %
	// over the runs; the scenarios are taken as given.
	Rate      float64 `json:"rate"`
	Low       float64 `json:"low"`
	High      float64 `json:"high"`
	Scenarios int     `json:"scenarios"`
}

// Trials count the runs of one scenario, or other attempts at one thing.
type Trials struct{ OK, N int }

// passOf is C(ok,k)/C(runs,k): the share of the choices of k of the runs in which all passed. k is at most runs.
func passOf(t Trials, k int) float64 {
	rate := 1.0
	for i := range k {
		rate *= float64(t.OK-i) / float64(t.N-i)
		if t.OK <= i {
			return 0
		}
	}
	return rate
}

// passK estimates pass^k. The interval joins the Wilson intervals of the scenarios, to the power of k, as those of independent
// means are joined (MOVER). ok is false if a scenario has fewer than k runs, or there is no scenario.
func passK(tallies []Trials, k int) (p PassK, ok bool) {
	below, above := 0.0, 0.0
	n := float64(len(tallies))
	for _, t := range tallies {
		if t.N < k {
			return PassK{}, false
		}
		rate := passOf(t, k)
		low, high := Interval(t.OK, t.N)
		p.Rate += rate
		below += square(max(0, rate-math.Pow(low, float64(k))) / n)
		above += square(max(0, math.Pow(high, float64(k))-rate) / n)
	}
	p.K, p.Scenarios = k, len(tallies)
	p.Rate /= max(n, 1)
	p.Low, p.High = max(0, p.Rate-math.Sqrt(below)), min(1, p.Rate+math.Sqrt(above))
	return p, len(tallies) > 0
}

func square(x float64) float64 { return x * x }

// PassKs estimates pass^k for k of 2, 4, 8 and so on, as far as each scenario has k runs. Without scenarios it returns nil.
func PassKs(tallies []Trials) []PassK {
	var out []PassK
	for k := 2; ; k *= 2 {
		p, ok := passK(tallies, k)
		if !ok {
			return out
		}
		out = append(out, p)
	}
}
