package eval

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
)

// The estimate is the share of all choices of k runs in which each passed.
func TestPassKAgainstAllSubsets(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 12; n++ {
		for ok := range n + 1 {
			for k := 1; k <= n; k++ {
				all, good := 0, 0
				for set := range 1 << n { // the first ok runs passed
					if bits.OnesCount(uint(set)) == k {
						all++
						if set>>ok == 0 {
							good++
						}
					}
				}
				if got, want := passOf(Trials{ok, n}, k), float64(good)/float64(all); math.Abs(got-want) > 1e-12 {
					t.Fatalf("%d of %d, k %d: %v, want %v", ok, n, k, got, want)
				}
			}
		}
	}
}

// The mean of the estimate over many experiments is p^k, and the interval holds it in about 95 of 100.
func TestPassKIsUnbiasedAndCovered(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	const experiments, n, k = 4000, 16, 3
	rates := []float64{0.95, 0.7, 0.5, 0.9}
	truth := 0.0
	for _, p := range rates {
		truth += math.Pow(p, k) / float64(len(rates))
	}
	sum, covered := 0.0, 0
	for range experiments {
		var tallies []Trials
		for _, p := range rates {
			one := Trials{N: n}
			for range n {
				if rnd.Float64() < p {
					one.OK++
				}
			}
			tallies = append(tallies, one)
		}
		got, ok := passK(tallies, k)
		if !ok || got.Low > got.Rate || got.High < got.Rate {
			t.Fatalf("%+v", got)
		}
		sum += got.Rate
		if got.Low <= truth && truth <= got.High {
			covered++
		}
	}
	if mean := sum / experiments; math.Abs(mean-truth) > 0.005 {
		t.Errorf("mean %.4f, want %.4f", mean, truth)
	}
	if share := float64(covered) / experiments; share < 0.93 || share > 0.99 {
		t.Errorf("the interval holds the rate in %.3f of the experiments", share)
	}
}

func TestPassKWantsEnoughRuns(t *testing.T) {
	t.Parallel()
	if _, ok := passK(nil, 1); ok {
		t.Error("a rate of nothing")
	}
	if got := PassKs([]Trials{{9, 9}, {4, 5}}); len(got) != 2 || got[1].K != 4 || got[1].Rate != (1+0.2)/2 || got[1].Scenarios != 2 {
		t.Errorf("%+v", got)
	}
	if p, _ := passK([]Trials{{8, 8}}, 2); p.Rate != 1 || p.High != 1 || p.Low < 0.4 || p.Low > 0.5 {
		t.Errorf("%+v", p)
	}
}
