package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	problems "github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/gateway/runlog"
	"github.com/lathe-run/lathe/internal/gateway/splice"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/observe"
	"github.com/lathe-run/lathe/store"
)

// logTimeout is how long a request waits until the log of the run contains the effect of the request.
const logTimeout = 5 * time.Second

// maxResults is the maximum number of results in one request.
const maxResults = 1000

// resume resumes a suspended run with the results of client calls in answers. The caller must have locked the run.
func (ex *runStarter) resume(ctx context.Context, c *caller, v *runlog.View, answers map[string]lathe.Output) *problem {
	if p := ex.takes(); p != nil {
		return p
	}
	if v.Stepped() != nil {
		return ex.resumeStepped(ctx, c, v, answers)
	}
	if v.State.Paused == "" {
		return ownedElsewhere()
	}
	l, p := c.loopOf(v)
	if p != nil {
		return p
	}
	setup := ex.hold(c)
	if err := ex.opts.Supervisor.Resume(ctx, l, v.State.Run.RunID, answers, newObjectNote(ex.core, c, v.State.Run.Principal).with(setup)...); err != nil {
		setup.free()
		return ex.runFailed(c, err)
	}
	return nil
}

// loopOf returns the loop of the model that the run began with.
func (c *caller) loopOf(v *runlog.View) (*loop.Loop, *problem) {
	m, p := c.model(v.State.Target)
	switch {
	case p != nil && p.Status == http.StatusNotFound:
		return nil, conflict("model_gone", "The model that the run was begun with is not configured any more.")
	case p != nil:
		return nil, p
	}
	return m.Loop, nil
}

// waitLogged reads the events after v until settles returns true for one, and then returns true. It returns false if the
// run ends first, is suspended first, or logTimeout is over. If goesOn is true the run is known to resume, and being
// suspended does not end the wait.
func (h *inputHandler) waitLogged(ctx context.Context, sub *observe.Subscription, v *runlog.View, goesOn bool, settles func(event.Data) bool) bool {
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	last := v.State.LastID
	over, seen := false, false
	look := func(e *event.Event) {
		if e.ID <= last || over {
			return
		}
		last = e.ID
		switch e.Data.(type) {
		case *event.RunPaused:
			over = !goesOn
		case *event.RunFinished:
			over = true
		default: // the run continues
		}
		if settles(e.Data) {
			over, seen = true, true
		}
	}
	for !over {
		heard, stop := context.WithTimeout(ctx, h.opts.Limits.Poll)
		e, err := sub.Next(heard)
		stop()
		switch {
		case err == nil:
			look(&e)
		case ctx.Err() != nil:
			return false
		case h.shared == nil && !errors.Is(err, context.DeadlineExceeded):
			return false
		case h.shared != nil: // another process may execute the run: its events are only in the store
			for e, err := range h.opts.Index.Read(ctx, v.State.Run.RunID, last) {
				if err != nil {
					return false
				}
				look(&e)
			}
		}
	}
	return seen
}

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
	p := readObject(c.body, &d, `{"decision":"approve","digest":"…"}`)
	if p == nil && h.opts.Approvals == nil {
		p = conflict("no_approvals", "No approver can be asked on this gateway.")
	}
	if p == nil && d.Digest == "" {
		p = badRequest("digest", "Say the args_digest of the call: it stands for what you were shown.")
	}
	if p != nil {
		return p
	}
	id := r.PathValue("id")
	unlock, p := h.locks.lock(r.Context(), id)
	if p != nil {
		return p
	}
	defer unlock()
	v, owned, p := h.viewToDecide(r.Context(), c, id)
	status := http.StatusOK
	switch {
	case p != nil:
	case !c.key.mayDecide(v.State.Run.Principal):
		p = mayNotDecide()
	default:
		status, p = h.decide(r.Context(), c.acting(owned), v, r.PathValue("call"), &d, c.decider())
	}
	if p == nil {
		v, _, p = h.viewToDecide(r.Context(), c, id)
	}
	if p != nil {
		return p
	}
	b := h.body(r.Context(), c, v)
	if !owned && !c.key.isAdmin() {
		b.Answer, b.Labels = "", nil
	}
	return answerAs(w, status, b)
}

