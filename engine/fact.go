package engine

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/loop"
)

// A resultForm is the stored form of what a client says came of its call.
type resultForm struct {
	Data    string `json:"data"` // JSON, as its bytes are
	IsError bool   `json:"is_error,omitempty"`
}

// ResultFact returns what a client says came of its call as a fact, which [Engine.Resume] takes up.
func ResultFact(runID, callID string, out lathe.Output) (lathe.Fact, error) {
	body, err := json.Marshal(&resultForm{string(out.Data), out.IsError})
	if err != nil {
		return lathe.Fact{}, &lathe.Error{Code: lathe.CodeInvalidRequest, Op: "engine: keep a result", Err: errors.New("the result is no JSON")}
	}
	return lathe.Fact{RunID: runID, Kind: lathe.FactResult, Key: callID, Body: body}, nil
}

// facts returns what came to the run from outside.
func (e *Engine) facts(ctx context.Context, runID string) ([]lathe.Fact, error) {
	if e.kept == nil {
		return nil, nil
	}
	facts, err := e.kept.Facts(ctx, runID)
	if err != nil {
		return nil, &lathe.Error{Code: storeCode(err), Op: "engine: read what came to the run", Err: err}
	}
	return facts, nil
}

// withResults returns the answers, and the results among the facts for calls that have neither.
func withResults(answers map[string]lathe.Output, s *loop.State, facts []lathe.Fact) (map[string]lathe.Output, error) {
	own := false
	for i := range facts {
		f := &facts[i]
		if _, given := answers[f.Key]; given || f.Kind != lathe.FactResult || !isOpen(s, f.Key) {
			continue
		}
		var form resultForm
		if err := json.Unmarshal(f.Body, &form); err != nil {
			return nil, &lathe.Error{Code: lathe.CodeInternal, Op: "engine: read a result", Err: errors.New("it is not in its stored form")}
		}
		if !own {
			answers, own = maps.Clone(answers), true
			if answers == nil {
				answers = map[string]lathe.Output{}
			}
		}
		answers[f.Key] = lathe.Output{Data: json.RawMessage(form.Data), IsError: form.IsError}
	}
	return answers, nil
}

func isOpen(s *loop.State, callID string) bool {
	return slices.ContainsFunc(s.Open, func(o loop.OpenCall) bool { return o.ID == callID })
}

func cancelled(facts []lathe.Fact) bool {
	return slices.ContainsFunc(facts, func(f lathe.Fact) bool { return f.Kind == lathe.FactCancel })
}

// moves reports whether the run can go on: it does not wait, or somebody has said what it waits for, or
// will not say it in time. One that was set aside waits for a person: what came to it before may have been
// heeded already.
func (e *Engine) moves(s *loop.State, facts []lathe.Fact) bool {
	switch {
	case s.Paused == "" || cancelled(facts):
		return true
	case s.Paused == lathe.ReasonInterrupted:
		return false
	}
	for i := range s.Open {
		o := &s.Open[i]
		if o.Asked && !e.opts.Now().Before(o.ExpiresAt) {
			return true
		}
		for k := range facts {
			if f := &facts[k]; f.Key == o.ID && (f.Kind == lathe.FactResult || f.Kind == lathe.FactApproval && o.Asked) {
				return true
			}
		}
	}
	return false
}
