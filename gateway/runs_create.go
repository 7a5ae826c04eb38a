package gateway

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire/openai"
	"github.com/lathe-run/lathe/loop"
)

// Names of the members of a request for a run: those of the object `lathe` of chat completions, and
// those that say the same as there.
var (
	runWishes  = []string{"tools", "tool_use_mode", "mode", "tool_failure_policy", "policy", "limits", "session", "labels"}
	runMembers = []string{"model", "messages", "tool_choice", "parallel_tool_calls", "temperature", "top_p",
		"max_completion_tokens", "seed", "stop", "reasoning_effort", "response_format", "user"}
)

// createRun begins a run that goes on when the client leaves.
func (g *Gateway) createRun(w http.ResponseWriter, r *http.Request, c *caller) {
	p := g.takes()
	var body []byte
	if p == nil {
		body, p = g.readBody(w, r)
	}
	if p != nil {
		c.fail(w, p)
		return
	}
	l, in, p := g.readRun(r.Context(), c, body)
	if p != nil {
		c.fail(w, p)
		return
	}
	once, p := onceOf(r, c, body)
	if p != nil {
		c.fail(w, p)
		return
	}
	if once != nil {
		unlock, err := g.held.lock(r.Context(), once.name)
		if err != nil {
			return // the client left
		}
		defer unlock()
		found, p := g.earlier(r.Context(), c, once)
		if p != nil {
			c.fail(w, p)
			return
		}
		if found != "" {
			w.Header().Set("Idempotency-Replayed", "true")
			g.created(w, r, c, found)
			return
		}
		in.Run.RunID = once.id(g.opts.Now())
		if in.Run.Labels == nil {
			in.Run.Labels = map[string]string{}
		}
		in.Run.Labels[labelFingerprint] = once.fingerprint
	}
	began, setup := newFirst(), g.hold(c.setup)
	id, err := g.opts.Crew.Start(r.Context(), l, in, began, setup)
	if err != nil {
		setup.free()
		c.fail(w, g.runFailed(c, err))
		return
	}
	c.runID = id
	select {
	case <-began.told:
	case <-r.Context().Done():
		return
	case <-g.stopped.Done():
		c.fail(w, failure(&lathe.Result{Reason: lathe.ReasonInterrupted}))
		return
	}
	if began.err != nil { // the store did not take it
		p := g.runFailed(c, began.err)
		if once != nil && lathe.CodeOf(began.err) == lathe.CodeConflict { // another process was faster
			var found string
			if found, p = g.earlier(r.Context(), c, once); found != "" {
				w.Header().Set("Idempotency-Replayed", "true")
				g.created(w, r, c, found)
				return
			}
			if p == nil {
				p = g.runFailed(c, began.err)
			}
		}
		c.fail(w, p)
		return
	}
	g.created(w, r, c, id)
}

func (g *Gateway) created(w http.ResponseWriter, r *http.Request, c *caller, id string) {
	w.Header().Set("Location", "/api/runs/"+id)
	w.Header().Set("X-Lathe-Run-Id", id)
	g.answerRun(w, r, c, id, http.StatusCreated)
}

// A first is a sink that waits for the first event of a run.
type first struct {
	once sync.Once
	told chan struct{}
	err  error // good once told is closed: why there will be no run
}

func newFirst() *first { return &first{told: make(chan struct{})} }

// Emit implements [lathe.Sink].
func (f *first) Emit(_ context.Context, e lathe.Event) {
	f.once.Do(func() {
		if e.ID == 0 { // the end of a run that no log has
			f.err = &lathe.Error{Code: lathe.CodeInternal, Op: "gateway: start", Err: errors.New("the store failed")}
			if res := loop.Ended(e.Data); res != nil && res.Err != nil {
				f.err = res.Err
			}
		}
		close(f.told)
	})
}

