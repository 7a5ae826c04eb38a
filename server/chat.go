package server

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/gateway/pairs"
	"github.com/lathe-run/lathe/internal/gateway/places"
	problems "github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/gateway/runlog"
	"github.com/lathe-run/lathe/internal/gateway/splice"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/openai"
)

// serve returns the handler of a protocol's requests for an answer: one run, stream or not.
func (h *chatHandler) serve(pr *protocol) handler {
	return func(w http.ResponseWriter, r *http.Request, c *caller) { h.answer(w, r, c, pr) }
}

func (h *chatHandler) answer(w http.ResponseWriter, r *http.Request, c *caller, pr *protocol) {
	a, p := h.readChat(r, c, pr)
	if p != nil {
		c.fail(w, p)
		return
	}
	defer func() { a.unlock() }()
	if a.warm {
		h.warmUp(w, a)
		return
	}
	for range maxContinued {
		if h.repeated(w, r, a) || !h.answerChat(w, r, a) {
			return
		}
		a.restart(r.Context())
	}
	h.failChat(w, a, repeatLimit())
}

// answerChat runs the job of a and answers with what it comes to. It reports true, and has answered nothing, where
// another run answers the request: see [job.lost].
func (h *chatHandler) answerChat(w http.ResponseWriter, r *http.Request, a *chat) (lost bool) {
	c := a.caller
	if a.req.Stream {
		return h.stream(w, r, c, &a.job, a)
	}
	res, p := h.whole(r, c, a)
	switch {
	case r.Context().Err() != nil:
		c.code = "client_gone"
		return false
	case a.job.lost():
		return true
	case p != nil:
		c.fail(w, p)
		return false
	}
	p = problems.Ended(res)
	if p == nil {
		p = a.withdrawn(res)
	}
	if p != nil {
		a.job.track.permit(res, p)
		a.header(w.Header())
		c.fail(w, p)
		return false
	}
	h.writeWhole(w, r, a, res)
	return false
}

// writeWhole writes an answer in one piece.
func (h *chatHandler) writeWhole(w http.ResponseWriter, r *http.Request, a *chat, res *event.Result) {
	a.header(w.Header())
	if res.Reason == lathe.ReasonInvalidAnswer || res.Reason == lathe.ReasonEmptyAnswer {
		w.Header().Set("X-Lathe-Reason", string(res.Reason))
	}
	body := a.whole
	if a.asItCame(res) {
		a.noteReasoning(res)
	} else {
		body = a.appendWhole(takeBuffer(), res)
	}
	header := w.Header()
	header["Content-Type"], header["Cache-Control"] = typeJSON, uncached
	rc := http.NewResponseController(w)
	_ = rc.SetWriteDeadline(time.Now().Add(h.opts.Limits.WriteTimeout)) // a test's writer has none
	if err := a.job.track.deliver(r.Context(), res, func() error { return writeAll(w, rc, body, a.job.track.recorded()) }); err != nil {
		a.caller.code = "client_gone"
	} else { // a write that failed may still read the body
		a.whole = nil
		giveBack(body)
	}
	_ = rc.SetWriteDeadline(time.Time{})
}

