package provider_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/gemini"
	"github.com/lathe-run/lathe/internal/wire/messages"
	"github.com/lathe-run/lathe/internal/wire/openai"
	"github.com/lathe-run/lathe/internal/wire/responses"
	"github.com/lathe-run/lathe/provider"
)

// A wireCase is one of the wires, with what its server must see.
type wireCase struct {
	wire            lathe.Wire
	served          wire.Served
	path, wholePath string
	key, keyValue   string
	headers         map[string]string
}

func wireCases() []wireCase {
	return []wireCase{
		{wire: lathe.WireOpenAIChat, served: openai.Served{}, path: "/v1/chat/completions", key: "Authorization", keyValue: "Bearer " + key},
		{wire: lathe.WireResponses, served: responses.Codec{}, path: "/v1/responses", key: "Authorization", keyValue: "Bearer " + key},
		{wire: lathe.WireMessages, served: messages.Codec{}, path: "/v1/messages", key: "X-Api-Key", keyValue: key,
			headers: map[string]string{"Anthropic-Version": "2023-06-01"}},
		{wire: lathe.WireGemini, served: gemini.Codec{}, path: "/v1beta/models/test-model:streamGenerateContent",
			wholePath: "/v1beta/models/test-model:generateContent", key: "X-Goog-Api-Key", keyValue: key},
	}
}

// eachWire runs a test on each wire.
func eachWire(t *testing.T, f func(t *testing.T, w *wireCase)) {
	for _, w := range wireCases() {
		t.Run(string(w.wire), func(t *testing.T) {
			t.Parallel()
			f(t, &w)
		})
	}
}

// model returns a model of the wire whose server answers with h.
func (w *wireCase) model(t *testing.T, h http.HandlerFunc, change func(*provider.Options)) *provider.Chat {
	t.Helper()
	return serveOn(t, w.wire, h, func(o *provider.Options) {
		o.BaseURL = strings.TrimSuffix(o.BaseURL, "/v1")
		if change != nil {
			change(o)
		}
	})
}

// read reads a request as a server of the wire does.
func (w *wireCase) read(t *testing.T, r *http.Request) *wire.ClientRequest {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	req, err := w.served.ParseRequest(body)
	if err != nil {
		t.Errorf("the server does not read %s: %v", body, err.(*wire.APIError).Message)
		return &wire.ClientRequest{}
	}
	if w.wire == lathe.WireGemini {
		req.Model, req.Stream = "test-model", strings.Contains(r.URL.Path, ":stream")
	}
	return req
}

// events returns the events of an answer, one each, that w's server streams: its writer is given f part by part.
func (w *wireCase) events(req *wire.ClientRequest, f *lathe.Finish) []string {
	wr := w.served.NewWriter(&wire.AnswerHead{ID: "00000000000000000000000001", Model: "m-1", Created: 1, Request: req})
	var out []string
	add := func(b []byte) {
		for _, e := range strings.SplitAfter(string(b), "\n\n") {
			if e != "" {
				out = append(out, e)
			}
		}
	}
	add(wr.AppendStart(nil))
	call := 0
	for _, p := range f.Message.Parts {
		for _, d := range deltasOf(p, call) {
			add(wr.AppendDelta(nil, d))
		}
		if _, ok := p.(lathe.ToolCall); ok {
			call++
		}
	}
	add(wr.AppendFinish(nil, f, nil))
	return out
}

// deltasOf returns the deltas of a part, texts and arguments in two pieces.
func deltasOf(p lathe.Part, call int) []lathe.Delta {
	halves := func(kind lathe.DeltaKind, s string) []lathe.Delta {
		n := len(s) / 2
		for n < len(s) && !utf8.RuneStart(s[n]) {
			n++
		}
		return []lathe.Delta{{Kind: kind, Text: s[:n], Index: call}, {Kind: kind, Text: s[n:], Index: call}}
	}
	switch p := p.(type) {
	case lathe.Text:
		return halves(lathe.DeltaText, p.Text)
	case lathe.Reasoning:
		out := halves(lathe.DeltaReasoning, p.Text)
		if p.Data != "" {
			out = append(out, lathe.Delta{Kind: lathe.DeltaReasoningData, Name: p.Field, ID: p.ID, Text: p.Data})
		}
		return out
	case lathe.ToolCall:
		out := append([]lathe.Delta{{Kind: lathe.DeltaCallStart, Index: call, ID: p.ID, Name: p.Name}}, halves(lathe.DeltaCallArgs, p.Arguments)...)
		return append(out, lathe.Delta{Kind: lathe.DeltaCallEnd, Index: call})
	}
	return nil
}