// decide stores a decision and resumes the run. It returns 200 if the decision is in the log, and 202 if it is stored and
// the run will read it.
func (h *inputHandler) decide(ctx context.Context, c *caller, v *runlog.View, call string, d *decision, by string) (int, *problem) {
	id := v.State.Run.RunID
	o, p := h.asked(ctx, v, call)
	if p == nil {
		p = h.reaches(v)
	}
	if p != nil {
		return 0, p
	}
	if o.Digest != d.Digest {
		return 0, conflict("digest_mismatch", "The digest is not that of the call: look at the run again.")
	}
	live := h.executes(id)
	if !h.opts.Now().Before(o.ExpiresAt) {
		if !live {
			// The run continues without the approval. An error is dropped, because the response to a late answer is the same, and
			// Maintain resumes runs with expired requests too.
			_ = h.resume(ctx, c, v, nil)
		}
		return 0, conflict(string(lathe.CodeApprovalExpired), "The request for approval has expired.")
	}
	waits := h.opts.Approvals.Await(v.Request(o))
	err := h.opts.Approvals.Answer(ctx, o.Digest, approval.Answer{Verb: d.Decision, By: by, ReasonCode: d.Reason, Scope: d.Scope, Arguments: d.Arguments, Result: d.Result, InRequest: d.inRequest})
	switch code := lathe.CodeOf(err); {
	case code == lathe.CodeInvalidRequest:
		return 0, badRequest("decision", "The decision cannot be taken: %s.", problems.Cause(err))
	case code == lathe.CodeApprovalExpired:
		return 0, conflict(string(code), "The request for approval has expired.")
	case code == lathe.CodeUnavailable, code == lathe.CodeTimeout:
		return 0, h.storeFailed(c, err)
	case err != nil, !waits && live:
		return 0, h.decided(ctx, v, o.ID)
	}
	return h.apply(ctx, c, v, live, func(d event.Data) bool {
		e, ok := d.(*event.ApprovalResolved)
		return ok && e.ToolCallID == o.ID
	})
}

// apply makes the run read its stored signals, now or when it is suspended next. It returns 200 if settles has matched an
// event of the log, and 202 if the signal has not been applied yet. If later is true and the run is in progress, it returns
// 202 without waiting. The caller must have locked the run.
func (h *inputHandler) apply(ctx context.Context, c *caller, v *runlog.View, later bool, settles func(event.Data) bool) (int, *problem) {
	if v.Stepped() != nil {
		return h.applyStepped(ctx, c, v, WakeInput, settles)
	}
	id := v.State.Run.RunID
	sub := h.opts.Bus.Subscribe(id)
	defer sub.Close()
	goesOn := h.opts.Supervisor.Notify(id)
	switch {
	case goesOn:
	case h.inflight.find(id) != nil:
		h.resumeLater(ctx, c, id)
		goesOn = true
	case v.State.Paused == "": // the run was in progress when v was read, and may be suspended by now
		now, p := h.view(ctx, c, id)
		if p == nil {
			p = now.Ended()
		}
		if p != nil {
			return 0, p
		}
		if goesOn = now.State.Paused == ""; goesOn && h.shared == nil {
			return 0, ownedElsewhere()
		}
		v = now // if the run is still in progress, the process that owns it reads the signal
	}
	if !goesOn {
		later = false
		p := h.resume(ctx, c, v, nil)
		switch {
		case p == nil:
		case h.shared != nil && p.Code == "run_changed": // another process has acquired the run
			goesOn = true
		case h.shared != nil && (p.Code == "overloaded" || p.Code == "draining"): // another process will acquire the run
			later = true
		default:
			return 0, p // the signal is stored; the client may repeat the request
		}
	}
	if later || !h.waitLogged(ctx, sub, v, goesOn, settles) {
		return http.StatusAccepted, nil
	}
	return http.StatusOK, nil
}

// asked returns the open call of the run for which an approval was requested, or a problem if none exists.
func (h *inputHandler) asked(ctx context.Context, v *runlog.View, call string) (*loop.OpenCall, *problem) {
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
		return nil, h.decided(ctx, v, call)
	case !o.Asked:
		return nil, conflict("not_asked", "No approval of the call was requested.")
	}
	return o, nil
}

