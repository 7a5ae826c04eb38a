package server

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/gateway/places"
	"github.com/lathe-run/lathe/internal/gateway/runlog"
	"github.com/lathe-run/lathe/internal/runinput"
	"github.com/lathe-run/lathe/internal/wire/uistream"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

// Chat pages use /api/chat: they send their conversation and read one run as a stream of their protocol. If the run
// requests an approval, its stream ends with that request. The page then sends the decision in a further request, which
// resumes the same run; the page shows both streams as one message. Resuming requires a store of runs.

// uiChat handles POST /api/chat. If another run takes precedence, it tries again, at most maxContinued times.
func (h *uiHandler) uiChat(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	u, p := h.readUI(r, c)
	if p != nil {
		return p
	}
	defer func() { u.unlock() }()
	x := &uiAnswer{h, w, r, u}
	for n := range maxContinued {
		if h.earlier.answerRepeated(w, r, &u.job, u, x) {
			return nil
		}
		p := h.resumeSuspended(r.Context(), c, u)
		wasResumed := p != nil && p.Code == ownedElsewhere().Code // by an equal request
		if wasResumed && u.job.track != nil && n == 0 {
			continue // answerRepeated gives this request the answer of that one
		}
		if p == nil && !u.hasRun() { // no suspended run waits for this request
			p = h.planUI(r.Context(), c, u)
		}
		if p != nil {
			failStream(w, c, &u.job, u, p)
			return nil
		}
		if !x.execute() {
			return nil
		}
		u.begin(job{})
	}
	failStream(w, c, &u.job, u, repeatLimit())
	return nil
}

// A uiChat is one request of a chat page and the encoder of its stream.
type uiChat struct {
	protocol uistream.Protocol
	req      *uistream.Request
	options  *requestOptions
	encode   uistream.Options
	enc      *uistream.Encoder
	job      job
	caller   *caller
	buffered []byte // events that are written only after the head: if the run fails before its first output, the response is an error status
	headSent bool
	unlock   func() // unlocks the run that the request resumes; it may be called twice
}

// begin sets the job, and begins the stream of its run. What the client has received of the response, and the tracked request,
// stay.
func (u *uiChat) begin(j job) {
	j.track, j.out = u.job.track, u.job.out
	u.job, u.enc, u.buffered, u.headSent = j, uistream.NewEncoder(u.protocol, &u.encode), nil, false
}

// hasRun reports whether the job has a run that answers the request: a suspended or a new one.
func (u *uiChat) hasRun() bool { return u.job.loop != nil }

func (u *uiChat) Header(h http.Header) {
	setHeaders(h, u.protocol)
	if u.caller.runID != "" {
		h.Set("X-Lathe-Run-Id", u.caller.runID)
	}
}

func (u *uiChat) AppendKeepAlive(dst []byte) []byte { return u.protocol.AppendKeepAlive(dst) }

// AppendEvent implements [stream.Encoder]. It buffers the events before the first output of the model.
func (u *uiChat) AppendEvent(dst []byte, e *event.Event) []byte {
	u.unlock()
	if !u.headSent && !hasOutput(e.Data) {
		u.buffered = u.enc.Append(u.buffered, e)
		return dst
	}
	dst, u.buffered, u.headSent = append(dst, u.buffered...), nil, true
	return u.enc.Append(dst, e)
}

// hasOutput reports whether an event has output of the model or of a tool, so that the response can begin.
func hasOutput(data event.Data) bool {
	switch d := data.(type) {
	case *event.RunStarted, *event.RunResumed, *event.ModelCallStarted, *event.RunFinished, *event.RunPaused:
		return false
	case *event.ModelCallFinished:
		return d.Status == "success"
	default:
		return true
	}
}

// AppendEnd implements [stream.Encoder].
func (u *uiChat) AppendEnd(dst []byte, res *event.Result, p *problem) []byte {
	dst, u.buffered = append(dst, u.buffered...), nil
	if res == nil { // the run continues in another process, or did not begin
		return u.enc.AppendFailure(dst, lathe.Code(p.Code), p.Message)
	}
	return u.enc.AppendEnd(dst)
}

// uiProtocol returns the stream protocol that the request names in its query or in the header X-Lathe-Protocol.
func uiProtocol(r *http.Request) (uistream.Protocol, *problem) {
	name, param := r.URL.Query().Get("protocol"), "protocol"
	if name == "" {
		name, param = r.Header.Get("X-Lathe-Protocol"), "X-Lathe-Protocol"
	}
	p, err := uistream.ParseProtocol(name)
	if err != nil {
		known := names(uistream.Protocols())
		return "", badRequest(param, "%s is one of %s.%s", param, strings.Join(known, ", "), mean(name, known))
	}
	return p, nil
}

