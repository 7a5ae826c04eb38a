package provider_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/provider"
)

// TestEachMemberOfARequestArrivesOrIsListed (W30): each field of Sampling and of Request, set alone, is in what the server of
// each wire reads, or its path is in Finish.Dropped.
func TestEachMemberOfARequestArrivesOrIsListed(t *testing.T) {
	t.Parallel()
	f, n, seed, no := 0.5, 1500, int64(7), false
	base := func() *lathe.Request {
		return &lathe.Request{Messages: []lathe.Message{lathe.User("hi")}, Tools: weather}
	}
	members := map[string]struct {
		set func(*lathe.Request)
		get func(*lathe.Request) any
	}{
		"sampling.temperature": {func(r *lathe.Request) { r.Sampling.Temperature = &f }, func(r *lathe.Request) any { return r.Sampling.Temperature }},
		"sampling.top_p":       {func(r *lathe.Request) { r.Sampling.TopP = &f }, func(r *lathe.Request) any { return r.Sampling.TopP }},
		"sampling.max_tokens":  {func(r *lathe.Request) { r.Sampling.MaxTokens = &n }, func(r *lathe.Request) any { return r.Sampling.MaxTokens }},
		"sampling.seed":        {func(r *lathe.Request) { r.Sampling.Seed = &seed }, func(r *lathe.Request) any { return r.Sampling.Seed }},
		"sampling.stop":        {func(r *lathe.Request) { r.Sampling.Stop = []string{"END"} }, func(r *lathe.Request) any { return r.Sampling.Stop }},
		"sampling.reasoning_effort": {func(r *lathe.Request) { r.Sampling.ReasoningEffort = "high" },
			func(r *lathe.Request) any { return r.Sampling.ReasoningEffort }},
		"sampling.reasoning_budget":  {func(r *lathe.Request) { r.Sampling.ReasoningBudget = &n }, func(r *lathe.Request) any { return r.Sampling.ReasoningBudget }},
		"sampling.reasoning_summary": {func(r *lathe.Request) { r.Sampling.ReasoningSummary = "auto" }, func(r *lathe.Request) any { return r.Sampling.ReasoningSummary }},
		"sampling.top_k":             {func(r *lathe.Request) { r.Sampling.TopK = &n }, func(r *lathe.Request) any { return r.Sampling.TopK }},
		"sampling.presence_penalty":  {func(r *lathe.Request) { r.Sampling.PresencePenalty = &f }, func(r *lathe.Request) any { return r.Sampling.PresencePenalty }},
		"sampling.frequency_penalty": {func(r *lathe.Request) { r.Sampling.FrequencyPenalty = &f }, func(r *lathe.Request) any { return r.Sampling.FrequencyPenalty }},
		"sampling.response_format": {func(r *lathe.Request) {
			r.Sampling.ResponseFormat = json.RawMessage(`{"type":"json_schema","json_schema":{"name":"o","schema":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}}}`)
		}, func(r *lathe.Request) any {
			s, _, _ := bytes.Cut(r.Sampling.ResponseFormat, []byte(`"properties"`))
			return bytes.Contains(s, []byte("json_schema"))
		}},
		"tool_choice": {func(r *lathe.Request) { r.ToolChoice = lathe.ToolChoice{Mode: lathe.ChoiceRequired} }, func(r *lathe.Request) any { return r.ToolChoice }},
		"tool_choice.name": {func(r *lathe.Request) {
			r.ToolChoice = lathe.ToolChoice{Mode: lathe.ChoiceFunction, Name: "get_weather"}
		}, func(r *lathe.Request) any { return r.ToolChoice }},
		"parallel_tool_calls": {func(r *lathe.Request) { r.ParallelToolCalls = &no }, func(r *lathe.Request) any { return r.ParallelToolCalls }},
		"user":                {func(r *lathe.Request) { r.User = "u-1" }, func(r *lathe.Request) any { return r.User }},
		"tools":               {func(*lathe.Request) {}, func(r *lathe.Request) any { return []string{r.Tools[0].Name, r.Tools[0].Description} }},
		"messages": {func(r *lathe.Request) {
			r.Messages = []lathe.Message{lathe.System("s"), lathe.User("hi"), {Role: lathe.RoleAssistant, Parts: parallelCalls}, result("call_A", "1"), result("call_B", "2"), lathe.User("go on")}
		}, func(r *lathe.Request) any {
			var out []string
			for _, m := range r.Messages {
				out = append(out, contentOf(m))
				for _, p := range m.Parts {
					if r, ok := p.(lathe.ToolResult); ok {
						out = append(out, r.CallID+"="+r.Content)
					}
				}
			}
			return out
		}},
	}
	for i := range reflect.TypeFor[lathe.Sampling]().NumField() {
		name, _, _ := strings.Cut(reflect.TypeFor[lathe.Sampling]().Field(i).Tag.Get("json"), ",")
		if _, ok := members["sampling."+name]; !ok {
			t.Errorf("no case sets sampling.%s", name)
		}
	}
	eachWire(t, func(t *testing.T, w *wireCase) {
		var got *wire.ClientRequest
		m := w.model(t, func(rw http.ResponseWriter, r *http.Request) {
			got = w.answer(t, rw, r, finishOf(lathe.FinishStop, lathe.Text{Text: "{}"}))
		}, nil)
		for name, c := range members {
			req := base()
			c.set(req)
			var fin *lathe.Finish
			for d, err := range m.Generate(t.Context(), req) {
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				fin = d.Finish
			}
			arrived := reflect.DeepEqual(c.get(&got.Request), c.get(req))
			path, _, _ := strings.Cut(strings.TrimPrefix(name, "sampling."), ".")
			listed := slices.ContainsFunc(fin.Dropped, func(p string) bool { return strings.Contains(p, path) })
			arrived = arrived || slices.ContainsFunc(got.Unknown, func(m lathe.Member) bool { return m.Name == path }) // the server keeps it
			if !arrived && !listed {
				t.Errorf("%s: sent %s, and dropped is %q", name, got.Body, fin.Dropped)
			}
		}
	})
}

