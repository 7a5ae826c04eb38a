package runlog

import (
	"slices"
	"time"

	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
)

// A Decision is the decision about one call of a run, with its author and time.
type Decision struct {
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

// noteCalls records proposals, executions, results, approval requests and decisions of calls from an event.
func (v *View) noteCalls(e *event.Event) {
	switch d := e.Data.(type) {
	case *event.ToolCallProposed:
		v.Client[d.ToolCallID], v.Turns[d.ToolCallID] = d.Client, e.Turn
	case *event.ToolCallResult:
		if d.Client {
			v.lastResult = e.ID
		}
	case *event.ToolCallExecuted:
		v.ran[d.ToolCallID] = true
	case *event.ApprovalRequested:
		v.Requests[d.ToolCallID] = ApprovalRequest{d.ArgsDigest, e.Time}
	case *event.ApprovalResolved:
		v.Resolved[d.ToolCallID] = e.ID
		v.Decisions = append(v.Decisions, Decision{CallID: d.ToolCallID, Tool: d.Tool, Digest: v.Requests[d.ToolCallID].Digest,
			Decision: d.Decision, By: d.By, ReasonCode: d.ReasonCode, DecidedAt: e.Time})
	default: // not about an approval
	}
}

// An ApprovalRequest is the last approval request of a call: its digest and time.
type ApprovalRequest struct {
	Digest string
	At     time.Time
}

// DecidedOn reports whether the log contains a decision about the call.
func (v *View) DecidedOn(call string) bool {
	return slices.ContainsFunc(v.Decisions, func(d Decision) bool { return d.CallID == call })
}

// Request returns the approval request of an open call, from the log of the run.
func (v *View) Request(o *loop.OpenCall) approval.Request { return approval.RequestOf(&v.State, o) }
