package server

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/internal/gateway/runlog"
	"github.com/lathe-run/lathe/loop"
)

// An openCall is the JSON of a call of a run without a result. If it waits for an approval, it contains all that a person
// needs to decide.
type openCall struct {
	ID        string `json:"tool_call_id"`
	Tool      string `json:"tool"`
	Arguments string `json:"arguments"` // the text that the model wrote
	State     string `json:"state"`     // awaiting_approval, awaiting_result, begun or planned
	// The members below are set only if the call waits for an approval.
	//
	// Exact is the text that the tool gets and whose digest is Digest. It is set if it differs from Arguments, for example
	// because the arguments were unwrapped. Visible is that text with invisible characters as escapes, if there are any.
	Exact       string            `json:"exact_arguments,omitempty"`
	Visible     string            `json:"visible_arguments,omitempty"`
	Digest      string            `json:"args_digest,omitempty"`
	Origin      string            `json:"origin,omitempty"`
	Effect      string            `json:"effect,omitempty"`
	Labels      []string          `json:"tool_labels,omitempty"`
	Rule        string            `json:"rule,omitempty"`
	Reason      string            `json:"reason,omitempty"`     // the reason of the rule, if it is known
	MayDecide   *bool             `json:"may_decide,omitempty"` // whether the key of this request may decide
	RequestedAt time.Time         `json:"requested_at,omitzero"`
	ExpiresAt   time.Time         `json:"expires_at,omitzero"`
	Facts       []approval.Detail `json:"facts,omitempty"`
}

func isAsked(o loop.OpenCall) bool { return o.Asked }

// openCalls returns the open calls of the run, in the order of the log.
func (rv *runViews) openCalls(c *caller, v *runlog.View) []openCall {
	asked := map[string]approval.Request{}
	if rv.opts.Approvals != nil {
		for _, r := range rv.opts.Approvals.Pending(v.State.Run.RunID) {
			asked[r.Digest] = r
		}
	}
	out := []openCall{}
	for _, o := range v.State.Open {
		call := openCall{ID: o.ID, Tool: o.Name, Arguments: o.Arguments, State: "planned"}
		switch {
		case o.Asked:
			rv.describe(c, v, &o, asked[o.Digest], &call)
		case v.Client[o.ID] && v.State.Paused != "":
			call.State = "awaiting_result"
		case o.Begun:
			call.State = "begun"
		}
		out = append(out, call)
	}
	return out
}

// describe sets the members of call that a person needs to decide. known is the request in the approval queue of the
// process that made it. After a restart known is zero: then the members that the log does not have come from the
// configuration.
func (rv *runViews) describe(c *caller, v *runlog.View, o *loop.OpenCall, known approval.Request, call *openCall) {
	r := v.Request(o)
	call.MayDecide = new(c.key.mayDecide(v.State.Run.Principal))
	call.State, call.Digest, call.ExpiresAt, call.Rule = "awaiting_approval", o.Digest, o.ExpiresAt, o.Rule
	if exact := string(r.Arguments); exact != o.Arguments {
		call.Exact = exact
	}
	if visible := approval.Visible(string(r.Arguments)); visible != string(r.Arguments) {
		call.Visible = visible
	}
	call.RequestedAt = v.Requests[o.ID].At
	spec := c.specOf(r.Tool)
	if spec == nil {
		spec = &lathe.ToolSpec{Name: r.Tool, Origin: "no tool that is configured now"}
	}
	call.Origin, call.Effect, call.Labels = spec.Origin, spec.Effect.String(), spec.Labels
	if known.Effect != "" {
		call.Origin, call.Effect, call.Reason, call.Facts = known.Origin, known.Effect, known.Reason, known.Details
		return
	}
	call.Facts = approval.Details(&lathe.ApprovalRequest{CallInfo: lathe.CallInfo{Run: &v.State.Run, Tool: spec, Args: r.Arguments},
		Verdict: lathe.Verdict{Decision: lathe.Ask, Rule: o.Rule}, Digest: o.Digest, ExpiresAt: o.ExpiresAt}, rv.opts.Now())
}

// specOf returns the current definition of a tool of this server; nil if none exists with that name.
func (c *access) specOf(name string) *lathe.ToolSpec {
	if c.setup == nil {
		return nil
	}
	return c.setup.spec(name)
}

// A waitingCall is the JSON of a call that waits for an approval, with its run.
type waitingCall struct {
	RunID     string    `json:"run_id"`
	SessionID string    `json:"session_id,omitempty"`
	Principal string    `json:"principal,omitempty"`
	Model     string    `json:"model"` // the name of the model in the request
	Started   time.Time `json:"started"`
	openCall
}

// maxWaitingRuns is the maximum number of runs in one page of waiting calls; the log of each of them is read.
const maxWaitingRuns = 100

// listApprovals handles GET /api/approvals: the calls that wait for a decision which the caller may make.
func (h *runsHandler) listApprovals(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	f, p := c.filter(r)
	if p != nil {
		return p
	}
	f.Status = "parked"
	if !c.key.ownOnly() {
		f.Principal = ""
	}
	f.Limit = min(cmp.Or(f.Limit, maxWaitingRuns), maxWaitingRuns)
	rows, next, err := h.opts.Index.Runs(r.Context(), f)
	if err != nil {
		return h.storeFailed(c, err)
	}
	var calls []waitingCall
	for _, row := range rows {
		if row.Reason == lathe.ReasonAwaitingApproval && c.key.mayDecide(row.Principal) {
			calls = append(calls, h.waitingCalls(r.Context(), c, row.RunID)...)
		}
	}
	c.runID, c.named = "", ""
	return answerList(w, calls, next)
}

// waitingCalls returns the calls of a run that wait for an approval and have no stored decision. It returns nil if the run
// has ended or does not exist.
func (h *runsHandler) waitingCalls(ctx context.Context, c *caller, id string) (out []waitingCall) {
	v, p := h.viewToDecide(ctx, c, id)
	if p != nil || v.State.Finished != nil {
		return nil
	}
	decided := h.decisionsOf(ctx, v)
	run := &v.Summary.Run
	for _, o := range h.openCalls(c, v) {
		taken := slices.ContainsFunc(decided, func(d runlog.Decision) bool { return d.Stored && d.CallID == o.ID })
		if o.State == "awaiting_approval" && !taken {
			out = append(out, waitingCall{RunID: id, SessionID: run.SessionID, Principal: run.Principal, Model: v.State.Target, Started: run.Started, openCall: o})
		}
	}
	return out
}