// TestCallsOfOneIDAreSentApart (W15): a history with ids that are used again reaches the server of each wire with an id for each call,
// and each result with that of its call.
func TestCallsOfOneIDAreSentApart(t *testing.T) {
	t.Parallel()
	turn := func(results ...string) []lathe.Message {
		m := []lathe.Message{{Role: lathe.RoleAssistant}}
		for _, s := range results {
			m[0].Parts = append(m[0].Parts, lathe.ToolCall{ID: "call_" + s[:1], Name: "get_weather", Arguments: `{"for":"` + s + `"}`})
			m = append(m, result("call_"+s[:1], s))
		}
		return m
	}
	eachWire(t, func(t *testing.T, w *wireCase) {
		var got *wire.ClientRequest
		m := w.model(t, func(rw http.ResponseWriter, r *http.Request) {
			got = w.answer(t, rw, r, finishOf(lathe.FinishStop, lathe.Text{Text: "{}"}))
		}, nil)
		history := slices.Concat([]lathe.Message{lathe.User("a")}, turn("0a"), turn("0b", "1b"), turn("1c", "0c"), []lathe.Message{lathe.User("b")})
		for _, err := range m.Generate(t.Context(), &lathe.Request{Messages: history, Tools: weather}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		calls := map[string]string{}
		results := 0
		for _, m := range got.Messages {
			for _, c := range m.Calls() {
				if calls[c.ID] != "" {
					t.Errorf("two calls have the id %s:\n%s", c.ID, got.Body)
				}
				calls[c.ID] = c.Arguments
			}
			for _, p := range m.Parts {
				if r, ok := p.(lathe.ToolResult); ok {
					if results++; !strings.Contains(calls[r.CallID], `"`+r.Content+`"`) {
						t.Errorf("the result %s answers %s:\n%s", r.Content, calls[r.CallID], got.Body)
					}
				}
			}
		}
		if len(calls) != 5 || results != 5 {
			t.Errorf("%d calls, %d results:\n%s", len(calls), results, got.Body)
		}
	})
}

// TestRelayOnEveryWire: a request that is relayed goes byte for byte to a model of its wire, and the answer comes back byte for
// byte; a request of another wire is not sent, and nothing is relayed.
func TestRelayOnEveryWire(t *testing.T) {
	t.Parallel()
	bodies := map[lathe.Wire]string{
		lathe.WireOpenAIChat: `{"model":"test-model", "messages":[ {"role":"user","content":"hi"}],"stream":true,"stream_options":{"include_usage":true},"own":1}`,
		lathe.WireResponses:  `{"model":"test-model", "input":[ {"role":"user","content":"hi"}],"stream":true,"store":false,"include":["reasoning.encrypted_content"],"own":1}`,
		lathe.WireMessages:   `{"model":"test-model", "messages":[ {"role":"user","content":"hi"}],"max_tokens":9,"stream":true,"own":1}`,
		lathe.WireGemini:     `{"contents":[ {"role":"user","parts":[{"text":"hi"}]}],"own":1}`,
	}
	eachWire(t, func(t *testing.T, w *wireCase) {
		var sent, answered string
		m := w.model(t, func(rw http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			sent = string(body)
			r.Body = io.NopCloser(strings.NewReader(sent))
			answered = strings.Join(w.events(w.read(t, r), finishOf(lathe.FinishStop, lathe.Text{Text: "Hello there"})), "")
			rw.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(rw, answered)
		}, nil)
		for of, body := range bodies {
			relayed, sound := "", true
			req := &lathe.Request{Messages: []lathe.Message{lathe.User("hi")}, Relay: &lathe.Relay{Wire: of, Stream: true, Request: []byte(body),
				Take: func(raw *lathe.Raw) { relayed, sound = relayed+string(raw.Bytes), sound && raw.Sound }}}
			for _, err := range m.Generate(t.Context(), req) {
				if err != nil {
					t.Fatal(err)
				}
			}
			if own := of == w.wire; own != (sent == body) || own != (relayed == answered) || !own && relayed != "" || !sound {
				t.Errorf("a request of %s: sent %s, relayed %q of %q, sound %v", of, sent, relayed, answered, sound)
			}
		}
	})
}

// TestRefusedFeatureIsLeftOut: a request whose feature the server refuses is sent once more without it, and so are the next.
func TestRefusedFeatureIsLeftOut(t *testing.T) {
	t.Parallel()
	for _, w := range wireCases() {
		words, feature, other := "", "", "reasoning.effort: strict tool role system is not supported, output_config.format, Encrypted content is not supported"
		switch w.wire {
		case lathe.WireResponses:
			words, feature = "Encrypted content is not supported with this model.", "encrypted_content"
		case lathe.WireMessages:
			words, feature = "output_config.effort: not supported by this model", `"effort"`
		default:
			continue
		}
		t.Run(string(w.wire), func(t *testing.T) {
			t.Parallel()
			calls := 0
			m := w.model(t, func(rw http.ResponseWriter, r *http.Request) {
				calls++
				body, _ := io.ReadAll(r.Body)
				r.Body = io.NopCloser(bytes.NewReader(body))
				if bytes.Contains(body, []byte(feature)) {
					rw.WriteHeader(http.StatusBadRequest)
					_, _ = rw.Write(w.served.AppendError(nil, &wire.APIError{Status: 400, Message: words}))
					return
				}
				if bytes.Contains(body, []byte("quote")) { // it never succeeds: nothing is to be learned of it
					rw.WriteHeader(http.StatusBadRequest)
					_, _ = rw.Write(w.served.AppendError(nil, &wire.APIError{Status: 400, Message: "cannot read: " + other}))
					return
				}
				w.answer(t, rw, r, finishOf(lathe.FinishStop, lathe.Text{Text: "ok"}))
			}, func(o *provider.Options) { o.Retry.Attempts = 1 })
			if a := ask(t, t.Context(), m, lathe.User("quote")); a.err == nil {
				t.Error("a refused request succeeded")
			}
			calls = 0
			for i, want := range []int{2, 3, 4} {
				retries := 0
				req := &lathe.Request{Messages: []lathe.Message{lathe.User("hi")}, Sampling: lathe.Sampling{ReasoningEffort: "high"}}
				for d, err := range m.Generate(t.Context(), req) {
					if err != nil {
						t.Fatal(err)
					}
					if d.Kind == lathe.DeltaRetry {
						retries++
					}
				}
				if calls != want || retries != 1-min(i, 1) {
					t.Errorf("call %d: %d requests, %d retries", i, calls, retries)
				}
			}
		})
	}
}
