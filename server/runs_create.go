package server

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/gateway/pairs"
	"github.com/lathe-run/lathe/internal/gateway/places"
	problems "github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/openai"
	"github.com/lathe-run/lathe/loop"
)

// The members of a request for a run: optionMembers are those of the object `lathe` of chat completions, and runMembers are
// members of chat completions themselves.
var (
	optionMembers = []string{"tools", "tool_use_mode", "tool_failure_policy", "policy", "limits", "session", "labels"}
	runMembers    = []string{"model", "messages", "tool_choice", "parallel_tool_calls", "temperature", "top_p",
		"max_completion_tokens", "seed", "stop", "reasoning_effort", "response_format", "user"}
)

// createRun handles POST /api/runs: it starts a detached run, which continues when the client disconnects.
func (h *runsHandler) createRun(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	plan, p := h.planRun(r.Context(), c, c.body)
	if p != nil {
		return p
	}
	return h.beginRun(w, r, c, &newRun{loop: plan.model.Loop, in: &plan.in, request: c.body, status: http.StatusCreated, named: true})
}

// A newRun is a detached run that a request creates.
type newRun struct {
	loop    *loop.Loop
	in      *loop.Input
	request []byte // the bytes that must be equal if an Idempotency-Key is sent again
	status  int    // of the response if the run is created or exists
	named   bool   // the loop is that of the model in.Target, so that an [Executor] finds it by name
}

// beginRun starts a detached run and responds after its first event is stored. If the Idempotency-Key of the request was
// sent before, beginRun responds with the run of the first request.
func (h *runsHandler) beginRun(w http.ResponseWriter, r *http.Request, c *caller, n *newRun) *problem {
	in := n.in
	once, p := idempotencyKeyOf(r, c, n.request)
	if p != nil {
		return p
	}
	if once != nil {
		unlock, p := h.locks.lock(r.Context(), once.name)
		if p != nil {
			return p
		}
		defer unlock()
		if isDone, p := h.answerReplayed(w, r, c, once, n.status); isDone {
			return p
		}
		in.Run.RunID = once.id(h.opts.Now())
		in.Run.Labels = withOwn(in.Run.Labels, map[string]string{labelFingerprint: once.fingerprint})
	}
	if h.opts.Executor != nil && n.named {
		return h.beginStepped(w, r, c, n, once)
	}
	began, setup := newFirst(), h.hold(c)
	id, err := h.opts.Supervisor.Start(r.Context(), n.loop, in, &engine.RunOptions{Sinks: newObjectNote(h.core, c, c.key.Name).with(began, setup)})
	if err != nil {
		setup.free()
		return h.runFailed(c, err)
	}
	c.runID = id
	select {
	case <-began.started:
	case <-r.Context().Done():
		return nil
	case <-h.stopped.Done():
		return problems.FailureFor(lathe.ReasonInterrupted)
	}
	if began.err != nil { // the first event could not be stored
		if once != nil && lathe.CodeOf(began.err) == lathe.CodeConflict { // another process has created the run of the key
			if isDone, p := h.answerReplayed(w, r, c, once, n.status); isDone {
				return p
			}
		}
		return h.runFailed(c, began.err)
	}
	return h.answerCreated(w, r, c, id, n.status)
}

// answerReplayed responds with the run that an earlier request with the same Idempotency-Key created. isDone is false, and nothing
// was written, if there is no such run.
func (h *runsHandler) answerReplayed(w http.ResponseWriter, r *http.Request, c *caller, key *idempotencyKey, status int) (isDone bool, p *problem) {
	id, p := h.earlier(r.Context(), c, key)
	if p != nil || id == "" {
		return p != nil, p
	}
	w.Header().Set("Idempotency-Replayed", "true")
	return true, h.answerCreated(w, r, c, id, status)
}

func (h *runsHandler) answerCreated(w http.ResponseWriter, r *http.Request, c *caller, id string, status int) *problem {
	w.Header().Set("Location", "/api/runs/"+id)
	w.Header().Set("X-Lathe-Run-Id", id)
	return h.answerRun(w, r, c, id, status)
}

// A first is a sink that waits for the first event of a run. started is closed when it was emitted.
type first struct {
	once    sync.Once
	started chan struct{}
	err     error // read only after started is closed; not nil: the run could not be stored and does not exist
}

func newFirst() *first { return &first{started: make(chan struct{})} }

// Emit implements [event.Sink].
func (f *first) Emit(_ context.Context, e event.Event) {
	f.once.Do(func() {
		if e.ID == 0 { // an event without an id is the end of a run that could not be stored
			f.err = lathe.CodeInternal.Errorf("gateway: start", "the store failed")
			if res := loop.Ended(e.Data); res != nil && res.Err != nil {
				f.err = res.Err
			}
		}
		close(f.started)
	})
}

