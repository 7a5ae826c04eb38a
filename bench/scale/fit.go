package main

import (
	"math"
	"slices"
)

// A Fit is a power law through the measured points of a series.
type Fit struct {
	Exponent float64 `json:"exponent"`
	// Error is the standard error of Exponent; 0 for two points.
	Error float64 `json:"error"`
	// From and To are the smallest and largest size of the points that were used, and Points is their number.
	From   float64 `json:"from"`
	To     float64 `json:"to"`
	Points int     `json:"points"`

	intercept float64
}

// fitted is the part of a series that counts: sizes of at least the largest divided by it. Below, constant costs hide the growth.
const fitted = 100

// fit returns the least-squares line through the logarithms of the points whose sizes lie within the two largest decades, or of the
// three largest points if that are fewer. Points that are not positive have no logarithm and are left out. It returns nil for fewer than
// two points of different sizes.
func fit(points []Point) *Fit {
	used := slices.Clone(points)
	used = slices.DeleteFunc(used, func(p Point) bool { return p.Size <= 0 || p.Value <= 0 })
	slices.SortFunc(used, func(a, b Point) int { return int(math.Copysign(1, a.Size-b.Size)) })
	if len(used) < 2 {
		return nil
	}
	last := used[len(used)-1].Size
	first := max(0, len(used)-3)
	for first > 0 && used[first-1].Size >= last/fitted*(1-1e-9) {
		first--
	}
	used = used[first:]
	n := float64(len(used))
	var mx, my, sxx, sxy float64
	for _, p := range used {
		mx, my = mx+math.Log(p.Size)/n, my+math.Log(p.Value)/n
	}
	for _, p := range used {
		dx := math.Log(p.Size) - mx
		sxx, sxy = sxx+dx*dx, sxy+dx*(math.Log(p.Value)-my)
	}
	if sxx == 0 {
		return nil
	}
	f := &Fit{Exponent: sxy / sxx, From: used[0].Size, To: last, Points: len(used)}
	f.intercept = my - f.Exponent*mx
	if len(used) > 2 {
		rest := 0.0
		for _, p := range used {
			d := math.Log(p.Value) - f.at(p.Size)
			rest += d * d
		}
		f.Error = math.Sqrt(rest / (n - 2) / sxx)
	}
	return f
}

// at returns the logarithm of the fitted value.
func (f *Fit) at(size float64) float64 { return f.intercept + f.Exponent*math.Log(size) }

// tolerance is how far above n log n an exponent may lie before it is reported as worse: the noise of a shared machine.
const tolerance = 0.12

// worse reports whether the fit grows faster than n log n beyond its error. Over the fitted range, n log n has the exponent
// 1 + ln(ln To / ln From) / ln(To / From).
func (f *Fit) worse() bool {
	if f == nil || f.To <= f.From {
		return false
	}
	bound := 1.0
	if f.From > math.E {
		bound += math.Log(math.Log(f.To)/math.Log(f.From)) / math.Log(f.To/f.From)
	}
	return f.Exponent-2*f.Error > bound+tolerance
}
