package gateway

import (
	"context"
	"slices"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/loop"
)

// A callDecision is what was decided about one call of a run, by whom and when.
type callDecision struct {
	CallID     string    `json:"tool_call_id"`
	Tool       string    `json:"tool"`
	Digest     string    `json:"args_digest,omitempty"`
	Decision   string    `json:"decision"` // approved, edited, answered, denied or expired
	By         string    `json:"by,omitempty"`
	ReasonCode string    `json:"reason,omitempty"`
	DecidedAt  time.Time `json:"decided_at"`
	// Stored says that the decision is in the store and not yet in the log of the run.
	Stored bool `json:"stored,omitempty"`
}

// note records an event about the approval of a call.
func (v *runView) note(e *lathe.Event) {
	switch d := e.Data.(type) {
	case *lathe.ToolCallProposed:
		v.client[d.ToolCallID] = d.Client
	case *lathe.ToolCallResult:
		if d.Client {
			v.handedBack = e.ID
		}
	case *lathe.ToolCallExecuted:
		v.ran[d.ToolCallID] = true
	case *lathe.ApprovalRequested:
		if v.requests == nil {
			v.requests = map[string]approvalRequest{}
		}
		v.requests[d.ToolCallID] = approvalRequest{d.ArgsDigest, e.Time}
	case *lathe.ApprovalResolved:
		v.decisions = append(v.decisions, callDecision{CallID: d.ToolCallID, Tool: d.Tool, Digest: v.requests[d.ToolCallID].digest,
			Decision: d.Decision, By: d.By, ReasonCode: d.ReasonCode, DecidedAt: e.Time})
	default: // says nothing about an approval
	}
}

// An approvalRequest is the last request for the approval of a call.
type approvalRequest struct {
	digest string
	at     time.Time
}

// decisionsOf returns the decisions about the calls of the run, the oldest first: those in its log, and those that
// are stored and that the run has not read yet. What the store does not return is left out.
func (g *Gateway) decisionsOf(ctx context.Context, v *runView) []callDecision {
	out := v.decisions
	if v.state.Finished != nil || !slices.ContainsFunc(v.state.Open, isAsked) {
		return out
	}
	facts, err := g.facts.Facts(ctx, v.state.Run.RunID)
	if err != nil {
		return out
	}
	out = slices.Clone(out)
	for i := range facts {
		digest, a, ok := approval.ReadFact(&facts[i])
		o := slices.IndexFunc(v.state.Open, func(o loop.OpenCall) bool { return o.Asked && o.ID == facts[i].Key && o.Digest == digest })
		if ok && o >= 0 {
			out = append(out, callDecision{CallID: facts[i].Key, Tool: v.state.Open[o].Name, Digest: digest, Decision: a.Verb.Past(),
				By: a.By, ReasonCode: a.ReasonCode, DecidedAt: facts[i].Time, Stored: true})
		}
	}
	return out
}

// decided returns the conflict of a second decision about a call. It names the first one where it is known.
func (g *Gateway) decided(ctx context.Context, v *runView, call string) *problem {
	p := conflict("already_decided", "The call has an answer already.")
	p.name(g.decisionsOf(ctx, v), call)
	return p
}

// name adds the last decision about the call to the problem.
func (p *problem) name(all []callDecision, call string) {
	for i := len(all) - 1; i >= 0; i-- {
		d := &all[i]
		if d.CallID != call {
			continue
		}
		p.Decision = d
		p.Message += " The call was " + d.Decision
		if d.By != "" {
			p.Message += " by " + d.By
		}
		p.Message += " at " + d.DecidedAt.UTC().Format(time.RFC3339) + "."
		return
	}
}

// decidedOn reports whether the log has a decision about the call.
func (v *runView) decidedOn(call string) bool {
	return slices.ContainsFunc(v.decisions, func(d callDecision) bool { return d.CallID == call })
}
