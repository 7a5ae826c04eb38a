package server

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/event"
	problems "github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/gateway/runlog"
	"github.com/lathe-run/lathe/loop"
)

// A decision is the body of a request that answers an approval.
type decision struct {
	Decision  approval.Verb   `json:"decision"`
	Digest    string          `json:"digest"`
	Reason    string          `json:"reason"`
	Scope     approval.Scope  `json:"scope"`
	Arguments json.RawMessage `json:"arguments"`
	Result    json.RawMessage `json:"result"`
	inRequest bool            // the decision came with the next request of the client, as in [lathe.Approval]
}

// answerApproval handles POST /api/runs/{id}/approvals/{call}: it stores the decision about one call and resumes the run.
// The first decision counts. It applies to the arguments with the digest that the approver sent, and is accepted until the
// request for approval expires.
func (h *inputHandler) answerApproval(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	var d decision
	switch p := readObject(c.body, &d, `{"decision":"approve","digest":"…"}`); {
	case p != nil:
		return p
	case h.opts.Approvals == nil:
		return conflict("no_approvals", "No approver can be asked on this gateway.")
	case d.Digest == "":
		return badRequest("digest", "Say the args_digest of the call: it stands for what you were shown.")
	}
	id := r.PathValue("id")
	unlock, p := h.locks.lock(r.Context(), id)
	if p != nil {
		return p
	}
	defer unlock()
	v, p := h.viewToDecide(r.Context(), c, id)
	if p != nil {
		return p
	}
	if !c.key.mayDecide(v.State.Run.Principal) {
		return mayNotDecide()
	}
	status, p := h.decide(r.Context(), c.acting(v.State.Run.Principal), v, r.PathValue("call"), &d, c.decider())
	if p != nil {
		return p
	}
	return h.answerDecider(w, r, c, status)
}

// decide stores a decision and resumes the run. It returns 200 if the decision is in the log, and 202 if it is stored and
// the run will read it.
func (h *inputHandler) decide(ctx context.Context, c *caller, v *runlog.View, call string, d *decision, by string) (int, *problem) {
	id := v.State.Run.RunID
	o, p := h.openRequest(ctx, v, call)
	if p != nil {
		return 0, p
	}
	if p := h.checkExecutor(v); p != nil {
		return 0, p
	}
	if o.Digest != d.Digest {
		return 0, conflict("digest_mismatch", "The digest is not that of the call: look at the run again.")
	}
	executesHere := h.executes(id)
	if !h.opts.Now().Before(o.ExpiresAt) {
		if !executesHere {
			// The run continues without the approval. An error is dropped, because the response to a late answer is the same, and
			// Maintain resumes runs with expired requests too.
			_ = h.resume(ctx, c, v, nil)
		}
		return 0, conflict(string(lathe.CodeApprovalExpired), "The request for approval has expired.")
	}
	queued := h.opts.Approvals.Await(v.Request(o))
	err := h.opts.Approvals.Answer(ctx, o.Digest, approval.Answer{Verb: d.Decision, By: by, ReasonCode: d.Reason, Scope: d.Scope, Arguments: d.Arguments, Result: d.Result, InRequest: d.inRequest})
	switch code := lathe.CodeOf(err); {
	case code == lathe.CodeInvalidRequest:
		return 0, badRequest("decision", "The decision cannot be taken: %s.", problems.Cause(err))
	case code == lathe.CodeApprovalExpired:
		return 0, conflict(string(code), "The request for approval has expired.")
	case code == lathe.CodeUnavailable, code == lathe.CodeTimeout:
		return 0, h.storeFailed(c, err)
	case err != nil, !queued && executesHere: // another decision was first; if it is queued here, the run is about to read it
		return 0, h.alreadyDecided(ctx, v, o.ID)
	}
	wait := waitForAny
	if executesHere {
		wait = waitForSuspended
	}
	return h.apply(ctx, c, v, wait, func(d event.Data) bool {
		e, ok := d.(*event.ApprovalResolved)
		return ok && e.ToolCallID == o.ID
	})
}

// openRequest returns the open call of the run for which an approval was requested, or a problem if none exists.
func (h *inputHandler) openRequest(ctx context.Context, v *runlog.View, call string) (*loop.OpenCall, *problem) {
	o := v.OpenCall(call)
	_, known := v.Client[call]
	switch {
	case o == nil && !known:
		return nil, notFound("call_not_found", "The run has no such call.")
	case v.State.Finished != nil:
		p := v.Ended()
		addDecision(p, v.Decisions, call)
		return nil, p
	case o == nil, !o.Asked && v.DecidedOn(call):
		return nil, h.alreadyDecided(ctx, v, call)
	case !o.Asked:
		return nil, conflict("not_asked", "No approval of the call was requested.")
	}
	return o, nil
}
