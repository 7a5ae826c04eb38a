package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/gateway/pairs"
	"github.com/lathe-run/lathe/internal/gateway/runlog"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// On the Responses wire, a call that waits for an approval is an mcp_approval_request item. Clients answer it with an
// mcp_approval_response item in their next request. The id of the approval contains the run and a digest of the call id.

// approvalID returns the id of the approval of a call. The codec of the wire adds the prefix of the item.
func approvalID(runID, callID string) string {
	sum := sha256.Sum256([]byte(callID))
	return strings.TrimPrefix(runID, runlog.RunPrefix) + "_" + hex.EncodeToString(sum[:8])
}

// runOfApproval returns the id of the run that is part of the id of an approval; "" if the id does not have the form of
// [approvalID].
func runOfApproval(id string) string {
	run, _, found := strings.Cut(id, "_")
	if !found {
		return ""
	}
	return runlog.RunPrefix + run
}

// approvalsOf returns the calls of this server that wait for an approval, if the client gets them as items.
func (a *chat) approvalsOf(res *event.Result) (out []*wire.Approval) {
	if !a.showsApprovals || res.Reason != lathe.ReasonAwaitingApproval {
		return nil
	}
	for _, call := range res.Pending {
		if a.calls.names[call.Name] {
			continue
		}
		shown := a.serverCall(call, lathe.ToolResult{CallID: call.ID, Name: call.Name})
		out = append(out, &wire.Approval{ID: approvalID(a.caller.runID, call.ID), CallID: call.ID, Name: shown.Name, Server: shown.Server, Arguments: shown.Arguments})
	}
	return out
}

// asksByItem reports whether the client supports approval items: it declares a tool of type mcp with require_approval, such as
// {"type":"mcp","server_label":"files","require_approval":"always"}.
func asksByItem(hosted []wire.HostedTool) bool {
	return slices.ContainsFunc(hosted, func(t wire.HostedTool) bool {
		require := rawjson.At(t.JSON, "require_approval")
		return t.Type == "mcp" && require != nil && rawjson.Text(require) != "never"
	})
}

// takeApprovals stores the approval answers in the request. If the conversation ends with them, the run of the calls is
// resumed and answers the request, and done is true; an answer that contradicts an earlier decision is then refused with
// that decision. If a message follows the answers, done is false and a new run answers the request.
func (h *planner) takeApprovals(ctx context.Context, a *chat) (done bool, p *problem) {
	answers := a.req.Approvals
	if len(answers) == 0 {
		return false, nil
	}
	t := &approvalTaker{planner: h, chat: a, run: runOfApproval(answers[0].ID)}
	if t.run == "" || h.opts.Index == nil || h.opts.Approvals == nil {
		return false, t.unknown()
	}
	unlock, p := h.locks.lock(ctx, t.run)
	if p != nil {
		return false, p
	}
	defer unlock()
	for _, answer := range answers {
		v, p := h.view(ctx, a.caller, t.run)
		switch {
		case p.Absent() && !a.req.Answered:
			return false, nil // the run was deleted, and the answers are part of an older conversation
		case p.Absent():
			p = t.unknown()
		case p == nil:
			p = t.take(ctx, v, answer)
		}
		if p != nil {
			return false, p
		}
	}
	if !a.req.Answered {
		a.caller.runID = ""
		return false, nil
	}
	return t.attach(ctx)
}

// An approvalTaker stores the approval answers of one request. Its methods require that the run is locked.
type approvalTaker struct {
	*planner
	chat    *chat
	run     string
	results map[string]lathe.Output // the results of client calls that the request contains; nil until storeResults has read them
	decided bool                    // the log did not yet have the decision of at least one answer
}

func (t *approvalTaker) unknown() *problem {
	return badRequest(t.chat.protocol.conversation, "An answer to an approval names no call that waits, or calls of several runs.").WithCode("approval_not_found")
}

