package eval

import "math"

// A PassK estimates pass^k: the probability that k runs of a scenario all pass.
type PassK struct {
	K int `json:"k"`
	// Rate, 0 to 1, is the mean over the scenarios of C(ok,k)/C(runs,k), which is unbiased. Low and High are its 95 % interval over
	// repeated runs of the same scenarios.
	Rate      float64 `json:"rate"`
	Low       float64 `json:"low"`
	High      float64 `json:"high"`
	Scenarios int     `json:"scenarios"` // number of scenarios
}

// Trials are the number N of runs of one scenario, and the number OK that passed.
type Trials struct{ OK, N int }

// passOf returns C(ok,k)/C(runs,k): the share of all selections of k runs in which every run passed. k must be at most t.N.
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

// passK estimates pass^k. Its interval combines the Wilson intervals of the scenarios, each raised to the power of k, as intervals of
// independent means (MOVER). ok is false if a scenario has fewer than k runs, or there is no scenario.
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

// PassKs estimates pass^k for k = 2, 4, 8 and so on while every scenario has at least k runs. It returns nil without scenarios.
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
