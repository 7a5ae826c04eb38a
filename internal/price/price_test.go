package price_test

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/price"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]price.Money{
		"0": 0, "0.00": 0, "1": price.Dollar, "2.50": 2_500_000_000, "0.0375": 37_500_000, "0.000000001": 1, "007.5": 7_500_000_000,
		"9223372036.854775807": math.MaxInt64,
	} {
		got, err := price.Parse(text)
		if err != nil || got != want {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
		if again, err := price.Parse(got.String()); err != nil || again != got {
			t.Errorf("%q is shown as %q, which is %d: %v", text, got, again, err)
		}
	}
	for _, text := range []string{"", ".5", "5.", "-1", "+1", "1e3", "1,5", "$2", "0.0000000001", "NaN", "inf", "0x1", "1_0", " 1", "9223372036.854775808", "99999999999999999999"} {
		if got, err := price.Parse(text); err == nil {
			t.Errorf("%q is read as %d", text, got)
		}
	}
	if _, err := price.Parse("x"); !errors.Is(err, price.ErrNotMoney) {
		t.Error(err)
	}
}

func TestMoneyIsShownExactly(t *testing.T) {
	for m, want := range map[price.Money]string{0: "0", 1: "0.000000001", price.Dollar: "1", 2_500_000_000: "2.5", -price.Dollar / 2: "-0.5", math.MinInt64: "-9223372036.854775808"} {
		if got := m.String(); got != want {
			t.Errorf("%d: %s, want %s", int64(m), got, want)
		}
	}
	if f := price.Money(37_500_000).Dollars(); f != 0.0375 {
		t.Error(f)
	}
	for f, want := range map[float64]price.Money{0: 0, -1: 0, 0.0375: 37_500_000, 1e-12: 1, math.NaN(): 0, math.Inf(1): math.MaxInt64, 1e30: math.MaxInt64} {
		if got := price.FromDollars(f); got != want {
			t.Errorf("%v: %d, want %d", f, got, want)
		}
	}
}

func TestCost(t *testing.T) {
	p := price.Price{Input: 3 * price.Dollar, CachedInput: price.Dollar * 3 / 10, CacheWrite: price.Dollar * 15 / 4, Output: 15 * price.Dollar}
	for _, tt := range []struct {
		usage lathe.Usage
		want  string
	}{
		{lathe.Usage{}, "0"},
		{lathe.Usage{InputTokens: 1000, OutputTokens: 200}, "0.006"},
		{lathe.Usage{InputTokens: 1000, CachedTokens: 400, CacheWriteTokens: 100, OutputTokens: 200}, "0.004995"},
		{lathe.Usage{InputTokens: 100, CachedTokens: 400}, "0.00012"}, // more from the cache than there is
		{lathe.Usage{InputTokens: -5, CachedTokens: -5, OutputTokens: -5}, "0"},
		{lathe.Usage{InputTokens: math.MaxInt64, OutputTokens: math.MaxInt64}, "9223372036.854775807"},
	} {
		if got := p.Cost(tt.usage); got.String() != tt.want {
			t.Errorf("%+v: %s, want %s", tt.usage, got, tt.want)
		}
	}
	if got := (price.Price{Output: 1}).Cost(lathe.Usage{OutputTokens: 1}); got != 1 {
		t.Errorf("a fraction of a nano-dollar is %d", got)
	}
	if got := p.Most(1000, 200); got.String() != "0.00675" {
		t.Errorf("at most %s", got)
	}
}

// What a call costs is the exact sum, rounded up, and never above what is reserved for it.
func TestCostIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		p := price.Price{Input: price.Money(r.Int64N(1e14)), CachedInput: price.Money(r.Int64N(1e14)), CacheWrite: price.Money(r.Int64N(1e14)), Output: price.Money(r.Int64N(1e14))}
		u := lathe.Usage{InputTokens: r.Int64N(1e7), OutputTokens: r.Int64N(1e7)}
		u.CachedTokens = r.Int64N(u.InputTokens + 1)
		u.CacheWriteTokens = r.Int64N(u.InputTokens - u.CachedTokens + 1)
		exact := new(big.Int)
		for _, x := range [][2]int64{{u.InputTokens - u.CachedTokens - u.CacheWriteTokens, int64(p.Input)}, {u.CachedTokens, int64(p.CachedInput)},
			{u.CacheWriteTokens, int64(p.CacheWrite)}, {u.OutputTokens, int64(p.Output)}} {
			exact.Add(exact, new(big.Int).Mul(big.NewInt(x[0]), big.NewInt(x[1])))
		}
		exact.Add(exact, big.NewInt(price.Million-1)).Div(exact, big.NewInt(price.Million))
		if got := p.Cost(u); exact.Cmp(big.NewInt(int64(got))) != 0 {
			t.Fatalf("%+v at %+v: %d, want %d", u, p, got, exact)
		}
		if most := p.Most(u.InputTokens, u.OutputTokens); most < p.Cost(u) {
			t.Fatalf("%+v at %+v: costs %d, at most %d", u, p, p.Cost(u), most)
		}
	}
}