func (h *uiHandler) readUI(r *http.Request, c *caller) (*uiChat, *problem) {
	limits := h.uiLimits()
	u := &uiChat{caller: c, unlock: func() {}}
	u.encode.MaxArgs, u.encode.MaxResult = limits.MaxArgs, limits.MaxResult
	var p *problem
	if u.protocol, p = uiProtocol(r); p != nil {
		return nil, p
	}
	if p := foreignBody(c, c.body); p != nil {
		return nil, p
	}
	req, err := uistream.ParseRequest(c.body, &uistream.ParseOptions{Limits: limits})
	if err != nil {
		return nil, badUI(err)
	}
	if p := h.checkSize(r.Context(), c, req.Messages); p != nil {
		return nil, p
	}
	u.req, u.encode.State = req, req.State
	namesProtocol := r.URL.Query().Get("protocol") != "" || r.Header.Get("X-Lathe-Protocol") != ""
	if req.State != nil && !namesProtocol {
		u.protocol = uistream.AssistantTransport // only this protocol has a body with a state
	}
	if u.options, p = parseUIOptions(req.Lathe); p != nil {
		return nil, p
	}
	u.options.session = cmp.Or(u.options.session, req.StateKey, req.ID)
	u.encode.ThreadID, u.encode.Approvals = req.ID, h.opts.Approvals != nil
	if u.protocol == uistream.AGUI {
		u.encode.RunID = req.RunID
	}
	u.begin(job{})
	return u, h.trackUI(r, u)
}

func badUI(err error) *problem {
	var bad *uistream.RequestError
	if !errors.As(err, &bad) {
		return badRequest("", "The request could not be read.")
	}
	setting := ""
	if bad.Limit == "max_text" {
		setting = " The gateway's setting serve.max_text is this limit."
	}
	return badRequest(bad.Param, "%s: %s%s", bad.Param, bad.Message, setting)
}

// planUI makes the plan of a new run for a request of a chat page.
func (h *uiHandler) planUI(ctx context.Context, c *caller, u *uiChat) *problem {
	req := u.req
	plan := &plan{}
	if p := h.makePlan(ctx, c, &runRequest{model: c.uiModel(req.Model), messages: req.Messages, sampling: &u.options.sampling, tools: req.Tools, toolsParam: "tools", options: u.options,
		place: places.Of(places.Page, c.body, req.Messages, req.Messages)}, plan); p != nil {
		return p
	}
	plan.in.Park = h.opts.Index != nil
	// In the other protocols the page does not send the id of its run back. There the run ends with its calls, and a further
	// request has their results only in its conversation.
	sendsRunID := u.protocol == uistream.UIMessages || u.protocol == uistream.UIMessagesV5 || req.State != nil
	runinput.Of(&plan.in).HandOver = !sendsRunID
	u.begin(job{loop: plan.model.Loop, in: &plan.in, detach: u.options.detach})
	return nil
}

// uiModel returns the model for a page: the named one, the default model if name is "", or the first model of the key if
// the key may not use the default.
func (c *access) uiModel(name string) string {
	if name == "" && !c.key.mayModel("") {
		if names := c.modelNames(); len(names) > 0 {
			return names[0]
		}
	}
	return name
}

// resumeSuspended makes the job of u resume the suspended run that waits for the approvals and results in the last message.
// It does nothing if there is no such run. The run stays locked until u.unlock is called.
func (h *uiHandler) resumeSuspended(ctx context.Context, c *caller, u *uiChat) *problem {
	last := u.req.Last
	if last == nil || h.opts.Index == nil || len(last.Approvals)+len(last.Results) == 0 {
		return nil
	}
	id, p := h.waitingRun(ctx, c, u)
	if p != nil {
		return p
	}
	if id == "" {
		return h.staleApproval(ctx, nil, last)
	}
	unlock, p := h.locks.lock(ctx, id)
	if p != nil {
		return p
	}
	u.unlock = sync.OnceFunc(unlock)
	v, p := h.view(ctx, c, id)
	if p == nil && v.State.Finished == nil {
		p = h.takeUI(ctx, c, u, v)
	}
	if p == nil && u.hasRun() {
		return nil
	}
	// The run is not resumed, so it does not answer the request.
	u.unlock()
	c.runID, u.encode.Open = "", nil
	if p != nil && p.Code != noRun().Code {
		return p
	}
	return h.staleApproval(ctx, v, last) // v is nil if the run was deleted: only the conversation of the request is left
}

