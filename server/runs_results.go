package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	problems "github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/gateway/runlog"
	"github.com/lathe-run/lathe/internal/gateway/splice"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

// maxResults is the maximum number of results in one request.
const maxResults = 1000

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
	v, ownsRun, p := h.viewToDecide(r.Context(), c, id)
	if p != nil {
		return p
	}
	if !c.key.mayDecide(v.State.Run.Principal) {
		return mayNotDecide()
	}
	status, p := h.decide(r.Context(), c.acting(ownsRun), v, r.PathValue("call"), &d, c.decider())
	if p != nil {
		return p
	}
	if v, _, p = h.viewToDecide(r.Context(), c, id); p != nil {
		return p
	}
	b := h.body(r.Context(), c, v)
	if !ownsRun && !c.key.isAdmin() {
		b.Answer, b.Labels = "", nil
	}
	return answerAs(w, status, b)
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
	case err != nil: // another decision was first
		return 0, h.alreadyDecided(ctx, v, o.ID)
	case !queued && executesHere: // the queue has the first decision, and the run is about to read it
		return 0, h.alreadyDecided(ctx, v, o.ID)
	}
	return h.apply(ctx, c, v, executesHere, func(d event.Data) bool {
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

// A resultBody is the result of a client call in a request. Content is a JSON string or any other JSON value.
type resultBody struct {
	ID      string          `json:"tool_call_id"`
	Content json.RawMessage `json:"content"`
	IsError bool            `json:"is_error"`
}

// postResults handles POST /api/runs/{id}/tool_results: it stores the results of client calls and resumes the run.
func (h *inputHandler) postResults(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	var body struct {
		Results []resultBody `json:"results"`
	}
	answers := map[string]lathe.Output{}
	if p := readObject(c.body, &body, `{"results":[{"tool_call_id":"…","content":"…"}]}`); p != nil {
		return p
	}
	if p := readResults(body.Results, answers); p != nil {
		return p
	}
	id := r.PathValue("id")
	unlock, p := h.locks.lock(r.Context(), id)
	if p != nil {
		return p
	}
	defer unlock()
	v, p := h.view(r.Context(), c, id)
	if p == nil {
		p = h.originalIDs(r.Context(), v, answers)
	}
	status := http.StatusOK
	if p == nil {
		status, p = h.applyResults(r.Context(), c, v, answers)
	}
	if p != nil {
		return p
	}
	return h.answerRun(w, r, c, id, status)
}

// readResults adds the results to answers by call id, and refuses two results for one call.
func readResults(results []resultBody, answers map[string]lathe.Output) *problem {
	if len(results) == 0 || len(results) > maxResults {
		return badRequest("results", "There must be 1 to %d results.", maxResults)
	}
	for _, one := range results {
		if _, twice := answers[one.ID]; one.ID == "" || twice {
			return badRequest("results", "Each result names the tool_call_id of another call.")
		}
		if len(one.Content) == 0 {
			return badRequest("results", "Each result has a content, a text or a JSON value.")
		}
		answers[one.ID] = lathe.Output{Data: one.Content, IsError: one.IsError}
	}
	return nil
}

// originalIDs replaces, in answers, the call ids that this server made for a client by the ids of the model server.
func (h *inputHandler) originalIDs(ctx context.Context, v *runlog.View, answers map[string]lathe.Output) *problem {
	for id, out := range answers {
		if _, own := v.Client[id]; own || !splice.IsGatewayID(id) {
			continue
		}
		ring, err := h.seals.Get(ctx)
		if err != nil {
			return problems.NotNow(err)
		}
		original := splice.NewCallIDs(ring, v.State.Run.Principal, v.State.Run.RunID).Original(v.State.Messages, id)
		if original == "" {
			continue
		}
		if _, twice := answers[original]; twice {
			return badRequest("results", "Each result names the tool_call_id of another call.")
		}
		delete(answers, id)
		answers[original] = out
	}
	return nil
}

// applyResults stores the results and makes the run read them. It returns the statuses of apply.
func (h *inputHandler) applyResults(ctx context.Context, c *caller, v *runlog.View, answers map[string]lathe.Output) (int, *problem) {
	if p := checkResults(v, answers); p != nil {
		return 0, p
	}
	if p := h.checkExecutor(v); p != nil {
		return 0, p
	}
	if h.orphaned(v) {
		return 0, ownedElsewhere()
	}
	if p := h.storeResults(ctx, c, v.State.Run.RunID, answers); p != nil {
		return 0, p
	}
	missing := len(answers)
	return h.apply(ctx, c, v, false, func(d event.Data) bool {
		if e, ok := d.(*event.ToolCallResult); ok {
			if _, mine := answers[e.ToolCallID]; mine {
				missing--
			}
		}
		return missing == 0
	})
}

// storeResults stores as many of the results as possible. It returns the problem that a call already has another result only
// if there is no other problem.
func (h *inputHandler) storeResults(ctx context.Context, c *caller, id string, answers map[string]lathe.Output) (bad *problem) {
	for call, out := range answers {
		if p := h.storeResult(ctx, c, id, call, out); p != nil && (bad == nil || bad.Code == "already_answered") {
			bad = p
		}
	}
	return bad
}

// storeResult stores one result. The first result of a call counts; an equal one may be sent again.
func (co *core) storeResult(ctx context.Context, c *caller, id, call string, out lathe.Output) *problem {
	f, err := engine.ResultSignal(id, call, out)
	if err == nil {
		err = co.signals.PutSignal(ctx, f)
	}
	if lathe.CodeOf(err) == lathe.CodeConflict {
		var signals []store.Signal
		if signals, err = co.signals.Signals(ctx, id); err == nil && !slices.ContainsFunc(signals, func(k store.Signal) bool {
			return k.Kind == f.Kind && k.Key == f.Key && bytes.Equal(k.Body, f.Body)
		}) {
			return conflict("already_answered", "The call has its result already.")
		}
	}
	return co.runFailed(c, err)
}

// checkResults returns a problem if one of the answers is not for an open client call of the run.
func checkResults(v *runlog.View, answers map[string]lathe.Output) *problem {
	for id := range answers {
		client, known := v.Client[id]
		switch {
		case !known:
			return badRequest("results", "The run has no call of this id.")
		case !client:
			return badRequest("results", "The call is one of this gateway's tools: its result does not come from a client.")
		}
	}
	if p := v.Ended(); p != nil {
		return p
	}
	for id := range answers {
		if v.OpenCall(id) == nil {
			return conflict("already_answered", "The call has its result already.")
		}
	}
	return nil
}
