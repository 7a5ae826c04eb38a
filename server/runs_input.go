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

// logTimeout is how long a request waits until what it brought is in the log of the run.
const logTimeout = 5 * time.Second

// maxResults bounds the results of one request.
const maxResults = 1000

// resume resumes a suspended run. The caller holds its lock.
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

// loopOf returns the loop that a run was begun with.
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

// waitLogged waits until settles has seen the events that it looks for, after the last one that v has, or the
// run has ended or, unless it is known to go on then, waits again, or it took too long. It reports whether
// they were seen.
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
		default: // it goes on
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
		case h.shared != nil: // it may be carried elsewhere
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

// A decision is the body of an answer to an approval.
type decision struct {
	Decision  approval.Verb   `json:"decision"`
	Digest    string          `json:"digest"`
	Reason    string          `json:"reason"`
	Scope     approval.Scope  `json:"scope"`
	Arguments json.RawMessage `json:"arguments"`
	Result    json.RawMessage `json:"result"`
	inRequest bool            // as in [lathe.Approval]
}

// answerApproval stores the decision about one call of a run and resumes the run. The first decision counts; it holds
// for the arguments that the approver was shown, and is accepted until the request expires.
func (h *inputHandler) answerApproval(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	var d decision
	p := readObject(c.body, &d, `{"decision":"approve","digest":"…"}`)
	if p == nil && h.opts.Approvals == nil {
		p = conflict("no_approvals", "No approver can be asked on this server.")
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

// decide answers 200 when the decision is in the log, and 202 when it will be looked at.
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
			_ = h.resume(ctx, c, v, nil) // so that it goes on; the answer is late either way
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
// event of the log, and 202 if the signal has not been applied yet; if later is set and the run is busy, it returns 202 at
// once. The caller holds the run's lock.
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
	case v.State.Paused == "": // it was in motion, and may wait by now
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
		case h.shared != nil && p.Code == "run_changed": // another process has acquired it
			goesOn = true
		case h.shared != nil && (p.Code == "overloaded" || p.Code == "draining"): // another process will
			later = true
		default:
			return 0, p // the client may send the same again
		}
	}
	if later || !h.waitLogged(ctx, sub, v, goesOn, settles) {
		return http.StatusAccepted, nil
	}
	return http.StatusOK, nil
}

// asked returns the call of the run that waits for an approval.
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

// resumeLater resumes a run in progress when it is suspended next, because it may have missed a stored decision.
func (h *inputHandler) resumeLater(ctx context.Context, c *caller, id string) {
	own := *c
	own.setup = h.work.begin()
	ctx = context.WithoutCancel(ctx)
	go func() {
		defer h.work.end(own.setup)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(h.stopped, cancel)()
		_, _ = h.waitRun(ctx, id) // its log says what came of it
		unlock, p := h.locks.lock(ctx, id)
		if p != nil {
			return // the server stops
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

// saidSince reports whether something that the run waits for is in the store by now.
func (h *inputHandler) saidSince(ctx context.Context, v *runlog.View) bool {
	facts, err := h.facts.Signals(ctx, v.State.Run.RunID)
	return err == nil && slices.ContainsFunc(facts, func(f store.Signal) bool {
		o := v.OpenCall(f.Key)
		return o != nil && (f.Kind == store.SignalResult || f.Kind == store.SignalApproval && o.Asked)
	})
}

// A resultBody is what a client says came of its call. Content is a text, or JSON that stands for one.
type resultBody struct {
	ID      string          `json:"tool_call_id"`
	Content json.RawMessage `json:"content"`
	IsError bool            `json:"is_error"`
}

// takeResults stores the results of client tool calls and resumes the run.
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

// originalIDs replaces the ids under which a client got calls of the run by those of the model server.
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

// giveResults keeps the results and has the run take them up. It answers as apply does.
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

// keepResults stores results. It stores all that it can, and that a call has another result is the problem only if there is no other one.
func (h *inputHandler) keepResults(ctx context.Context, c *caller, id string, answers map[string]lathe.Output) (bad *problem) {
	for call, out := range answers {
		if p := h.keepResult(ctx, c, id, call, out); p != nil && (bad == nil || bad.Code == "already_answered") {
			bad = p
		}
	}
	return bad
}

// keepResult stores one result. The first one of a call wins; the same one may be given again.
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

// takes says why the run does not take results for these calls.
func takes(v *runlog.View, answers map[string]lathe.Output) *problem {
	for id := range answers {
		client, known := v.Client[id]
		switch {
		case !known:
			return badRequest("results", "The run has no call of this id.")
		case !client:
			return badRequest("results", "The call is one of this server's tools: its result does not come from a client.")
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

func ownedElsewhere() *problem {
	return conflict("run_elsewhere", "The run goes on in another process, or in one that is gone.")
}
