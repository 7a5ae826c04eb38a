package gemini

import (
	"math"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/destination"
	"github.com/lathe-run/lathe/internal/wire"
)

// levels are the thinking levels of Gemini 3 models, with the budgets that Google documents for Gemini 2.5 models.
var levels = []level{{"minimal", 1024}, {"low", 1024}, {"medium", 8192}, {"high", 24576}}

type level struct {
	effort string
	budget int // tokens
}

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
	switch {
	case s.ReasoningEffort == "":
	case t.budget != nil: // the wire does not accept both
		d.add("sampling.reasoning_effort")
	default:
		t.setEffort(s.ReasoningEffort, opts, d)
	}
	if t.budget != nil && (*t.budget > math.MaxInt32 || *t.budget < -1) {
		t.budget = nil
		d.add("sampling.reasoning_budget")
	}
	return t, t.budget != nil || t.level != "" || t.include
}

// setEffort sets the level, or the budget if the model takes no level, for an effort. Efforts that the wire lacks become the nearest level.
func (t *thinking) setEffort(effort string, opts *wire.EncodeOptions, d *dropped) {
	if effort == "none" {
		if opts.Takes.Thinking == destination.Level {
			t.level = levels[0].effort
			d.add("sampling.reasoning_effort")
		} else {
			t.budget = new(int)
		}
		return
	}
	i := slices.IndexFunc(levels, func(l level) bool { return l.effort == effort })
	if i < 0 { // xhigh, max or an unknown effort
		i = len(levels) - 1
		d.add("sampling.reasoning_effort")
	}
	if opts.Takes.Thinking == destination.Budget || has(opts.Without, featureLevel) {
		t.budget = new(levels[i].budget)
	} else {
		t.level = levels[i].effort
	}
}
