package approval

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/lathe-run/lathe"
)

// A factForm is the stored form of an answer.
type factForm struct {
	Digest     string  `json:"digest"`
	Verb       Verb    `json:"verb"`
	By         string  `json:"by,omitempty"`
	ReasonCode string  `json:"reason_code,omitempty"`
	Scope      Scope   `json:"scope,omitempty"`
	Arguments  *string `json:"arguments,omitempty"` // JSON, as its bytes are
	Result     *string `json:"result,omitempty"`
	// What a scope is bound to; the digest has the rest.
	Tool  string  `json:"tool,omitempty"`
	Rule  string  `json:"rule,omitempty"`
	Shown *string `json:"shown,omitempty"` // the arguments of the call
}

func text(raw json.RawMessage) *string {
	if raw == nil {
		return nil
	}
	s := string(raw)
	return &s
}

func (f *factForm) answer() *Answer {
	a := &Answer{Verb: f.Verb, By: f.By, ReasonCode: f.ReasonCode, Scope: f.Scope}
	if f.Arguments != nil {
		a.Arguments = json.RawMessage(*f.Arguments)
	}
	if f.Result != nil {
		a.Result = json.RawMessage(*f.Result)
	}
	return a
}

// Keep has answers kept in a store from now on, where the options name none.
func (d *Desk) Keep(facts lathe.FactStore) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.opts.Facts == nil {
		d.opts.Facts = facts
	}
}

// facts is where answers are kept, nil: in memory alone.
func (d *Desk) facts() lathe.FactStore {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.opts.Facts
}

// store keeps an answer as a fact of its run. The first one wins; the same one may be kept again.
func (d *Desk) store(ctx context.Context, kept lathe.FactStore, r *Request, a *Answer) error {
	const op = "approval: answer"
	form := &factForm{Digest: r.Digest, Verb: a.Verb, By: a.By, ReasonCode: a.ReasonCode, Scope: a.Scope, Arguments: text(a.Arguments), Result: text(a.Result)}
	if a.Scope != ScopeOnce {
		form.Tool, form.Rule, form.Shown = r.Tool, r.Rule, text(r.Arguments)
	}
	body, err := json.Marshal(form)
	if err != nil {
		return &lathe.Error{Code: lathe.CodeInternal, Op: op, Err: err}
	}
	err = kept.PutFact(ctx, lathe.Fact{RunID: r.RunID, Kind: lathe.FactApproval, Key: r.ToolCallID, Body: body})
	if !errors.Is(err, lathe.ErrConflict) {
		return err
	}
	facts, err := kept.Facts(ctx, r.RunID)
	if err != nil {
		return err
	}
	for i := range facts {
		if f := formOf(&facts[i]); f != nil && facts[i].Key == r.ToolCallID && f.Digest == r.Digest && fingerprint(f.answer()) == fingerprint(a) {
			return nil
		}
	}
	return &lathe.Error{Code: lathe.CodeConflict, Op: op, Err: errors.New("the request has another answer, or its run has ended")}
}

// formOf returns the stored answer, nil where the fact has none that can be read.
func formOf(f *lathe.Fact) *factForm {
	form := &factForm{}
	if f.Kind != lathe.FactApproval || json.Unmarshal(f.Body, form) != nil || form.answer().check() != nil {
		return nil
	}
	return form
}

// ReadFact returns the answer that a fact holds, and the digest of the request that it answers. ok is false where
// the fact is of another kind or cannot be read.
func ReadFact(f *lathe.Fact) (digest string, a Answer, ok bool) {
	form := formOf(f)
	if form == nil {
		return "", Answer{}, false
	}
	return form.Digest, *form.answer(), true
}

// Recall implements [lathe.Recaller]: it returns the answer that is stored for the request. What cannot be
// read is no answer yet.
func (d *Desk) Recall(ctx context.Context, req *lathe.ApprovalRequest) (lathe.Approval, bool) {
	kept := d.facts()
	if kept == nil || req.Run == nil || req.Call == nil {
		return lathe.Approval{}, false
	}
	facts, err := kept.Facts(ctx, req.Run.RunID)
	if err != nil {
		return lathe.Approval{}, false
	}
	return d.recall(req, facts)
}

func (d *Desk) recall(req *lathe.ApprovalRequest, facts []lathe.Fact) (lathe.Approval, bool) {
	for i := range facts {
		form := formOf(&facts[i])
		if form == nil || facts[i].Key != req.Call.ID || form.Digest != req.Digest {
			continue
		}
		a := form.answer()
		d.mu.Lock()
		if e := d.held[req.Digest]; e != nil {
			e.answer, e.print, e.used = a, fingerprint(a), true
		}
		d.mu.Unlock()
		return a.approval(), true
	}
	return lathe.Approval{}, false
}
