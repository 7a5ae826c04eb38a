package gateway

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire/openai"
	"github.com/lathe-run/lathe/loop"
)

// chat answers OpenAI's chat completions: one run, stream or not.
func (g *Gateway) chat(w http.ResponseWriter, r *http.Request, c *caller) {
	a, p := g.readChat(w, r, c)
	if p != nil {
		c.fail(w, p)
		return
	}
	defer func() { a.unlock() }()
	if !g.repeated(w, r, a) {
		g.answerChat(w, r, a)
	}
}

// answerChat runs the job of a and answers with what it comes to. It reports true, and has answered nothing, where
// the run was to continue an earlier one and another process has begun it.
func (g *Gateway) answerChat(w http.ResponseWriter, r *http.Request, a *chat) (lost bool) {
	c := a.caller
	if a.req.Stream {
		return g.stream(w, r, c, &a.job, a)
	}
	res, p := g.whole(r, c, a)
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
	if p := ended(res); p != nil {
		a.job.track.permit(res, p)
		a.header(w.Header())
		c.fail(w, p)
		return false
	}
	a.noteReasoning(res)
	g.writeWhole(w, r, a, res)
	return false
}

// writeWhole writes an answer in one piece.
func (g *Gateway) writeWhole(w http.ResponseWriter, r *http.Request, a *chat, res *lathe.Result) {
	a.header(w.Header())
	body := a.whole
	if !a.asItCame(res) {
		body = openai.AppendCompletion(nil, &openai.Completion{ID: a.id, Model: a.req.Model, Created: a.created,
			Finish: a.finish(res, true), Extra: a.extra(res)})
	}
	h := w.Header()
	h["Content-Type"], h["Cache-Control"] = typeJSON, uncached
	rc := http.NewResponseController(w)
	_ = rc.SetWriteDeadline(time.Now().Add(g.opts.Limits.WriteTimeout)) // a test's writer has none
	if err := a.job.track.deliver(r.Context(), res, func() error { return writeAll(w, rc, body, a.job.track.recorded()) }); err != nil {
		a.caller.code = "client_gone"
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
func (g *Gateway) whole(r *http.Request, c *caller, a *chat) (*lathe.Result, *problem) {
	var res *lathe.Result
	if !a.job.detach && a.job.follow == "" {
		res = g.ride(r.Context(), c, &a.job, onEvent(a.unlock))
	} else {
		f, leave, p := g.fly(r.Context(), c, &a.job, nil, onEvent(a.unlock))
		if p != nil {
			return nil, p
		}
		defer leave()
		if res, p = g.landed(r, f); res == nil {
			return nil, p
		}
	}
	for {
		hold := min(g.holdFor(c, &a.job, res), maxWholeHold)
		if hold == 0 {
			return res, nil
		}
		v, p := g.view(r.Context(), c, c.runID)
		if p != nil {
			return nil, p
		}
		if v.state.Finished != nil { // meanwhile
			return v.result(), nil
		}
		f, leave := g.follow(r.Context(), c, c.runID, v.state.LastID, hold, nil, nil)
		before := v.state.LastID
		next, p := g.landed(r, f)
		leave()
		if next == nil {
			return nil, p
		}
		if v, p = g.view(r.Context(), c, c.runID); p != nil || v.state.LastID == before { // nobody has decided
			return next, p
		}
		res = next
	}
}

// landed waits until the flight is over. The result is nil where the client leaves before that, or the server stops.
func (g *Gateway) landed(r *http.Request, f *flight) (*lathe.Result, *problem) {
	select {
	case <-f.over:
		return f.res, nil
	case <-r.Context().Done():
		return nil, nil
	case <-g.stopped.Done(): // it is left for a later process
		return nil, failure(&lathe.Result{Reason: lathe.ReasonInterrupted})
	}
}

// readChat reads the request and makes the run of it.
func (g *Gateway) readChat(w http.ResponseWriter, r *http.Request, c *caller) (*chat, *problem) {
	if p := g.takes(); p != nil {
		return nil, p
	}
	body, p := g.readBody(w, r)
	if p != nil {
		return nil, p
	}
	req, err := openai.ParseAny(body)
	if err != nil {
		var bad *openai.APIError
		if !errors.As(err, &bad) {
			bad = &openai.APIError{Status: http.StatusBadRequest, Message: "The request could not be read."}
		}
		return nil, misread(bad)
	}
	if p := g.checkSize(r.Context(), req.Messages); p != nil {
		return nil, p
	}
	a := &chat{gateway: g, caller: c, req: req, body: body, unlock: func() {}, created: g.opts.Now().Unix()}
	if g.opts.Desk != nil && g.opts.Index != nil {
		a.server, a.equal = serverFlag(r), sumRequest(c.key.Name, body)
	}
	if a.fresh, p = asksAnew(r); p != nil {
		return nil, p
	}
	asked := a.asked()
	a.plain = asked == nil && !req.Obfuscate
	a.alone = wantsJSON(req.Sampling.ResponseFormat)
	wanted, p := parseWish(asked, "lathe")
	if p != nil {
		return nil, p
	}
	m, p := c.model(req.Model)
	if p != nil {
		return nil, p
	}
	c.named = req.Model
	if p := g.plan(r.Context(), a, m, wanted); p != nil || a.in.Relay != nil {
		return a, p
	}
	if p := g.spliceResumed(r.Context(), a); p != nil {
		return a, p
	}
	g.trackChat(a)
	return a, nil
}

// plan makes the input of the run.
func (g *Gateway) plan(ctx context.Context, a *chat, m *Model, wanted *wish) (p *problem) {
	c, req := a.caller, a.req
	a.session = wanted.session
	in := &a.in
	*in = loop.Input{
		Run:      lathe.RunInfo{RequestID: c.requestID, SessionID: wanted.session, Principal: c.key.Name, Labels: wanted.labels},
		Sampling: &req.Sampling, User: req.User, ClientTools: req.Tools, Target: req.Model,
	}
	if wanted.detach && g.opts.Crew == nil {
		return badWish("lathe.detach", "This server does not carry runs without their client.")
	}
	if p = c.clash(req.Tools); p != nil {
		return p
	}
	if in.Allow, p = c.toolsFor(wanted, "lathe"); p != nil {
		return p
	}
	limits, settings := &a.limits, &a.settings
	if *limits, p = c.limitsFor(wanted, m, "lathe"); p != nil {
		return p
	}
	if *settings, p = wanted.settingsFor(m, "lathe"); p != nil {
		return p
	}
	if req.ToolChoice.Mode != "" {
		settings.ToolChoice = req.ToolChoice
	}
	if req.ParallelToolCalls != nil {
		settings.ParallelToolCalls = req.ParallelToolCalls
	}
	in.Settings, in.Limits = settings, limits
	relayed := a.plain && c.relays(m, settings, in.Allow)
	if p = a.sort(m, relayed); p != nil {
		return p
	}
	if p = a.held(relayed); p != nil {
		return p
	}
	if in.Overrides = a.passed; relayed {
		in.Relay = &lathe.Relay{Stream: req.Stream, Take: a.keepWhole, Opaque: req.Foreign != nil || req.N != 1}
		in.Allow = []string{} // whatever tools come to be here meanwhile
	}
	given, moved := g.origins.apply(c.key.Name, req.Model, req.Messages)
	req.Messages = given
	if p = checkAnswers(req.Messages); p != nil {
		return p
	}
	j := g.join(ctx, a, relayed)
	if p = gone(ctx); p != nil {
		return p
	}
	if relayed && !j.changed && !moved && a.acceptable() {
		in.Relay.Request = openai.Cut(a.body, func(name string) bool { return slices.Contains(a.ignored, name) })
	}
	a.sum, a.after, a.lost = j.sum, j.last, j.lost
	if j.lost > 0 {
		g.opts.Log.Warn("turns of this server are not in the conversation that the model gets: the client has changed older messages",
			"request_id", c.requestID, "turns", j.lost)
		if g.opts.Metrics != nil {
			g.opts.Metrics.AddLostJoins(j.lost)
		}
	}
	if j.waits != nil {
		done, p := g.goOn(ctx, a, m, j.waits)
		if p != nil || done {
			return p
		}
	}
	in.Messages, a.base = j.messages, len(j.messages)
	// A run that hands calls over ends; what comes back is a run of its own. One that asks a person waits, where it is kept.
	in.Park, in.HandOver = g.opts.Index != nil, true
	asks := in.Park && !relayed && g.opts.Desk != nil
	if asks {
		if v := g.equalRun(ctx, a); v != nil && !a.fresh {
			a.attach(m, v)
			return nil
		}
		in.Run.Labels = withLabel(in.Run.Labels, labelRequest, a.equal)
	}
	if in.Park && (asks || len(req.Tools) > 0) {
		in.Run.Labels = withLabel(in.Run.Labels, labelConversation, j.sum)
	}
	in.Run.RunID = g.opts.Engine.NewRunID()
	a.begin(in.Run.RunID)
	a.calls = newHandover(a.chunks, req.Tools, settings, limits)
	a.job = job{loop: m.Loop, in: in, detach: wanted.detach, holds: a.holds}
	if asks {
		a.job.note = &waitingNote{g, a.equal}
	}
	if !wanted.detach && wanted.session == "" {
		a.job.due = c.due(req.Tools)
	}
	return nil
}

// acceptable reports whether model servers take the calls of the conversation as they are. Calls of forms that are not
// read are not judged.
func (a *chat) acceptable() bool {
	if a.req.Foreign != nil {
		return true
	}
	for i := range a.req.Messages {
		for _, call := range a.req.Messages[i].Calls() {
			if !openai.Sendable(call.Arguments) {
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
func misread(bad *openai.APIError) *problem {
	return &problem{Status: bad.Status, Code: cmp.Or(bad.Code, "invalid_request"), Message: bad.Message, Param: bad.Param}
}

// held refuses a request that only its relay could carry and that is not relayed, and a choice of a tool that the run
// does not have.
func (a *chat) held(relayed bool) *problem {
	if relayed {
		return nil
	}
	const unless = " A request is passed on to the model server as it is, with this, if its key may use no tool of this server and it has no member lathe."
	switch req := a.req; {
	case req.Foreign != nil:
		p := misread(req.Foreign)
		p.Message += unless
		return p
	case req.N != 1:
		return badWish("n", "This server gives one choice: n must be 1."+unless)
	default:
		return a.caller.choice(req, a.in.Allow)
	}
}

// choice refuses a tool choice that neither the request's tools nor those of this server among allow satisfy; a nil
// allow stands for all.
func (c *caller) choice(req *openai.ChatRequest, allow []string) *problem {
	own := allow
	if own == nil {
		own = c.toolNames()
	}
	switch choice := req.ToolChoice; choice.Mode {
	case lathe.ChoiceRequired:
		if len(req.Tools)+len(own) == 0 {
			return badWish("tool_choice", "A call is required, but there are no tools.")
		}
	case lathe.ChoiceFunction:
		if !slices.Contains(own, choice.Name) && !slices.ContainsFunc(req.Tools, func(t *lathe.ToolSpec) bool { return t.Name == choice.Name }) {
			return badWish("tool_choice.function.name", "There is no tool with this name, neither in the request nor on this server.")
		}
	}
	return nil
}

// begin makes the head of the answer of a run.
func (a *chat) begin(runID string) {
	a.id = "chatcmpl-" + strings.TrimPrefix(runID, "run_")
	if !a.req.Stream {
		return
	}
	if a.chunks = openai.NewChunkWriter(a.id, a.req.Model, a.created, a.req.IncludeUsage); a.req.Obfuscate {
		a.chunks.Pad()
	}
}

// clash refuses tools of the client under names of tools of this server.
func (c *caller) clash(client []*lathe.ToolSpec) *problem {
	if len(client) == 0 || c.setup.Tools == nil {
		return nil
	}
	own := c.setup.Tools.Specs()
	for i, t := range client {
		if slices.ContainsFunc(own, func(s *lathe.ToolSpec) bool { return s.Name == t.Name && s.For(c.key.Name) }) {
			return badWish(toolParam(i), "The tool name %s is taken by a tool of this server: choose another.", t.Name)
		}
	}
	return nil
}