// answer answers with f, streamed or whole as the client asks, and returns the request.
func (w *wireCase) answer(t *testing.T, rw http.ResponseWriter, r *http.Request, f *lathe.Finish) *wire.ClientRequest {
	req := w.read(t, r)
	if !req.Stream {
		rw.Header().Set("Content-Type", "application/json")
		_, _ = rw.Write(wire.AppendAnswer(nil, w.served, &wire.Answer{Finish: f, AnswerHead: wire.AnswerHead{
			ID: "00000000000000000000000001", Model: "m-1", Created: 1, Request: req}}))
		return req
	}
	rw.Header().Set("Content-Type", "text/event-stream")
	for _, e := range w.events(req, f) {
		_, _ = io.WriteString(rw, e)
	}
	return req
}

func finishOf(reason lathe.FinishReason, parts ...lathe.Part) *lathe.Finish {
	return &lathe.Finish{Message: lathe.Message{Role: lathe.RoleAssistant, Parts: parts}, Reason: reason,
		Usage: lathe.Usage{InputTokens: 120, CachedTokens: 100, OutputTokens: 64, ReasoningTokens: 20, TotalTokens: 184}}
}

var parallelCalls = []lathe.Part{
	lathe.Text{Text: "Let me look."},
	lathe.ToolCall{ID: "call_A", Name: "get_weather", Arguments: `{"city":"Oslo","n":12345678901234567890}`},
	lathe.ToolCall{ID: "call_B", Name: "get_weather", Arguments: `{"city":"Lima"}`},
}

