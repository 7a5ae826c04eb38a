package sim

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire/openai"
)

// MaxBody is the largest request body that the handler reads, in bytes.
const MaxBody = 16 << 20

// Handler serves OpenAI's chat completions, stream and not, and the list of models, under /v1 and
// without it. It checks no key.
func (s *Sim) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, prefix := range []string{"/v1", ""} {
		mux.HandleFunc("POST "+prefix+"/chat/completions", s.complete)
		mux.HandleFunc("GET "+prefix+"/models", s.models)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, &openai.APIError{Status: http.StatusNotFound, Type: "invalid_request_error", Code: "unknown_url",
			Message: "Unknown request URL: the simulated model serves POST /v1/chat/completions and GET /v1/models."})
	})
	return mux
}

func fail(w http.ResponseWriter, e *openai.APIError) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.Status)
	_, _ = w.Write(openai.AppendError(nil, e)) // the client left
}

func (s *Sim) models(w http.ResponseWriter, _ *http.Request) {
	dst := []byte(`{"object":"list","data":[`)
	for i, name := range s.Names() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"id":`...)
		dst = rawjson.AppendQuote(dst, name)
		dst = append(dst, `,"object":"model","created":`...)
		dst = strconv.AppendInt(dst, s.opts.Now().Unix(), 10)
		dst = append(dst, `,"owned_by":"lathe"}`...)
	}
	dst = append(dst, `]}`...)
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(dst) // the client left
}

func (s *Sim) complete(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	if err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			fail(w, &openai.APIError{Status: http.StatusRequestEntityTooLarge, Type: "invalid_request_error", Message: "The request body is larger than 16 MiB."})
			return
		}
		fail(w, &openai.APIError{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: "The request body could not be read."})
		return
	}
	req, err := openai.ParseRequest(body)
	if err != nil {
		var apiErr *openai.APIError
		if !errors.As(err, &apiErr) {
			apiErr = &openai.APIError{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: err.Error()}
		}
		fail(w, apiErr)
		return
	}
	sp, err := s.parse(req.Model)
	if err != nil {
		fail(w, &openai.APIError{Status: http.StatusNotFound, Type: "invalid_request_error", Code: "model_not_found", Param: "model", Message: err.Error()})
		return
	}
	if bad := refusedArguments(req.Messages); bad != nil {
		fail(w, bad)
		return
	}
	n := s.requests.Add(1)
	w.Header().Set("X-Request-Id", "sim-"+strconv.FormatInt(n, 10))
	s.reply(w, r, &sp, req, body, n)
}

func (s *Sim) reply(w http.ResponseWriter, r *http.Request, sp *spec, req *openai.ChatRequest, body []byte, n int64) {
	if f := sp.fault; f != nil {
		switch {
		case f.hang:
			<-r.Context().Done()
			return
		case f.status != 0 && (!f.needsTools || len(req.Tools) > 0) && (!f.once || s.failed.next(body)):
			f.answer(w)
			return
		}
	}
	t, err := s.turn(sp, &req.Request)
	var bad *openai.APIError
	if errors.As(err, &bad) {
		fail(w, bad)
		return
	}
	if err != nil {
		fail(w, &openai.APIError{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: err.Error()})
		return
	}
	if t.Status != 0 {
		fail(w, &openai.APIError{Status: t.Status, Type: "simulated_error", Message: t.Message})
		return
	}
	if !wait(r.Context(), t.Delay) {
		return
	}
	id := "chatcmpl-sim-" + strconv.FormatInt(n, 10)
	created := s.opts.Now().Unix()
	fin := t.finished(&req.Request)
	if !req.Stream || sp.fault != nil && sp.fault.nonStream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(openai.AppendCompletion(nil, &openai.Completion{ID: id, Model: req.Model, Created: created, Finish: fin})) // nobody to tell
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	out := frames(w, r.Context(), sp.pause(s.opts.TokenDelay))
	if sp.fault != nil {
		fw := &frameWriter{st: &sp.fault.style, out: out, usage: usageJSON(fin.Usage),
			head: `{"id":` + quote(id) + `,"object":"chat.completion.chunk","created":` + strconv.FormatInt(created, 10) +
				`,"model":` + quote(req.Model) + `,"system_fingerprint":"sim","choices":[{"index":0,"delta":`}
		fw.stream(t, req.IncludeUsage)
		if fw.stopped {
			cut(w)
		}
		return
	}
	cw := openai.NewChunkWriter(id, req.Model, created, req.IncludeUsage)
	ok := t.deltas(func(d lathe.Delta) bool { return out(string(cw.AppendDelta(nil, d))) })
	if t.Cut {
		cut(w)
	} else if ok {
		out(string(cw.AppendDone(cw.AppendDelta(nil, lathe.Delta{Kind: lathe.DeltaFinish, Finish: fin}))))
	}
}

// cut breaks the connection off without an orderly end.
func cut(w http.ResponseWriter) {
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
	panic(http.ErrAbortHandler)
}

// frames returns a function that writes one frame, flushes it, and waits; false when the client is gone.
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

// wait pauses for d; false when ctx ended first.
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

// answer writes the fault's HTTP error, or its strange body under status 200.
func (f *Fault) answer(w http.ResponseWriter) {
	ct := f.bodyType
	if ct == "" {
		ct = "text/plain"
		if strings.HasPrefix(f.body, "{") {
			ct = "application/json"
		}
	}
	w.Header().Set("Content-Type", ct)
	if f.header[0] != "" {
		w.Header().Set(f.header[0], f.header[1])
	}
	w.WriteHeader(f.status)
	_, _ = io.WriteString(w, f.body) // nobody to tell
}

func usageJSON(u lathe.Usage) string {
	return `{"prompt_tokens":` + strconv.FormatInt(u.InputTokens, 10) + `,"completion_tokens":` + strconv.FormatInt(u.OutputTokens, 10) +
		`,"total_tokens":` + strconv.FormatInt(u.TotalTokens, 10) + `}`
}

// turn is what the model says next. The error is an *[openai.APIError] for a history that servers refuse.
func (s *Sim) turn(sp *spec, req *lathe.Request) (*Turn, error) {
	bad := refusedCalls(req.Messages)
	if bad == nil && sp.fault != nil && sp.fault.strictRoles {
		bad = refusedRoles(req.Messages)
	}
	if bad != nil {
		return nil, bad
	}
	var t *Turn
	sent := req
	if sp.dialect != nil {
		req = hear(sp.dialect, req)
	}
	switch {
	case sp.script != nil:
		var err error
		if t, err = sp.script.next(req); err != nil {
			return nil, err
		}
	case sp.eval:
		t = evaluated(req, sp.how)
	case sp.obeys:
		t = obeyed(req, sp.careful)
	default:
		t = demo(req)
	}
	if sp.fault != nil && sp.fault.turn != nil {
		sp.fault.turn(req, t)
	}
	if sp.dialect != nil {
		speak(sp.dialect, t)
	} else {
		t.cutCalls()
	}
	t.Usage = usageOf(sent, t)
	return t, nil
}

func (t *Turn) finished(req *lathe.Request) *lathe.Finish {
	return &lathe.Finish{
		Message:   t.message(),
		Reason:    t.finish(),
		RawReason: string(t.finish()),
		Usage:     t.Usage,
		Model:     req.Model,
	}
}