// staleApproval returns the problem for a request whose approvals belong to no waiting call. A new run would request the
// approval again, or give the model a decision that was not made. It returns nil if the request has no approval, or also
// has results of the page.
func (h *uiHandler) staleApproval(ctx context.Context, v *runlog.View, last *uistream.Waiting) *problem {
	if len(last.Approvals) == 0 || len(last.Results) > 0 {
		return nil
	}
	if v != nil {
		for _, d := range h.decisionsOf(ctx, v) {
			if slices.ContainsFunc(last.Approvals, func(a uistream.Approval) bool { return a.ID != "" && a.ID == d.Digest }) {
				return h.alreadyDecided(ctx, v, d.CallID)
			}
		}
	}
	return badRequest("messages", "No call waits under the approval that the last message answers: its run has ended, is of another conversation, or is not kept any more. Send a new message of the user.").WithCode("approval_not_found")
}

// waitingRun returns the id of the run that the last message belongs to: the one that the page names or, if it names none,
// the suspended run of its session. It returns "" if none exists.
func (h *uiHandler) waitingRun(ctx context.Context, c *caller, u *uiChat) (string, *problem) {
	if id := u.req.Last.RunID; id != "" || len(u.req.Last.Approvals) == 0 || u.options.session == "" {
		return id, nil
	}
	run, p := h.newestRun(ctx, c, &store.RunFilter{SessionID: u.options.session, Status: "parked"})
	return run.RunID, p
}

// takeUI passes the approvals and results of the page to the open calls of the run, and sets the job of u if there was one
// for an open call.
func (h *uiHandler) takeUI(ctx context.Context, c *caller, u *uiChat, v *runlog.View) *problem {
	id := v.State.Run.RunID
	if v.State.Paused == "" || h.executes(id) {
		if p := h.staleApproval(ctx, v, u.req.Last); p != nil && p.Decision != nil {
			return p
		}
		return ownedElsewhere()
	}
	if p := h.checkExecutor(v); p != nil {
		return p
	}
	answers := map[string]lathe.Output{}
	decided := 0 // number of the page's approvals that are for open calls
	for _, o := range v.State.Open {
		open := uistream.OpenCall{ToolCall: o.ToolCall, Unsent: u.unseen(o.ID)}
		if o.Asked {
			open.Approval = o.Digest
		}
		u.encode.Open = append(u.encode.Open, open)
		if out, ok := u.req.Last.Results[o.ID]; ok && v.Client[o.ID] {
			answers[o.ID] = out
		}
		i := slices.IndexFunc(u.req.Last.Approvals, func(a uistream.Approval) bool { return a.ID == o.Digest })
		if i < 0 || !o.Asked {
			continue
		}
		if p := h.answerUI(ctx, c, v, &o, u.req.Last.Approvals[i].Approved); p != nil {
			return p
		}
		decided++
	}
	if decided+len(answers) == 0 {
		return nil // the run waits for no approval and no result of the page: a new run answers the page
	}
	l, p := c.loopOf(v)
	if p != nil {
		return p
	}
	u.encode.MessageID = u.req.Last.MessageID
	u.begin(job{loop: l, resume: resumption{id, answers, v.Stepped()}, detach: u.options.detach && h.opts.Supervisor != nil})
	return nil
}

// unseen reports whether the page did not send the call back, so it does not know the call.
func (u *uiChat) unseen(id string) bool {
	return !slices.ContainsFunc(u.req.Last.Calls, func(c uistream.OpenCall) bool { return c.ID == id })
}

// answerUI stores the decision on one approval. If the approval has expired it returns nil, since the resumed run gives the
// call its result.
func (h *uiHandler) answerUI(ctx context.Context, c *caller, v *runlog.View, o *loop.OpenCall, approved bool) *problem {
	if h.opts.Approvals == nil {
		return conflict("no_approvals", "No approver can be asked on this gateway.")
	}
	if !c.key.mayDecide(v.State.Run.Principal) {
		return mayNotDecide()
	}
	verb := approval.Deny
	if approved {
		verb = approval.Approve
	}
	h.opts.Approvals.Await(v.Request(o))
	err := h.opts.Approvals.Answer(ctx, o.Digest, approval.Answer{Verb: verb, By: c.decider()})
	switch lathe.CodeOf(err) {
	case "", lathe.CodeApprovalExpired, lathe.CodeNotFound:
		return nil
	case lathe.CodeConflict:
		return h.alreadyDecided(ctx, v, o.ID)
	default: // an answer of this form has no other error
		return internalError("The answer could not be taken.")
	}
}