var weather = []*lathe.ToolSpec{{Name: "get_weather", Description: "Weather.",
	Schema: []byte(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`)}}

// TestWiresCarryAnswers: text, reasoning and parallel calls arrive on each wire, streamed and in one piece, and requests go where
// and as the wire demands.
func TestWiresCarryAnswers(t *testing.T) {
	t.Parallel()
	eachWire(t, func(t *testing.T, w *wireCase) {
		for name, f := range map[string]*lathe.Finish{
			"text":           finishOf(lathe.FinishStop, lathe.Text{Text: "Hello, ☃ there."}),
			"one call":       finishOf(lathe.FinishToolCalls, parallelCalls[1]),
			"parallel calls": finishOf(lathe.FinishToolCalls, parallelCalls...),
			"length":         finishOf(lathe.FinishLength, lathe.Text{Text: "Hel"}),
		} {
			for _, whole := range []bool{false, true} {
				m := w.model(t, func(rw http.ResponseWriter, r *http.Request) {
					path := w.path
					if whole && w.wholePath != "" {
						path = w.wholePath
					}
					if r.URL.Path != path || r.Header.Get(w.key) != w.keyValue {
						t.Errorf("asked at %s with %s: %q", r.URL.Path, w.key, r.Header.Get(w.key))
					}
					for k, v := range w.headers {
						if r.Header.Get(k) != v {
							t.Errorf("%s: %q, want %q", k, r.Header.Get(k), v)
						}
					}
					req := w.answer(t, rw, r, f)
					if req.Model != "test-model" || req.Stream == whole || len(req.Tools) != 1 || req.Messages[len(req.Messages)-1].Text() != "hi" {
						t.Errorf("the server read %+v", req.Request)
					}
				}, nil)
				if got := m.Describe().Wire; got != w.wire || m.Relays() != w.wire {
					t.Errorf("describes %q, relays %q", got, m.Relays())
				}
				req := &lathe.Request{Messages: []lathe.Message{lathe.System("s"), lathe.User("hi")}, Tools: weather}
				if whole {
					req.Relay = &lathe.Relay{Wire: w.wire, Take: func(*lathe.Raw) {}}
				}
				var got *lathe.Finish
				for d, err := range m.Generate(t.Context(), req) {
					if err != nil {
						t.Fatalf("%s, whole %v: %v", name, whole, err)
					}
					got = d.Finish
				}
				if got.Reason != f.Reason || got.Usage != f.Usage || got.Model != "m-1" || len(got.Dropped) > 0 {
					t.Errorf("%s, whole %v: got %+v", name, whole, got)
				}
				if a, b := contentOf(got.Message), contentOf(f.Message); a != b {
					t.Errorf("%s, whole %v: got %s, want %s", name, whole, a, b)
				}
			}
		}
	})
}

// contentOf returns what a message says, without ids.
func contentOf(m lathe.Message) string {
	out := m.Text()
	for _, c := range m.Calls() {
		out += fmt.Sprintf(" %s(%s)", c.Name, c.Arguments)
	}
	return out
}

// signed is an answer whose reasoning the vendor protects, as each wire has it.
func signed(w lathe.Wire) *lathe.Finish {
	r := lathe.Reasoning{Text: "I think of it.", Field: "thinking", Data: "c2lnbmF0dXJlLUEvKz0="}
	call := parallelCalls[1]
	switch w {
	case lathe.WireOpenAIChat:
		r = lathe.Reasoning{Text: "I think of it.", Field: "reasoning_content"}
	case lathe.WireResponses:
		r.Field, r.ID = "encrypted_content", "rs_01"
	case lathe.WireGemini:
		r = lathe.Reasoning{Field: "thoughtSignature", Data: r.Data}
	}
	return finishOf(lathe.FinishToolCalls, r, call)
}

// TestReasoningReachesItsOwnEntryAlone (W26): what a model thought goes back to it byte for byte, in its place, and to no other
// entry, of the same wire or another.
func TestReasoningReachesItsOwnEntryAlone(t *testing.T) {
	t.Parallel()
	eachWire(t, func(t *testing.T, w *wireCase) {
		var sent string
		first := w.model(t, func(rw http.ResponseWriter, r *http.Request) {
			req := w.answer(t, rw, r, signed(w.wire))
			sent = string(req.Body)
		}, func(o *provider.Options) { o.Entry = "first" })
		a := ask(t, t.Context(), first)
		if a.err != nil {
			t.Fatal(a.err)
		}
		thought, ok := a.finish.Message.Parts[0].(lathe.Reasoning)
		if !ok || thought.Entry != "first" {
			t.Fatalf("the answer is %+v", a.finish.Message)
		}
		mark := thought.Data
		if w.wire == lathe.WireOpenAIChat {
			mark = thought.Text
		} else if a.finish.Message.Wire != w.wire {
			t.Errorf("the answer is marked with wire %q", a.finish.Message.Wire)
		}
		history := []lathe.Message{lathe.User("hi"), a.finish.Message, result(a.finish.Message.Calls()[0].ID, "sunny")}
		ask(t, t.Context(), first, history...)
		if !strings.Contains(sent, mark) || strings.Index(sent, mark) > strings.LastIndex(sent, "sunny") {
			t.Errorf("its own entry was sent %s", sent)
		}
		for _, other := range wireCases() {
			second := other.model(t, func(rw http.ResponseWriter, r *http.Request) {
				req := other.answer(t, rw, r, finishOf(lathe.FinishStop, lathe.Text{Text: "ok"}))
				sent = string(req.Body)
			}, func(o *provider.Options) { o.Entry = "second" })
			b := ask(t, t.Context(), second, history...)
			if b.err != nil || strings.Contains(sent, mark) || !strings.Contains(sent, "sunny") {
				t.Errorf("%s: another entry was sent %s, %v", other.wire, sent, b.err)
			}
			if b.err == nil && len(b.finish.Dropped) == 0 {
				t.Errorf("%s: nothing is listed as dropped", other.wire)
			}
		}
	})
}

// TestWireErrors: errors have the same kinds on each wire, and are repeated by the same rules.
func TestWireErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		api    wire.APIError
		header map[string]string
		kind   lathe.UpstreamKind
		calls  int
		code   string
		on     []lathe.Wire // nil: all
	}{
		"bad request":  {api: wire.APIError{Status: 400, Message: "temperature: no"}, kind: lathe.Upstream4xx, calls: 1},
		"no key":       {api: wire.APIError{Status: 401, Message: "invalid key"}, kind: lathe.Upstream4xx, calls: 1},
		"not found":    {api: wire.APIError{Status: 404, Message: "no such model"}, kind: lathe.Upstream4xx, calls: 1},
		"conflict":     {api: wire.APIError{Status: 409, Message: "again"}, kind: lathe.Upstream4xx, calls: 3},
		"rate limited": {api: wire.APIError{Status: 429, Message: "slow down"}, header: map[string]string{"Retry-After-Ms": "1"}, kind: lathe.UpstreamRateLimited, calls: 3},
		"failed":       {api: wire.APIError{Status: 500, Message: "oh"}, kind: lathe.Upstream5xx, calls: 3},
		"unavailable":  {api: wire.APIError{Status: 503, Message: "later"}, kind: lathe.Upstream5xx, calls: 3},
		"overloaded":   {api: wire.APIError{Status: 529, Message: "Overloaded", Type: "overloaded_error"}, kind: lathe.Upstream5xx, calls: 3},
		"told not to":  {api: wire.APIError{Status: 500, Message: "oh"}, header: map[string]string{"X-Should-Retry": "false"}, kind: lathe.Upstream5xx, calls: 1},
		"told to":      {api: wire.APIError{Status: 400, Message: "oh"}, header: map[string]string{"X-Should-Retry": "true"}, kind: lathe.Upstream4xx, calls: 3},
		"overflow": {api: wire.APIError{Status: 400, Message: "prompt is too long: 9 tokens > 8 maximum", Code: lathe.CodeContextLength}, header: map[string]string{"X-Should-Retry": "true"},
			kind: lathe.Upstream4xx, calls: 1, code: lathe.CodeContextLength},
		"no quota": {api: wire.APIError{Status: 429, Message: "pay", Code: "insufficient_quota", Type: "insufficient_quota"}, kind: lathe.UpstreamRateLimited, calls: 1, code: "insufficient_quota",
			on: []lathe.Wire{lathe.WireOpenAIChat, lathe.WireResponses}},
		"wait in the body": {api: wire.APIError{Status: 429, Message: "slow down", RetryAfter: 3600}, kind: lathe.UpstreamRateLimited, calls: 1, on: []lathe.Wire{lathe.WireGemini}},
		"too long a wait":  {api: wire.APIError{Status: 429, Message: "slow down"}, header: map[string]string{"Retry-After": "3600"}, kind: lathe.UpstreamRateLimited, calls: 1},
	} {
		eachWire(t, func(t *testing.T, w *wireCase) {
			if c.on != nil && !slices.Contains(c.on, w.wire) {
				return
			}
			calls := 0
			m := w.model(t, func(rw http.ResponseWriter, r *http.Request) {
				calls++
				w.read(t, r)
				for k, v := range c.header {
					rw.Header().Set(k, v)
				}
				rw.Header().Set("Request-Id", "req_1")
				rw.WriteHeader(c.api.Status)
				_, _ = rw.Write(w.served.AppendError(nil, &c.api))
			}, nil)
			a := ask(t, t.Context(), m)
			up := a.upstream(t)
			if up.Kind != c.kind || up.Status != c.api.Status || calls != c.calls || len(a.retries) != calls-1 || up.RequestID != "req_1" || up.Message == "" {
				t.Errorf("%s: got %+v after %d calls", name, up, calls)
			}
			if c.code != "" && up.ProviderCode != c.code {
				t.Errorf("%s: code %q", name, up.ProviderCode)
			}
			if (c.header["Retry-After"] != "" || c.api.RetryAfter > 0) && up.RetryAfter.Hours() != 1 {
				t.Errorf("%s: waits %v", name, up.RetryAfter)
			}
		})
	}
}

// TestCutStreamOnEveryWire (W8): a stream that ends after any of its events is an answer only if the answer is whole, and
// else an error: never half an answer.
func TestCutStreamOnEveryWire(t *testing.T) {
	t.Parallel()
	eachWire(t, func(t *testing.T, w *wireCase) {
		f := finishOf(lathe.FinishToolCalls, parallelCalls...)
		cut, n := 0, 0
		m := w.model(t, func(rw http.ResponseWriter, r *http.Request) {
			events := w.events(w.read(t, r), f)
			n = len(events)
			rw.Header().Set("Content-Type", "text/event-stream")
			for _, e := range events[:cut] {
				_, _ = io.WriteString(rw, e)
			}
		}, func(o *provider.Options) { o.Retry.Attempts = 1 })
		for ; cut == 0 || cut <= n; cut++ {
			a := ask(t, t.Context(), m)
			switch {
			case a.err == nil && contentOf(a.finish.Message) != contentOf(f.Message):
				t.Errorf("cut after %d of %d events: got %s", cut, n, contentOf(a.finish.Message))
			case a.err == nil && cut < n-2, a.err != nil && cut == n:
				t.Errorf("cut after %d of %d events: %v", cut, n, a.err)
			case a.err != nil && a.kind() != lathe.UpstreamBadProtocol:
				t.Errorf("cut after %d of %d events: %v", cut, n, a.err)
			}
		}
	})
}

// TestErrorWithinTheStreamOfEveryWire (W29): an error after the first event is the call's error, and the call is not repeated.
func TestErrorWithinTheStreamOfEveryWire(t *testing.T) {
	t.Parallel()
	eachWire(t, func(t *testing.T, w *wireCase) {
		calls := 0
		m := w.model(t, func(rw http.ResponseWriter, r *http.Request) {
			calls++
			wr := w.served.NewWriter(&wire.AnswerHead{ID: "00000000000000000000000001", Model: "m", Request: w.read(t, r)})
			b := wr.AppendDelta(wr.AppendStart(nil), lathe.Delta{Kind: lathe.DeltaText, Text: "Hello"})
			_, _ = rw.Write(wr.AppendError(b, &wire.APIError{Status: 500, Message: "it broke " + key}))
		}, nil)
		a := ask(t, t.Context(), m)
		if up := a.upstream(t); a.text != "Hello" || calls != 1 || !up.InBand || !strings.Contains(up.Message, "it broke") || strings.Contains(up.Message, key) {
			t.Errorf("got %q, %+v after %d calls", a.text, a.err, calls)
		}
	})
}

// TestLimitsOnEveryWire: an answer above a limit ends the call with an error that names the setting.
func TestLimitsOnEveryWire(t *testing.T) {
	t.Parallel()
	many := make([]lathe.Part, 0, 9)
	for i := range 9 {
		many = append(many, lathe.ToolCall{ID: fmt.Sprint("call_", i), Name: "get_weather", Arguments: `{}`})
	}
	long := []lathe.Part{lathe.Text{Text: strings.Repeat("abcdefgh", 1<<10)}}
	for setting, c := range map[string]struct {
		parts  []lathe.Part
		change func(*provider.Options)
	}{
		"max_answer_calls":   {many, func(o *provider.Options) { o.Limits.MaxAnswerCalls = 8 }},
		"max_answer_bytes":   {long, func(o *provider.Options) { o.Limits.MaxAnswerBytes = 1 << 10 }},
		"max_line_bytes":     {long, func(o *provider.Options) { o.Limits.MaxLineBytes = 1 << 10 }},
		"max_event_bytes":    {long, func(o *provider.Options) { o.Limits.MaxEventBytes, o.Limits.MaxLineBytes = 1<<10, 1<<20 }},
		"max_response_bytes": {long, func(o *provider.Options) { o.Limits.MaxResponseBytes = 1 << 10 }},
	} {
		eachWire(t, func(t *testing.T, w *wireCase) {
			m := w.model(t, func(rw http.ResponseWriter, r *http.Request) {
				w.answer(t, rw, r, finishOf(lathe.FinishStop, c.parts...))
			}, c.change)
			a := ask(t, t.Context(), m)
			if a.err == nil || a.kind() != lathe.UpstreamBadProtocol || !strings.Contains(a.upstream(t).Message, setting) {
				t.Errorf("got %v, want an error that names %s", a.err, setting)
			}
		})
	}
}

// TestCancelOnEveryWire: cancelling between two events ends the call at once and frees the connection.
func TestCancelOnEveryWire(t *testing.T) {
	t.Parallel()
	eachWire(t, func(t *testing.T, w *wireCase) {
		gone := make(chan struct{})
		m := w.model(t, func(rw http.ResponseWriter, r *http.Request) {
			wr := w.served.NewWriter(&wire.AnswerHead{ID: "00000000000000000000000001", Model: "m", Request: w.read(t, r)})
			_, _ = rw.Write(wr.AppendDelta(wr.AppendStart(nil), lathe.Delta{Kind: lathe.DeltaText, Text: "Hello"}))
			_ = http.NewResponseController(rw).Flush()
			<-r.Context().Done()
			close(gone)
		}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var last error
		for d, err := range m.Generate(ctx, &lathe.Request{Messages: []lathe.Message{lathe.User("hi")}}) {
			if last = err; d.Kind == lathe.DeltaText {
				cancel()
			}
		}
		if lathe.CodeOf(last) != lathe.CodeCancelled || !errors.Is(last, context.Canceled) {
			t.Errorf("got %v", last)
		}
		<-gone
	})
}

// TestKeysDoNotPrintOnAnyWire: a model does not show its key, however it is printed.
func TestKeysDoNotPrintOnAnyWire(t *testing.T) {
	t.Parallel()
	eachWire(t, func(t *testing.T, w *wireCase) {
		m := w.model(t, nil, nil)
		for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
			if strings.Contains(fmt.Sprintf(format, m), key) {
				t.Errorf("%s shows the key", format)
			}
		}
	})
}
