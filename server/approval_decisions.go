package server

import (
	"context"
	"slices"
	"time"

	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/event"
	problems "github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/loop"
)

// A callDecision is the decision about one call of a run, with its author and time.
type callDecision struct {
	CallID     string    `json:"tool_call_id"`
	Tool       string    `json:"tool"`
	Digest     string    `json:"args_digest,omitempty"`
	Decision   string    `json:"decision"` // approved, edited, answered, denied or expired
	By         string    `json:"by,omitempty"`
	ReasonCode string    `json:"reason,omitempty"`
	DecidedAt  time.Time `json:"decided_at"`
	// Stored is set if the decision is in the store and not yet in the log of the run.
	Stored bool `json:"stored,omitempty"`
}

// note records an event about the approval of a call.
func (v *runView) note(e *event.Event) {
	switch d := e.Data.(type) {
	case *event.ToolCallProposed:
		v.client[d.ToolCallID], v.turns[d.ToolCallID] = d.Client, e.Turn
	case *event.ToolCallResult:
		if d.Client {
			v.lastResult = e.ID
		}
	case *event.ToolCallExecuted:
		v.ran[d.ToolCallID] = true
	case *event.ApprovalRequested:
		if v.requests == nil {
			v.requests = map[string]approvalRequest{}
		}
		v.requests[d.ToolCallID] = approvalRequest{d.ArgsDigest, e.Time}
	case *event.ApprovalResolved:
		if v.resolved == nil {
			v.resolved = map[string]int64{}
		}
		v.resolved[d.ToolCallID] = e.ID
		v.decisions = append(v.decisions, callDecision{CallID: d.ToolCallID, Tool: d.Tool, Digest: v.requests[d.ToolCallID].digest,
			Decision: d.Decision, By: d.By, ReasonCode: d.ReasonCode, DecidedAt: e.Time})
	default: // not about an approval
	}
}

// An approvalRequest is the last request for the approval of a call.
type approvalRequest struct {
	digest string
	at     time.Time
}

// decisionsOf returns the decisions about the calls of the run, oldest first: those in its log, and those that are stored and
// that the run has not read yet. If the store fails, it returns those of the log only.
func (rv *runViews) decisionsOf(ctx context.Context, v *runView) []callDecision {
	out := v.decisions
	if v.state.Finished != nil || !slices.ContainsFunc(v.state.Open, isAsked) {
		return out
	}
	facts, err := rv.facts.Signals(ctx, v.state.Run.RunID)
	if err != nil {
		return out
	}
	out = slices.Clone(out)
	for i := range facts {
		digest, a, ok := approval.DecodeSignal(&facts[i])
		o := slices.IndexFunc(v.state.Open, func(o loop.OpenCall) bool { return o.Asked && o.ID == facts[i].Key && o.Digest == digest })
		if ok && o >= 0 {
			out = append(out, callDecision{CallID: facts[i].Key, Tool: v.state.Open[o].Name, Digest: digest, Decision: a.Verb.Past(),
				By: a.By, ReasonCode: a.ReasonCode, DecidedAt: facts[i].Time, Stored: true})
		}
	}
	return out
}

// decided returns the problem for a second decision about a call. It contains the first one if that is known.
func (rv *runViews) decided(ctx context.Context, v *runView, call string) *problem {
	p := conflict("already_decided", "The call has an answer already.")
	addDecision(p, rv.decisionsOf(ctx, v), call)
	return p
}

// addDecision adds the last decision about the call to the problem.
func addDecision(p *problem, all []callDecision, call string) {
	for i := len(all) - 1; i >= 0; i-- {
		d := &all[i]
		if d.CallID != call {
			continue
		}
		p.Decision = &problems.Decision{Decision: d.Decision, By: d.By, At: d.DecidedAt}
		p.Message += " The call was " + d.Decision
		if d.By != "" {
			p.Message += " by " + d.By
		}
		p.Message += " at " + d.DecidedAt.UTC().Format(time.RFC3339) + "."
		return
	}
}

// contradicts reports whether the problem has a decision that is not the one to approve the call, or to deny it.
func contradicts(p *problem, approve bool) bool {
	if p.Decision == nil {
		return false
	}
	denied := p.Decision.Decision == approval.Deny.Past() || p.Decision.Decision == "expired"
	return denied == approve
}

// decidedOn reports whether the log has a decision about the call.
func (v *runView) decidedOn(call string) bool {
	return slices.ContainsFunc(v.decisions, func(d callDecision) bool { return d.CallID == call })
}