// resumeLater resumes a run in progress as soon as it is suspended, because the run may have missed a stored signal. It
// returns at once.
func (h *inputHandler) resumeLater(ctx context.Context, c *caller, id string) {
	own := *c
	own.setup = h.work.begin()
	ctx = context.WithoutCancel(ctx)
	go func() {
		defer h.work.end(own.setup)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(h.stopped, cancel)()
		_, _ = h.waitRun(ctx, id) // the log, which is read below, has the state of the run
		unlock, p := h.locks.lock(ctx, id)
		if p != nil {
			return // the server stops, and another process will resume the run
		}
		defer unlock()
		v, p := h.view(ctx, &own, id)
		if p == nil && v.State.Paused != "" && v.State.Finished == nil && !h.executes(id) && h.saidSince(ctx, v) {
			p = h.resume(ctx, &own, v, nil)
		}
		if p != nil {
			h.opts.Log.Error("a run could not be resumed", "run_id", id, "code", p.Code)
		}
	}()
}

// saidSince reports whether the store contains a signal that the suspended run waits for.
func (h *inputHandler) saidSince(ctx context.Context, v *runlog.View) bool {
	facts, err := h.facts.Signals(ctx, v.State.Run.RunID)
	return err == nil && slices.ContainsFunc(facts, func(f store.Signal) bool {
		o := v.OpenCall(f.Key)
		return o != nil && (f.Kind == store.SignalResult || f.Kind == store.SignalApproval && o.Asked)
	})
}

// A resultBody is the result of a client call in a request. Content is a JSON string or any other JSON value.
type resultBody struct {
	ID      string          `json:"tool_call_id"`
	Content json.RawMessage `json:"content"`
	IsError bool            `json:"is_error"`
}

// takeResults handles POST /api/runs/{id}/tool_results: it stores the results of client calls and resumes the run.
func (h *inputHandler) takeResults(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	var body struct {
		Results []resultBody `json:"results"`
	}
	answers := map[string]lathe.Output{}
	p := readObject(c.body, &body, `{"results":[{"tool_call_id":"…","content":"…"}]}`)
	if p == nil {
		p = readResults(body.Results, answers)
	}
	if p != nil {
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
		status, p = h.giveResults(r.Context(), c, v, answers)
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
	for i := range results {
		one := &results[i]
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
		if _, own := v.Client[id]; own {
			continue
		}
		if !splice.IsGatewayID(id) {
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

// giveResults stores the results and makes the run read them. It returns the statuses of apply.
func (h *inputHandler) giveResults(ctx context.Context, c *caller, v *runlog.View, answers map[string]lathe.Output) (int, *problem) {
	if p := takes(v, answers); p != nil {
		return 0, p
	}
	if p := h.reaches(v); p != nil {
		return 0, p
	}
	id := v.State.Run.RunID
	if v.State.Paused == "" && v.Stepped() == nil && h.shared == nil && !h.executes(id) {
		return 0, ownedElsewhere()
	}
	if p := h.keepResults(ctx, c, id, answers); p != nil {
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

// keepResults stores as many of the results as possible. It returns the problem that a call already has another result only
// if there is no other problem.
func (h *inputHandler) keepResults(ctx context.Context, c *caller, id string, answers map[string]lathe.Output) (bad *problem) {
	for call, out := range answers {
		if p := h.keepResult(ctx, c, id, call, out); p != nil && (bad == nil || bad.Code == "already_answered") {
			bad = p
		}
	}
	return bad
}

// keepResult stores one result. The first result of a call counts; an equal one may be sent again.
func (co *core) keepResult(ctx context.Context, c *caller, id, call string, out lathe.Output) *problem {
	f, err := engine.ResultSignal(id, call, out)
	if err == nil {
		err = co.facts.PutSignal(ctx, f)
	}
	if lathe.CodeOf(err) == lathe.CodeConflict {
		var facts []store.Signal
		if facts, err = co.facts.Signals(ctx, id); err == nil && !slices.ContainsFunc(facts, func(k store.Signal) bool {
			return k.Kind == f.Kind && k.Key == f.Key && bytes.Equal(k.Body, f.Body)
		}) {
			return conflict("already_answered", "The call has its result already.")
		}
	}
	if err != nil {
		return co.runFailed(c, err)
	}
	return nil
}

// takes returns a problem if one of the answers is not for an open client call of the run.
func takes(v *runlog.View, answers map[string]lathe.Output) *problem {
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

// ownedElsewhere returns the problem of a run that another process executes, or that a process executed which has stopped.
func ownedElsewhere() *problem {
	return conflict("run_elsewhere", "The run goes on in another process, or in one that is gone.")
}
