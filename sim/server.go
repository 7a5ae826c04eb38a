package sim

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/gemini"
	"github.com/lathe-run/lathe/internal/wire/messages"
)

// maxBody is the maximal length of a request body, in bytes.
const maxBody = 16 << 20

// Handler serves chat completions, responses, messages and generateContent, streamed and not, and the endpoints that count tokens and
// list models. Paths below /v1 are also served without that prefix. It accepts requests without a key.
func (s *Sim) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, prefix := range []string{"/v1", ""} {
		mux.HandleFunc("POST "+prefix+"/chat/completions", s.on(chatCompletions))
		mux.HandleFunc("POST "+prefix+"/responses", s.on(responsesAPI))
		mux.HandleFunc("POST "+prefix+"/messages", s.on(messagesAPI))
		mux.HandleFunc("POST "+prefix+"/messages/count_tokens", s.count(messagesAPI))
		mux.HandleFunc("GET "+prefix+"/models", s.models)
	}
	mux.HandleFunc("POST /v1beta/{call...}", s.generateContent)
	mux.HandleFunc("POST /v1/models/{call...}", s.generateContent)
	mux.HandleFunc("GET /v1beta/models", s.models)
	mux.HandleFunc("HEAD /{$}", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/", notServed)
	return mux
}

func notServed(w http.ResponseWriter, r *http.Request) {
	p := chatCompletions
	switch {
	case strings.HasPrefix(r.URL.Path, "/v1beta/"):
		p = generateContent
	case strings.HasPrefix(r.URL.Path, "/v1/messages"):
		p = messagesAPI
	}
	p.fail(w, &wire.APIError{Status: http.StatusNotFound, Type: "invalid_request_error", Code: "unknown_url",
		Message: "Unknown request URL: the simulated model serves POST /v1/chat/completions, /v1/responses, /v1/messages, /v1/messages/count_tokens and " +
			"/v1beta/models/MODEL:generateContent, :streamGenerateContent and :countTokens, and GET /v1/models and /v1beta/models."})
}

// fail writes an error in the form of the wire.
func (p *protocol) fail(w http.ResponseWriter, e *wire.APIError) {
	if e.Status == http.StatusNotFound && p == messagesAPI {
		own := *e
		own.Type = "not_found_error"
		e = &own
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.Status)
	_, _ = w.Write(p.AppendError(nil, e)) // fails only if the client has disconnected
}

// refuse writes the error of a request that is wrong.
func (p *protocol) refuse(w http.ResponseWriter, err error) {
	e, ok := errors.AsType[*wire.APIError](err)
	if !ok {
		e = badRequest(err.Error())
	}
	p.fail(w, e)
}

// on returns the handler of a wire whose requests contain the name of the model.
func (s *Sim) on(p *protocol) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if x := s.read(p, w, r, nil); x != nil {
			s.reply(w, r, x)
		}
	}
}

// count returns the handler that counts the tokens of a request.
func (s *Sim) count(p *protocol) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		parse := func(body []byte) (*wire.ClientRequest, error) { return p.ParseRequest(limited(body)) }
		if x := s.read(p, w, r, parse); x != nil {
			writeJSON(w, messages.AppendCount(nil, inputTokens(&x.req.Request)))
		}
	}
}

// generateContent serves the methods of Google's models. The path contains the model and the method.
func (s *Sim) generateContent(w http.ResponseWriter, r *http.Request) {
	model, method := modelPath(r.PathValue("call"))
	if method != "generateContent" && method != "streamGenerateContent" && method != "countTokens" {
		notServed(w, r)
		return
	}
	x := s.read(generateContent, w, r, func(body []byte) (*wire.ClientRequest, error) {
		if method == "countTokens" && rawjson.IsObject(body, rawjson.Limits{}) {
			if inner := rawjson.At(body, "generateContentRequest"); inner != nil {
				body = inner
			}
		}
		req, err := generateContent.ParseRequest(body)
		if err == nil {
			req.Model, req.Stream = model, method == "streamGenerateContent"
		}
		return req, err
	})
	switch {
	case x == nil:
	case method == "countTokens":
		writeJSON(w, gemini.AppendCount(nil, inputTokens(&x.req.Request)))
	default:
		x.array = r.URL.Query().Get("alt") != "sse"
		s.reply(w, r, x)
	}
}

func writeJSON(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // fails only if the client has disconnected
}