// writeAll writes a body. With flush it returns once the body is on its way to the client.
func writeAll(w http.ResponseWriter, rc *http.ResponseController, body []byte, flush bool) error {
	if flush {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	if _, err := w.Write(body); err != nil || !flush {
		return err
	}
	return rc.Flush()
}

// whole returns what the run of a came to, for a client that is shown nothing before. It returns early when the
// client leaves.
func (h *chatHandler) whole(r *http.Request, c *caller, a *chat) (*event.Result, *problem) {
	var res *event.Result
	if !a.job.detach && a.job.follow == "" && a.job.stepped == nil {
		res = h.runInline(r.Context(), c, &a.job, onEvent(a.unlock))
	} else {
		f, leave, p := h.start(r.Context(), c, &a.job, nil, onEvent(a.unlock))
		if p != nil {
			return nil, p
		}
		defer leave()
		if res, p = h.waitFor(r, f); res == nil {
			return nil, p
		}
	}
	for {
		hold := min(h.holdFor(c, &a.job, res), maxWholeHold)
		if hold == 0 {
			return res, nil
		}
		v, p := h.view(r.Context(), c, c.runID)
		if p != nil {
			return nil, p
		}
		if v.State.Finished != nil { // meanwhile
			return v.Result(), nil
		}
		f, leave := h.follow(r.Context(), c, c.runID, v.State.LastID, hold, nil, nil)
		before := v.State.LastID
		next, p := h.waitFor(r, f)
		leave()
		if next == nil {
			return nil, p
		}
		if v, p = h.view(r.Context(), c, c.runID); p != nil || v.State.LastID == before { // no approval was decided in the meantime
			return next, p
		}
		res = next
	}
}

// waitFor waits until the inflightRun is over. The result is nil where the client leaves before that, or the server stops.
func (ex *runStarter) waitFor(r *http.Request, f *inflightRun) (*event.Result, *problem) {
	select {
	case <-f.over:
		return f.res, nil
	case <-r.Context().Done():
		return nil, nil
	case <-ex.stopped.Done(): // it is left for a later process
		return nil, problems.FailureFor(lathe.ReasonInterrupted)
	}
}

// readChat reads the request and makes the run of it.
func (h *planner) readChat(r *http.Request, c *caller, pr *protocol) (_ *chat, p *problem) {
	body, warm, socket := c.body, false, socketOf(r.Context())
	if socket != nil {
		if body, warm, p = createBody(c.body); p != nil {
			return nil, p
		}
	}
	req, withheld, p := h.read(c, pr, r, body)
	if p != nil {
		return nil, p
	}
	if p := h.checkSize(r.Context(), c, req.Messages); p != nil {
		return nil, p
	}
	a := &chat{}
	a.request = request{handler: h, caller: c, members: members{protocol: pr, req: req, ignored: withheld}, socket: socket, warm: warm, parsed: req.Messages, from: r, requested: r.Header}
	a.unlock, a.head = func() {}, wire.AnswerHead{Model: req.Model, Created: h.opts.Now().Unix(), Request: req}
	if a.fresh, p = asksAnew(r); p != nil {
		return nil, p
	}
	asked := a.asked()
	a.plain = asked == nil && !req.Obfuscate && !(pr.array && req.Stream)
	a.alone = wantsJSON(req.Sampling.ResponseFormat)
	options, p := parseOptions(asked)
	if p != nil {
		return nil, p
	}
	if p := h.planChat(r.Context(), a, options); p != nil || a.in.Relay != nil {
		return a, p
	}
	if p := h.earlier.spliceResumed(r.Context(), a); p != nil {
		return a, p
	}
	h.trackChat(a)
	return a, nil
}

// planChat makes the plan of a chat completion: the input of its run with the hidden turns of the conversation, or the run
// that the request resumes or attaches to.
func (h *planner) planChat(ctx context.Context, a *chat, options *requestOptions) (p *problem) {
	c, req := a.caller, a.req
	a.session = options.session
	a.shows = a.protocol.showsCalls && options.show != showHidden
	a.asks = a.shows && (options.show == showItems || asksByItem(req.Hosted))
	relay := lathe.Wire("")
	if a.plain && a.passesBytes() {
		relay = a.protocol.Wire()
	}
	if p := h.makePlan(ctx, c, &runRequest{model: req.Model, sampling: &req.Sampling, user: req.User, tools: req.Tools, toolsParam: a.protocol.tools,
		choice: req.ToolChoice, parallel: req.ParallelToolCalls, options: options, relay: relay, accept: a.accept}, &a.plan); p != nil {
		return a.protocol.reword(p)
	}
	setAliases(req)
	m, in, relayed := a.plan.model, &a.in, a.plan.relayed
	a.restrictTools()
	a.acceptBetas(m, a.requested)
	if p := a.acceptVersion(m, a.requested); p != nil {
		return p
	}
	if p := h.restoreIDs(ctx, a); p != nil {
		return p
	}
	if done, p := h.takeApprovals(ctx, a, m); done || p != nil {
		return p
	}
	if in.Overrides = a.passed; relayed {
		in.Relay = &lathe.Relay{Wire: relay, Stream: req.Stream, Take: a.keepWhole, Opaque: req.Foreign != nil || req.N != 1}
		in.Allow = []string{} // whatever tools come to be here meanwhile
	}
	moved := returnReasoning(a)
	waits, p := h.continueResponse(ctx, a)
	if p != nil {
		return p
	}
	if waits != nil {
		done, p := h.resumeRun(ctx, a, m, waits)
		if p == nil && !done {
			p = noResponse(http.StatusBadRequest, "previous_response_id")
		}
		return p
	}
	if bad := pairs.Check(req.Messages); bad != nil {
		return bad.Problem(a.protocol.Wire(), places.Of(a.protocol.Wire(), req.Body, a.parsed, req.Messages))
	}
	j, p := h.restore(ctx, a, relayed)
	if p != nil {
		return p
	}
	if relayed && !j.Changed && !moved && sendable(&a.members) {
		in.Relay.Request = req.Body
		if len(a.ignored) > 0 {
			in.Relay.Request = openai.Cut(req.Body, func(name string) bool { return slices.Contains(a.ignored, name) })
		}
	}
	a.sum, a.after, a.lost = j.Sum, j.Last, j.Lost
	h.countLost(c, j.Lost)
	if j.Waits != nil {
		done, p := h.resumeRun(ctx, a, m, j.Waits)
		if p != nil || done {
			return p
		}
	}
	in.Messages, a.base = j.Messages, len(j.Messages)
	if !relayed {
		left, p := m.checkContent(in.Messages, a.place)
		if p != nil {
			return p
		}
		a.dropped = append(a.dropped, left...)
	}
	// A run that hands calls over ends; what comes back is a run of its own. One that asks a person waits, where it is kept.
	in.Park, in.HandOver = h.opts.Index != nil, true
	asks := in.Park && !relayed && h.asks(&a.settings)
	if asks {
		if v := h.equalRun(ctx, a); v != nil && !a.fresh {
			after, base := v.Since(req.Messages)
			a.attach(ctx, m, v, after, base)
			return nil
		}
		in.Run.Labels = withLabel(in.Run.Labels, labelRequest, a.digest())
	}
	if in.Park && (asks || len(req.Tools) > 0) {
		in.Run.Labels = withLabel(in.Run.Labels, splice.LabelConversation, j.Sum)
	}
	a.keep()
	in.Run.RunID = h.opts.Engine.NewRunID()
	a.begin(ctx, runlog.AnswerID{Run: in.Run.RunID}, &a.settings, &a.limits)
	if a.protocol.Wire() != lathe.WireOpenAIChat && !relayed {
		a.carriers = h.turns.NewCarriers(ctx, a.hidden(), a.in.Run.RunID)
	}
	a.storeRequest()
	a.job = job{loop: m.Loop, in: in, detach: options.detach, holds: a.holds}
	if asks {
		a.job.note = &waitingNote{h.turns, a.digest()}
	}
	if !options.detach && options.session == "" && !a.durable() {
		a.job.due = c.due(req.Tools)
	}
	return nil
}

// asks reports whether a run under the settings may ask a person.
func (h *planner) asks(s *lathe.Settings) bool {
	return h.opts.Approvals != nil && s.ToolUseMode != lathe.ModeDisabled
}

// restore returns the conversation of the request as a model receives it: with its hidden turns, and with the content of the
// carriers, calls of this server and compaction items in it. That of a compaction ends with the request for the summary. Its size is
// checked, and its memory reserved.
func (h *planner) restore(ctx context.Context, a *chat, relayed bool) (*splice.Spliced, *problem) {
	a.keepsText = !relayed && a.caller.hasTools()
	j := h.conversationOf(ctx, a, relayed)
	if j.Failed == nil {
		h.turns.Open(ctx, a.hidden(), j)
	}
	if j.Failed != nil {
		return nil, j.Failed
	}
	if a.protocol.showsCalls {
		own, resolved := a.caller.resolveItems(j.Messages)
		j.Messages, j.Changed = own, j.Changed || resolved
	}
	if p := h.openCompactions(ctx, a, j); p != nil {
		return nil, p
	}
	if a.compacts() {
		j.Messages, j.Waits = append(slices.Clip(j.Messages), lathe.Message{Role: lathe.RoleUser, Parts: []lathe.Part{lathe.Text{Text: askSummary}}}), nil
	}
	return j, h.checkSize(ctx, a.caller, j.Messages)
}

// setAliases sets the names by which the client knows its tools: prompts and histories have these, and models call the tools by them.
func setAliases(req *wire.ClientRequest) {
	for _, t := range req.Tools {
		own, renamed := req.Names[t.Name]
		if !renamed || own.Name == t.Name {
			continue
		}
		if t.Aliases = []string{own.Name}; own.Namespace != "" {
			t.Aliases = append(t.Aliases, own.Namespace+own.Name)
		}
	}
}

// sendable reports whether model servers take the calls of the conversation as they are, under their own ids. Calls of forms that
// the server does not read are not judged.
func sendable(ms *members) bool {
	req := ms.req
	if req.Foreign != nil || ms.callTurns != nil {
		return ms.callTurns == nil
	}
	for i := range req.Messages {
		for _, p := range req.Messages[i].Parts {
			if call, ok := p.(lathe.ToolCall); ok && !openai.Sendable(call.Arguments) {
				return false
			}
		}
	}
	return true
}

// wantsJSON reports whether a response_format asks for anything but plain text.
func wantsJSON(format []byte) bool {
	kind, ok := rawjson.Get(format, "type")
	return ok && !rawjson.EqualKey(kind, "text")
}

// misread is the answer to a request with a mistake.
func misread(bad *wire.APIError) *problem {
	return &problem{Status: bad.Status, Code: cmp.Or(bad.Code, "invalid_request"), Message: bad.Message, Param: bad.Param}
}

// accept sorts the members of the request that Lathe does not read, and refuses a request that could only be relayed if it
// is not relayed.
func (a *exchange) accept(ctx context.Context, m *Model, relayed bool) *problem {
	if p := a.acceptCompaction(ctx, m); p != nil {
		return p
	}
	if p := a.sort(m, relayed); p != nil {
		return p
	}
	if limitsObjects(a.caller) {
		if p := a.handler.objects.check(ctx, a.caller, objectsOf(a.req.Body, relayed)); p != nil {
			return p
		}
	}
	if p := a.acceptHosted(m, relayed); p != nil || relayed {
		return p
	}
	if m.Loop.Wire() != a.protocol.Wire() {
		if a.req.Updated != nil {
			a.req.Sampling, a.alone = *a.req.Updated, wantsJSON(a.req.Updated.ResponseFormat)
		}
		a.req.Tools = slices.DeleteFunc(a.req.Tools, func(t *lathe.ToolSpec) bool { return slices.Contains(a.req.Removed, t.Name) })
		a.in.ClientTools = a.req.Tools
	}
	const unless = " A request is passed on to the model server as it is, with this, if its key may use no tool of this server and it has no member lathe."
	if a.req.Foreign != nil {
		p := misread(a.req.Foreign)
		p.Message += unless
		return p
	}
	if a.req.N != 1 {
		return badRequest("n", "This server gives one choice: n must be 1."+unless)
	}
	return nil
}

// begin makes the head of an answer, and what writes the calls of its run.
func (a *content) begin(ctx context.Context, id runlog.AnswerID, settings *lathe.Settings, limits *lathe.Limits) {
	a.head.ID = id.String()
	if a.req.Stream {
		a.writer = a.protocol.NewWriter(&a.head)
	}
	a.handOver(settings, limits)
	a.calls.ids = newCallIDs(ctx, &a.exchange, id.Run)
}
