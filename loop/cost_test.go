package loop_test

import (
	"math"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
)

// A model with a price costs what the price says, whatever its server reports; without a usage it costs what the server reports.
func TestCostByPrice(t *testing.T) {
	t.Parallel()
	priced := func(u lathe.Usage) float64 { return float64(u.InputTokens)*0.001 + float64(u.OutputTokens)*0.01 }
	for _, tt := range []struct {
		name   string
		cost   func(lathe.Usage) float64
		usage  lathe.Usage
		server float64 // 0: it reports none
		want   float64
		event  *float64
	}{
		{"by price", priced, lathe.Usage{InputTokens: 10, OutputTokens: 2}, 0, 0.03, ptr(0.03)},
		{"by price, and not as reported", priced, lathe.Usage{InputTokens: 10, OutputTokens: 2}, 7, 0.03, ptr(0.03)},
		{"as reported", nil, lathe.Usage{InputTokens: 10}, 7, 7, nil},
		{"without usage", priced, lathe.Usage{}, 7, 7, nil},
		{"unknown", nil, lathe.Usage{InputTokens: 10}, 0, 0, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			said := textTurn("hello")
			said.finish.Usage = tt.usage
			if tt.server > 0 {
				said = said.cost(tt.server)
			}
			l, err := loop.New(&script{turns: []turn{said}}, newRunner(t, nil), &loop.Options{Cost: tt.cost})
			if err != nil {
				t.Fatal(err)
			}
			var finished *event.ModelCallFinished
			var end *event.RunFinished
			for e := range l.Run(t.Context(), &loop.Input{Messages: []lathe.Message{lathe.User("hi")}}) {
				switch d := e.Data.(type) {
				case *event.ModelCallFinished:
					finished = d
				case *event.RunFinished:
					end = d
				default:
				}
			}
			if got := end.Result.Cost; got != tt.want {
				t.Errorf("the run cost %v, want %v", got, tt.want)
			}
			if (finished.Cost == nil) != (tt.event == nil) || finished.Cost != nil && *finished.Cost != *tt.event {
				t.Errorf("the event has %v, want %v", finished.Cost, tt.event)
			}
			if d := finished.Dollars(); (d == nil) != (tt.want == 0) || d != nil && *d != tt.want {
				t.Errorf("the call cost %v, want %v", d, tt.want)
			}
		})
	}
}

func ptr[T any](v T) *T { return &v }

// Counts and costs of a server that are absurd are bounded, so that the sums of a run hold and its limit ends it.
func TestAbsurdUsageIsBounded(t *testing.T) {
	t.Parallel()
	for _, u := range []lathe.Usage{
		{InputTokens: math.MaxInt64, OutputTokens: math.MaxInt64, TotalTokens: -5, CachedTokens: math.MaxInt64, CacheWriteTokens: math.MaxInt64, ReasoningTokens: math.MaxInt64},
		{TotalTokens: math.MaxInt64, CacheWriteTokens: math.MinInt64},
	} {
		said := textTurn("hello").cost(math.MaxFloat64)
		said.finish.Usage = u
		l, err := loop.New(&script{turns: []turn{said}}, newRunner(t, nil), &loop.Options{Limits: lathe.Limits{MaxTokensTotal: 1000}})
		if err != nil {
			t.Fatal(err)
		}
		res, err := l.Do(t.Context(), &loop.Input{Messages: []lathe.Message{lathe.User("hi")}})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int64{res.Usage.InputTokens, res.Usage.OutputTokens, res.Usage.TotalTokens, res.Usage.CachedTokens, res.Usage.CacheWriteTokens, res.Usage.ReasoningTokens} {
			if n < 0 || n > 1_000_000_000_000 {
				t.Errorf("usage %+v of %+v", res.Usage, u)
			}
		}
		if res.Usage.Total() < 1000 || res.Cost != 1_000_000 {
			t.Errorf("usage %+v, cost %v", res.Usage, res.Cost)
		}
	}
}
