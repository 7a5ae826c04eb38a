package approval

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/store"
)

// A storedAnswer is the JSON form of an answer in the body of a signal.
type storedAnswer struct {
	Digest     string  `json:"digest"`
	Verb       Verb    `json:"verb"`
	By         string  `json:"by,omitempty"`
	ReasonCode string  `json:"reason_code,omitempty"`
	Scope      Scope   `json:"scope,omitempty"`
	InRequest  bool    `json:"in_request,omitempty"`
	Arguments  *string `json:"arguments,omitempty"` // JSON as a string, so that its bytes do not change
	Result     *string `json:"result,omitempty"`
	// The call to which a scope is bound, besides the digest; set if there is a scope.
	Tool  string  `json:"tool,omitempty"`
	Rule  string  `json:"rule,omitempty"`
	Shown *string `json:"shown,omitempty"` // the arguments of the call
}

func stringOf(raw json.RawMessage) *string {
	if raw == nil {
		return nil
	}
	return new(string(raw))
}

func (f *storedAnswer) answer() *Answer {
	a := &Answer{Verb: f.Verb, By: f.By, ReasonCode: f.ReasonCode, Scope: f.Scope, InRequest: f.InRequest}
	if f.Arguments != nil {
		a.Arguments = json.RawMessage(*f.Arguments)
	}
	if f.Result != nil {
		a.Result = json.RawMessage(*f.Result)
	}
	return a
}

// Keep sets [QueueOptions].Signals if it is nil, and does nothing otherwise. Call it before the first call of Approve: earlier answers are
// in memory only.
func (q *Queue) Keep(signals store.SignalStore) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.opts.Signals == nil {
		q.opts.Signals = signals
	}
}

// signals returns the store of answers; nil: answers are in memory only.
func (q *Queue) signals() store.SignalStore {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.opts.Signals
}

// store stores an answer as a signal of its run. It returns an error of code conflict if the store has another answer, or the run has
// ended.
func (q *Queue) store(ctx context.Context, to store.SignalStore, r *Request, a *Answer) error {
	form := &storedAnswer{Digest: r.Digest, Verb: a.Verb, By: a.By, ReasonCode: a.ReasonCode, Scope: a.Scope, InRequest: a.InRequest, Arguments: stringOf(a.Arguments), Result: stringOf(a.Result)}
	if a.Scope != ScopeOnce {
		form.Tool, form.Rule, form.Shown = r.Tool, r.Rule, stringOf(r.Arguments)
	}
	body, err := json.Marshal(form)
	if err != nil {
		return lathe.CodeInternal.Wrap(opAnswer, err)
	}
	err = to.PutSignal(ctx, store.Signal{RunID: r.RunID, Kind: store.SignalApproval, Key: r.ToolCallID, Body: body})
	if !errors.Is(err, lathe.ErrConflict) {
		return err
	}
	signals, err := to.Signals(ctx, r.RunID)
	if err != nil {
		return err
	}
	for i := range signals {
		f := decodeAnswer(&signals[i])
		isOfRequest := f != nil && signals[i].Key == r.ToolCallID && f.Digest == r.Digest
		if isOfRequest && fingerprint(f.answer()) == fingerprint(a) {
			return nil
		}
	}
	return lathe.CodeConflict.Errorf(opAnswer, "the request has another answer, or its run has ended")
}

// decodeAnswer returns the answer in a signal, or nil if the signal is of another kind or its answer is not valid.
func decodeAnswer(f *store.Signal) *storedAnswer {
	form := &storedAnswer{}
	if f.Kind != store.SignalApproval || json.Unmarshal(f.Body, form) != nil || form.answer().check() != nil {
		return nil
	}
	return form
}

// DecodeSignal returns the answer that [Queue.Answer] has stored as the signal f, and the digest of the request that it answers. ok is
// false if f is not valid or is a signal of another kind.
func DecodeSignal(f *store.Signal) (digest string, a Answer, ok bool) {
	form := decodeAnswer(f)
	if form == nil {
		return "", Answer{}, false
	}
	return form.Digest, *form.answer(), true
}

// StoredApproval implements [tool.StoredApprover]. It returns the answer to the request from Signals, and records that the answer was used.
// It returns false if Signals is nil, has no answer or cannot be read.
func (q *Queue) StoredApproval(ctx context.Context, req *lathe.ApprovalRequest) (lathe.Approval, bool) {
	store := q.signals()
	if store == nil || req.Run == nil || req.Call == nil {
		return lathe.Approval{}, false
	}
	signals, err := store.Signals(ctx, req.Run.RunID)
	if err != nil {
		return lathe.Approval{}, false
	}
	return q.approvalIn(req, signals)
}

// approvalIn returns the answer to the request among the signals of its run, and records that it was used.
func (q *Queue) approvalIn(req *lathe.ApprovalRequest, signals []store.Signal) (lathe.Approval, bool) {
	for i := range signals {
		form := decodeAnswer(&signals[i])
		if form == nil || signals[i].Key != req.Call.ID || form.Digest != req.Digest {
			continue
		}
		a := form.answer()
		q.mu.Lock()
		if e := q.pending[req.Digest]; e != nil {
			e.answer, e.print, e.used = a, fingerprint(a), true
		}
		q.mu.Unlock()
		return a.approval(), true
	}
	return lathe.Approval{}, false
}
