package event

import (
	"cmp"
	"fmt"

	"github.com/lathe-run/lathe"
)

// The most that one event of a log may say. They are far beyond what a model call can use, and the sums over all events of a
// store fit in 64 bits.
const (
	maxLogCount   = 1_000_000_000_000 // tokens, milliseconds, turns, calls
	maxLogDollars = 1_000_000
)

// checkFigures returns an error if a figure of the event cannot be: a negative one, or one beyond these limits.
func checkFigures(d Data) error {
	switch d := d.(type) {
	case *ModelCallFinished:
		return cmp.Or(checkUsage(&d.Usage), checkCounts("latency", d.LatencyMS, d.FirstTokenMS), checkCounts("number", int64(d.ToolCalls), int64(d.IgnoredToolCalls)),
			checkDollars(d.Cost), checkDollars(d.ProviderCost))
	case *ToolCallExecuted:
		err := cmp.Or(checkCounts("latency", d.LatencyMS), checkDollars(&d.ChildCost))
		if d.ChildUsage != nil {
			err = cmp.Or(err, checkUsage(d.ChildUsage))
		}
		return err
	case *ToolCallResult:
		return checkCounts("latency", d.LatencyMS)
	case *RunFinished:
		return cmp.Or(checkUsage(&d.Usage), checkCounts("latency", d.LatencyMS), checkCounts("number", int64(d.Turns), int64(d.ToolCalls)))
	default:
		return nil
	}
}

func checkUsage(u *lathe.Usage) error {
	return checkCounts("token count", u.InputTokens, u.OutputTokens, u.TotalTokens, u.CachedTokens, u.CacheWriteTokens, u.ReasoningTokens)
}

func checkCounts(what string, counts ...int64) error {
	for _, n := range counts {
		if n < 0 || n > maxLogCount {
			return fmt.Errorf("its %s %d is not between 0 and %d", what, n, int64(maxLogCount))
		}
	}
	return nil
}

func checkDollars(x *float64) error {
	if x != nil && !(*x >= 0 && *x <= maxLogDollars) {
		return fmt.Errorf("its cost %g is not between 0 and %d US dollars", *x, maxLogDollars)
	}
	return nil
}
