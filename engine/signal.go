package engine

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

// A resultForm is the stored form of the result of a client's tool.
type resultForm struct {
	Data    string `json:"data"` // JSON as a string, so that its bytes do not change
	IsError bool   `json:"is_error,omitempty"`
}

// ResultSignal returns a signal with the result of a client's tool. After the caller has stored the signal by
// [store.SignalStore].PutSignal, [Engine.Resume] uses the result for the call. An error has the code invalid_request.
func ResultSignal(runID, callID string, out lathe.Output) (store.Signal, error) {
	body, err := json.Marshal(&resultForm{string(out.Data), out.IsError})
	if err != nil {
		return store.Signal{}, lathe.CodeInvalidRequest.Errorf("engine: keep a result", "the result is no JSON")
	}
	return store.Signal{RunID: runID, Kind: store.SignalResult, Key: callID, Body: body}, nil
}

// readSignals returns the stored external input of the run.
func (e *Engine) readSignals(ctx context.Context, runID string) ([]store.Signal, error) {
	if e.signals == nil {
		return nil, nil
	}
	signals, err := e.signals.Signals(ctx, runID)
	if err != nil {
		return nil, storeCode(err).Wrap("engine: read the signals of the run", err)
	}
	return signals, nil
}

// withResults returns answers, with the results among the signals added for open calls that have no answer.
func withResults(answers map[string]lathe.Output, s *loop.State, signals []store.Signal) (map[string]lathe.Output, error) {
	out := map[string]lathe.Output{}
	maps.Copy(out, answers)
	for _, f := range signals {
		if _, given := out[f.Key]; given || f.Kind != store.SignalResult || !isOpen(s, f.Key) {
			continue
		}
		var form resultForm
		if err := json.Unmarshal(f.Body, &form); err != nil {
			return nil, lathe.CodeInternal.Errorf("engine: read a result", "it is not in its stored form")
		}
		out[f.Key] = lathe.Output{Data: json.RawMessage(form.Data), IsError: form.IsError}
	}
	return out, nil
}

func isOpen(s *loop.State, callID string) bool {
	return slices.ContainsFunc(s.Open, func(o loop.OpenCall) bool { return o.ID == callID })
}

func cancelled(signals []store.Signal) bool {
	return slices.ContainsFunc(signals, func(f store.Signal) bool { return f.Kind == store.SignalCancel })
}

// canContinue reports whether a run can continue: it is not parked, or it has a signal, or a request for approval has expired. For a run that was
// set aside it returns false unless a cancel request is stored, because signals of such a run may have been applied already.
func (e *Engine) canContinue(s *loop.State, signals []store.Signal) bool {
	switch {
	case s.Paused == "" || cancelled(signals):
		return true
	case s.Paused == lathe.ReasonInterrupted:
		return false
	}
	for _, o := range s.Open {
		if o.Asked && !e.opts.Now().Before(o.ExpiresAt) {
			return true
		}
		for _, f := range signals {
			if f.Key == o.ID && (f.Kind == store.SignalResult || f.Kind == store.SignalApproval && o.Asked) {
				return true
			}
		}
	}
	return false
}