// take stores one answer. v is the run before it. An answer that repeats the decision about the call changes nothing.
func (t *approvalTaker) take(ctx context.Context, v *runlog.View, answer wire.ApprovalAnswer) (p *problem) {
	req, c := t.chat.req, t.chat.caller
	call := callOfApproval(v, answer.ID)
	switch {
	case call == "", v.State.Target != req.Model:
		return t.unknown()
	case !c.key.mayDecide(v.State.Run.Principal):
		return mayNotDecide()
	}
	if req.Answered && t.results == nil { // results are stored before the decision, since the run reads both after it
		if p := t.storeResults(ctx, v); p != nil {
			return p
		}
	}
	if v.DecidedOn(call) {
		p = t.alreadyDecided(ctx, v, call)
	} else {
		t.decided = true
		p = t.decide(ctx, v, call, answer)
	}
	if p == nil || p.Code != "already_decided" || req.Answered && contradicts(p, answer.Approve) {
		return p
	}
	return nil // the answer repeats the decision, or is part of an older conversation
}

// storeResults stores the results of client calls that the request contains in addition to its approval answers. The first result of a
// call counts.
func (t *approvalTaker) storeResults(ctx context.Context, v *runlog.View) (p *problem) {
	c := t.chat.caller
	if t.results, p = t.resultsFor(ctx, c, t.chat.req.Messages, v); p != nil {
		return p
	}
	p = t.inputs().storeResults(ctx, c, t.run, t.results)
	if p != nil && p.Code == "already_answered" {
		return nil
	}
	return p
}

// decide stores the decision of an answer about a call that waits, and makes the run read it.
func (t *approvalTaker) decide(ctx context.Context, v *runlog.View, call string, answer wire.ApprovalAnswer) *problem {
	open := v.OpenCall(call)
	if open == nil || !open.Asked {
		return conflict("not_asked", "Nobody is asked about the call.")
	}
	d := decision{Decision: approval.Deny, Digest: open.Digest, Reason: answer.Reason, inRequest: t.chat.req.Answered}
	if answer.Approve {
		d.Decision = approval.Approve
	}
	_, p := t.inputs().decide(ctx, t.chat.caller, v, call, &d, t.chat.caller.decider())
	return p
}

// attach makes the run, which has all decisions, answer the request from the first of them on.
func (t *approvalTaker) attach(ctx context.Context) (done bool, p *problem) {
	a := t.chat
	v, p := t.view(ctx, a.caller, t.run)
	if p != nil {
		return false, p
	}
	if !t.decided && len(t.results) > 0 { // no new decision has made the run read the results
		// A result that was sent before, or after which the run has ended, changes nothing.
		if _, p := t.inputs().applyResults(ctx, a.caller, v, t.results); p != nil && p.Code != "already_answered" && p.Code != "run_ended" {
			return false, p
		}
	}
	after, base := beforeDecisions(v, a.req.Approvals)
	a.attach(ctx, v, after, base)
	a.feed.asked = pairs.CallsOf(v.State.Messages)
	return true, nil
}

// callOfApproval returns the id of the call that the approval belongs to; "" if the run has no such call.
func callOfApproval(v *runlog.View, id string) string {
	for call := range v.Requests {
		if approvalID(v.State.Run.RunID, call) == id {
			return call
		}
	}
	return ""
}

// beforeDecisions returns the id of the last event before the decisions of the answers, and the number of messages of the
// run at that event.
func beforeDecisions(v *runlog.View, answers []wire.ApprovalAnswer) (after int64, base int) {
	after, base = v.State.LastID, len(v.State.Messages)
	for _, answer := range answers {
		call := callOfApproval(v, answer.ID)
		if at, ok := v.Resolved[call]; ok {
			after = min(after, at-1)
		}
		for i := range v.State.Messages {
			if slices.ContainsFunc(v.State.Messages[i].Calls(), func(c lathe.ToolCall) bool { return c.ID == call }) {
				base = min(base, i+1)
			}
		}
	}
	return after, base
}