// readRun makes the input of a run from the body of a request.
func (g *Gateway) readRun(ctx context.Context, c *caller, body []byte) (*loop.Loop, *loop.Input, *problem) {
	if err := rawjson.Check(body, rawjson.Limits{}); err != nil {
		return nil, nil, &problem{Status: http.StatusBadRequest, Code: "invalid_json", Message: "The body is not acceptable JSON: " + err.Error() + "."}
	}
	body = body[rawjson.SkipSpace(body, 0):]
	if body[0] != '{' {
		return nil, nil, badWish("", "The body must be an object.")
	}
	wanted := &wish{}
	req, p := readRunRequest(body, wanted)
	if p != nil {
		return nil, nil, p
	}
	if p = g.checkSize(ctx, req.Messages); p != nil {
		return nil, nil, p
	}
	m, p := c.model(req.Model)
	if p != nil {
		return nil, nil, p
	}
	c.named = req.Model
	if p = g.clashes(c, req.Tools); p != nil {
		return nil, nil, p
	}
	if p = checkAnswers(req.Messages); p != nil {
		return nil, nil, p
	}
	if err := loop.CheckLabels(wanted.labels); err != nil {
		return nil, nil, badWish("labels", "The labels cannot be used: %v.", err)
	}
	if len(wanted.labels) >= loop.MaxLabels || wanted.labels[labelFingerprint] != "" {
		return nil, nil, badWish("labels", "A run may have %d labels here, none of them %s.", loop.MaxLabels-1, labelFingerprint)
	}
	in := &loop.Input{
		Run:      lathe.RunInfo{RequestID: c.requestID, SessionID: wanted.session, Principal: c.key.Name, Labels: wanted.labels},
		Messages: req.Messages, Sampling: &req.Sampling, User: req.User, ClientTools: req.Tools, Target: req.Model, Park: true,
	}
	in.Allow, p = c.toolsFor(wanted, "")
	limits, p2 := c.limitsFor(wanted, m, "")
	settings, p3 := wanted.settingsFor(m, "")
	for _, p := range []*problem{p, p2, p3} {
		if p != nil {
			return nil, nil, p.under()
		}
	}
	if p = c.choice(req, in.Allow); p != nil {
		return nil, nil, p
	}
	if req.ToolChoice.Mode != "" {
		settings.ToolChoice = req.ToolChoice
	}
	if req.ParallelToolCalls != nil {
		settings.ParallelToolCalls = req.ParallelToolCalls
	}
	in.Settings, in.Limits = &settings, &limits
	return m.Loop, in, nil
}

// under words a problem of the body itself: nothing stands before its members.
func (p *problem) under() *problem {
	p.Param, p.Message = strings.TrimPrefix(p.Param, "."), strings.TrimPrefix(p.Message, ".")
	if p.Param == "" && strings.HasPrefix(p.Message, " ") {
		p.Message = "The body" + p.Message
	}
	return p
}

// clashes is clash, for tools of the client that have a member of their own here.
func (g *Gateway) clashes(c *caller, client []*lathe.ToolSpec) *problem {
	p := c.clash(client)
	if p != nil {
		p.Param = "client_" + p.Param
	}
	return p
}

// readRunRequest reads the body into wanted, and the rest as the chat request that says the same.
func readRunRequest(body []byte, wanted *wish) (*openai.ChatRequest, *problem) {
	var messages, prompt []byte
	chat := []byte{'{'}
	add := func(name string, v []byte) {
		if len(chat) > 1 {
			chat = append(chat, ',')
		}
		chat = append(append(rawjson.AppendQuote(chat, name), ':'), v...)
	}
	names := slices.Concat(runMembers, []string{"prompt", "client_tools"}, runWishes)
	p := eachMember(body, "", names, func(name, at string, v []byte) *problem {
		switch {
		case slices.Contains(runWishes, name):
			return wanted.member(name, at, v)
		case name == "prompt":
			prompt = v
		case name == "messages":
			messages = v
		case name == "client_tools":
			add("tools", v)
		default:
			add(name, v)
		}
		return nil
	})
	switch {
	case p != nil:
		return nil, p.under()
	case (messages == nil) == (prompt == nil):
		return nil, badWish("messages", "Say either messages or prompt.")
	case prompt != nil && prompt[0] != '"':
		return nil, badWish("prompt", "prompt must be a text.")
	case prompt != nil:
		messages = append(append([]byte(`[{"role":"user","content":`), prompt...), "}]"...)
	}
	add("messages", messages)
	req, err := openai.ParseAny(append(chat, '}'))
	if err == nil && req.Foreign != nil {
		err = req.Foreign
	}
	if err != nil {
		p := &problem{Status: http.StatusBadRequest, Code: "invalid_request", Message: "The request could not be read."}
		var bad *openai.APIError
		if errors.As(err, &bad) {
			p = misread(bad)
		}
		if strings.HasPrefix(p.Param, "tools") {
			p.Param = "client_" + p.Param
		}
		return nil, p
	}
	return req, nil
}