// planRun reads the body of a request for a run and makes the plan of the run.
func (h *runsHandler) planRun(ctx context.Context, c *caller, body []byte) (*plan, *problem) {
	if p := checkElements(&h.opts.Limits, body, "messages", "client_tools"); p != nil {
		return nil, p
	}
	options := &requestOptions{}
	body, bad := objectOf(body, "")
	if bad != nil {
		return nil, bad
	}
	req, bad := readRunRequest(body, options)
	if bad == nil {
		bad = h.checkSize(ctx, c, req.Messages)
	}
	if bad != nil {
		return nil, bad
	}
	p, place := &plan{}, places.Of(lathe.WireOpenAIChat, body, req.Messages, req.Messages)
	bad = h.makePlan(ctx, c, &runRequest{model: req.Model, messages: req.Messages, sampling: &req.Sampling, user: req.User, tools: req.Tools, toolsParam: "client_tools",
		choice: req.ToolChoice, parallel: req.ParallelToolCalls, options: options, place: place,
		reserved: 1}, p) // one label is reserved for the Idempotency-Key
	if unpaired := pairs.Check(req.Messages); bad == nil && unpaired != nil {
		bad = unpaired.Problem(lathe.WireOpenAIChat, place)
	}
	p.in.Park = true
	return p, bad
}

// objectOf returns the body from its first brace on, and a problem if it is not one valid JSON object. like is an example
// for the message, which begins with ": "; it may be empty.
func objectOf(body []byte, like string) ([]byte, *problem) {
	if err := rawjson.Check(body, rawjson.Limits{}); err != nil {
		return nil, badRequest("", "The body is not acceptable JSON: %v.", err).WithCode("invalid_json")
	}
	if body = body[rawjson.SkipSpace(body, 0):]; body[0] != '{' {
		return nil, badRequest("", "The body must be an object%s.", like)
	}
	return body, nil
}

// readObject decodes the body, a JSON object, into the struct that dst points to. It refuses members that the struct does
// not have. like is an example for error messages.
func readObject(body []byte, dst any, like string) *problem {
	body, p := objectOf(body, ": "+like)
	if p != nil {
		return p
	}
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeOf(dst).Elem()) {
		if f.IsExported() {
			names = append(names, f.Tag.Get("json"))
		}
	}
	if p := eachMember(body, "", names, acceptMember); p != nil {
		return underBody(p)
	}
	if err := json.Unmarshal(body, dst); err != nil {
		return badRequest("", "The body must be like %s.", like)
	}
	return nil
}

// underBody rewords a problem about a member of the body itself, whose path is empty.
func underBody(p *problem) *problem {
	p.Param, p.Message = strings.TrimPrefix(p.Param, "."), strings.TrimPrefix(p.Message, ".")
	if p.Param == "" && strings.HasPrefix(p.Message, " ") {
		p.Message = "The body" + p.Message
	}
	return p
}

// readRunRequest reads the options of a body into options, and returns the other members as a request for a chat
// completion.
func readRunRequest(body []byte, options *requestOptions) (*openai.ChatRequest, *problem) {
	var messages, prompt []byte
	chat := wire.JSON("{")
	names := slices.Concat(runMembers, []string{"prompt", "client_tools"}, optionMembers)
	p := eachMember(body, "", names, func(name, at string, v []byte) *problem {
		switch {
		case slices.Contains(optionMembers, name):
			return options.member(name, at, v)
		case name == "prompt":
			prompt = v
		case name == "messages":
			messages = v
		case name == "client_tools":
			chat = chat.Val("tools", v)
		default:
			chat = chat.Val(name, v)
		}
		return nil
	})
	switch {
	case p != nil:
		return nil, underBody(p)
	case (messages == nil) == (prompt == nil):
		return nil, badRequest("messages", "Say either messages or prompt.")
	case prompt != nil && prompt[0] != '"':
		return nil, badRequest("prompt", "prompt must be a text.")
	case prompt != nil:
		messages = wire.JSON(`[{"role":"user","content":`).Raw(prompt).Lit("}]")
	}
	req, err := openai.ParseAny(chat.Val("messages", messages).Lit("}"))
	if err == nil && req.Foreign != nil {
		err = req.Foreign
	}
	if err != nil {
		p := misread(err)
		if strings.HasPrefix(p.Param, "tools") {
			p.Param = "client_" + p.Param
		}
		return nil, p
	}
	return req, nil
}