// reply writes the answer to a request, with the fault of its model.
func (s *Sim) reply(w http.ResponseWriter, r *http.Request, x *exchange) {
	p, req, f := x.p, x.req, x.spec.fault
	if f == nil {
		f = &Fault{}
	}
	switch {
	case f.hang:
		<-r.Context().Done()
		return
	case f.status != 0 && (!f.needsTools || len(req.Tools) > 0) && (!f.once || s.failed.next(x.body)):
		f.answer(p, w)
		return
	}
	t, err := s.turn(p, &x.spec, &req.Request)
	if err != nil {
		p.refuse(w, err)
		return
	}
	if t.Status != 0 {
		p.fail(w, &wire.APIError{Status: t.Status, Type: "simulated_error", Message: t.Message})
		return
	}
	if !wait(r.Context(), t.Delay) {
		return
	}
	t.before = x.before()
	fin := t.finished(p, &req.Request)
	head := wire.AnswerHead{ID: "sim-" + strconv.FormatInt(x.n, 10), Model: req.Model, Created: s.opts.Now().Unix(), Request: req}
	if !req.Stream || f.nonStream {
		writeJSON(w, wire.AppendAnswer(nil, p, &wire.Answer{AnswerHead: head, Finish: fin}))
		return
	}
	var events []streamed
	if f.style != nil && p == chatCompletions {
		events = f.style.events(&head, t, fin)
	} else {
		events = f.flow.events(p, &head, t, fin)
		if f.edit != nil && !(f.firstPart && continues(&req.Request)) {
			events = f.edit(p.Wire(), events)
		}
	}
	send(w, r.Context(), x, events, &f.lines, x.spec.pause(s.opts.TokenDelay))
}

// continues reports whether the answer to req continues the assistant's last message.
func continues(req *lathe.Request) bool {
	n := len(req.Messages)
	return n > 0 && req.Messages[n-1].Role == lathe.RoleAssistant
}

// send writes the events of an answer, with a pause after each.
func send(w http.ResponseWriter, ctx context.Context, x *exchange, events []streamed, l *lines, pause time.Duration) {
	contentType := "text/event-stream"
	if x.array {
		contentType = "application/json"
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-store")
	out := frames(w, ctx, pause)
	before := "[" // text before an element of the array
	for i, e := range events {
		frame := l.frame(i, e)
		switch {
		case e.cut:
			cut(w)
		case x.array && e.raw == "":
			frame, before = before+e.data, ",\n"
		}
		if !out(frame) {
			return
		}
	}
	if x.array {
		out("]\n")
	}
}

// cut closes the connection in the middle of the response. It panics with http.ErrAbortHandler.
func cut(w http.ResponseWriter) {
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
	panic(http.ErrAbortHandler)
}

// frames returns a function that writes one frame, flushes it, and pauses. The function returns false if the client has disconnected.
func frames(w http.ResponseWriter, ctx context.Context, pause time.Duration) func(string) bool {
	flusher, _ := w.(http.Flusher)
	return func(frame string) bool {
		if frame == "" {
			return true
		}
		if _, err := io.WriteString(w, frame); err != nil {
			return false
		}
		if flusher != nil {
			flusher.Flush()
		}
		return wait(ctx, pause)
	}
}

// wait blocks for d. It returns false if ctx ends first.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (sp *spec) pause(d time.Duration) time.Duration {
	if sp.slow {
		return d
	}
	return 0
}

// answer writes the fault's HTTP error, or its body with status 200.
func (f *Fault) answer(p *protocol, w http.ResponseWriter) {
	if f.header[0] != "" {
		w.Header().Set(f.header[0], f.header[1])
	}
	if f.fail != nil {
		e := *f.fail
		e.Status = f.status
		p.fail(w, &e)
		return
	}
	w.Header().Set("Content-Type", cmp.Or(f.bodyType, "text/plain"))
	w.WriteHeader(f.status)
	_, _ = io.WriteString(w, f.body) // fails only if the client has disconnected
}

// turn returns the model's next turn. The error is a *[wire.APIError] for a history that servers refuse.
func (s *Sim) turn(p *protocol, sp *spec, req *lathe.Request) (*Turn, error) {
	bad, f := refusedCalls(p, req.Messages), sp.fault
	if bad == nil && f != nil {
		switch {
		case f.strictRoles:
			bad = refusedRoles(p, req.Messages)
		case f.strictSignatures > 0:
			bad = refusedSignatures(p, req.Model, req.Messages)
		}
	}
	if bad != nil {
		return nil, bad
	}
	sent := req
	if sp.dialect != nil {
		req = readText(sp.dialect, req)
	}
	t, err := sp.next(req)
	if err != nil {
		return nil, err
	}
	if sp.thinks {
		think(req, t)
	}
	if f != nil && f.turn != nil {
		f.turn(req, t)
	}
	if sp.dialect != nil {
		writeText(sp.dialect, t)
	} else {
		t.cutCalls()
	}
	t.Usage = usageOf(sent, t)
	return t, nil
}

// next returns the turn of the model, before a fault changes it.
func (sp *spec) next(req *lathe.Request) (*Turn, error) {
	switch {
	case sp.script != nil:
		return sp.script.next(req)
	case sp.eval:
		return evaluated(req, sp.how), nil
	case sp.obeys:
		return obeyed(req, sp.careful), nil
	}
	return demo(req), nil
}

func (t *Turn) finished(p *protocol, req *lathe.Request) *lathe.Finish {
	return &lathe.Finish{
		Message:   p.message(t, req.Model),
		Reason:    t.finish(),
		RawReason: string(t.finish()),
		Usage:     t.Usage,
		Model:     req.Model,
	}
}
