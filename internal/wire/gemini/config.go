package gemini

import (
	"math"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/destination"
	"github.com/lathe-run/lathe/internal/wire"
)

// levels are the thinking levels of Gemini 3 models, with the budgets that Google documents for Gemini 2.5 models.
var levels = []struct {
	effort string
	budget int
}{{"minimal", 1024}, {"low", 1024}, {"medium", 8192}, {"high", 24576}}

// thinking has the values of a thinkingConfig.
type thinking struct {
	budget  *int
	level   string
	include bool
}

// thinkingOf returns the thinkingConfig for the sampling of a request; ok is false if the request needs none.
func thinkingOf(req *lathe.Request, opts *wire.EncodeOptions, d *dropped) (t thinking, ok bool) {
	s := &req.Sampling
	if has(opts.Without, featureThinking) {
		if s.ReasoningBudget != nil {
			d.add("sampling.reasoning_budget")
		}
		if s.ReasoningEffort != "" {
			d.add("sampling.reasoning_effort")
		}
		if s.ReasoningSummary != "" {
			d.add("sampling.reasoning_summary")
		}
		return t, false
	}
	t.include = s.ReasoningSummary != "" && s.ReasoningSummary != "none"
	t.budget = s.ReasoningBudget
	effort := s.ReasoningEffort
	switch {
	case effort == "":
	case t.budget != nil: // the wire does not accept both
		d.add("sampling.reasoning_effort")
	case effort == "none":
		if opts.Takes.Thinking == destination.Level {
			t.level = levels[0].effort
			d.add("sampling.reasoning_effort")
		} else {
			t.budget = new(int)
		}
	default:
		level := levels[len(levels)-1] // for xhigh, max and unknown efforts
		known := false
		for _, l := range levels {
			if l.effort == effort {
				level, known = l, true
			}
		}
		if !known {
			d.add("sampling.reasoning_effort")
		}
		if opts.Takes.Thinking == destination.Budget || has(opts.Without, featureLevel) {
			t.budget = &level.budget
		} else {
			t.level = level.effort
		}
	}
	if t.budget != nil && (*t.budget > math.MaxInt32 || *t.budget < -1) {
		t.budget = nil
		d.add("sampling.reasoning_budget")
	}
	return t, t.budget != nil || t.level != "" || t.include
}
