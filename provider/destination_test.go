package provider_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/destination"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/provider"
)

// familyModels are models of each family that a rule names.
var familyModels = []string{"gpt-4o", "gpt-5-mini", "gpt-6", "o3", "claude-3-5-haiku-20241022", "claude-haiku-4-5", "claude-opus-4-1", "claude-opus-4-5",
	"claude-opus-4-6", "claude-opus-4-7", "claude-sonnet-5-5", "claude-fable-5-1", "gemini-2.5-pro", "gemini-2.5-flash", "gemini-3-pro", "mistral-small"}

// everyRule is a request to which every rule applies.
func everyRule(model string) *lathe.Request {
	temperature, topP, topK, maxTokens, budget := 0.5, 0.9, 3, 2, 2000
	text := func(s string) []lathe.Part { return []lathe.Part{lathe.Text{Text: s}} }
	return &lathe.Request{Model: model, User: strings.Repeat("u", 130),
		Tools: []*lathe.ToolSpec{{Name: "f", Schema: json.RawMessage(`{"type":"object","anyOf":[{"properties":{"a":{"type":"array"}}},{"properties":{"o":{"$ref":"#/$defs/O","title":"T"}}}],"$defs":{"O":{"type":"object"}}}`)},
			{Name: "g", Schema: json.RawMessage(`{"type":"object"}`)}},
		Sampling: lathe.Sampling{Temperature: &temperature, TopP: &topP, TopK: &topK, MaxTokens: &maxTokens, ReasoningBudget: &budget, Stop: []string{"1", "2", "3", "4", "5"},
			ResponseFormat: json.RawMessage(`{"type":"json_object"}`)},
		Messages: []lathe.Message{lathe.System("S"), {Role: lathe.RoleDeveloper, Parts: text("D")},
			{Role: lathe.RoleUser, Parts: []lathe.Part{lathe.Blob{MediaType: "text/plain", Name: "t", Data: []byte("words")}, lathe.Text{Text: "u"}}},
			{Role: lathe.RoleAssistant, Wire: lathe.WireMessages, Parts: []lathe.Part{lathe.Reasoning{Text: "Think", Field: "thinking"}, lathe.ToolCall{ID: "abcdefghi", Name: "f", Arguments: "{}"}}},
			result("abcdefghi", "r"), lathe.System("M"), lathe.User("v")}}
}

// withEffort asks for thinking by an effort, and forces a call.
func withEffort(model string) *lathe.Request {
	maxTokens := 4000
	return &lathe.Request{Model: model, Tools: []*lathe.ToolSpec{{Name: "f"}}, ToolChoice: lathe.ToolChoice{Mode: lathe.ChoiceRequired},
		Sampling: lathe.Sampling{ReasoningEffort: "high", MaxTokens: &maxTokens}, Messages: []lathe.Message{lathe.User("u")}}
}

// withoutEffort asks for an answer without thinking.
func withoutEffort(model string) *lathe.Request {
	return &lathe.Request{Model: model, Sampling: lathe.Sampling{ReasoningEffort: "none"}, Messages: []lathe.Message{lathe.User("u")}}
}

// TestDestinations holds what is sent to each kind of server and to models of each family, for requests to which every rule applies, with
// the members that are listed as dropped. A new rule, server or family shows here.
func TestDestinations(t *testing.T) {
	t.Parallel()
	requests := []struct {
		name string
		make func(string) *lathe.Request
	}{{"every rule", everyRule}, {"effort", withEffort}, {"no effort", withoutEffort}}
	var out bytes.Buffer
	for _, w := range wireCases() {
		type group struct {
			names []string
			text  string
		}
		for _, r := range requests {
			var groups []*group
			add := func(name, server, model string) {
				body := ""
				m := w.model(t, func(rw http.ResponseWriter, hr *http.Request) {
					body = string(w.answer(t, rw, hr, finishOf(lathe.FinishStop, lathe.Text{Text: "{}"})).Body)
				}, func(o *provider.Options) { o.Server.Kind, o.Server.NoUsage = server, true })
				var dropped []string
				for d, err := range m.Generate(t.Context(), r.make(model)) {
					if err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					if d.Finish != nil {
						dropped = d.Finish.Dropped
					}
				}
				text := strings.Replace(body, `"model":"`+model+`",`, "", 1) + "\ndropped: " + strings.Join(dropped, " ")
				i := slices.IndexFunc(groups, func(g *group) bool { return g.text == text })
				if i < 0 {
					i, groups = len(groups), append(groups, &group{text: text})
				}
				groups[i].names = append(groups[i].names, name)
			}
			add("unknown", "", "m")
			for _, s := range destination.Servers() {
				add(s.Name, s.Name, "m")
			}
			for _, model := range familyModels {
				add(model, "", model)
			}
			for _, g := range groups {
				fmt.Fprintf(&out, "## %s, %s: %s\n%s\n\n", w.wire, r.name, strings.Join(g.names, ", "), g.text)
			}
		}
	}
	file := filepath.Join("testdata", "destinations.txt")
	if *update {
		if err := os.WriteFile(file, out.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.Bytes(), want) {
		got := filepath.Join(t.ArtifactDir(), "destinations.txt")
		_ = os.WriteFile(got, out.Bytes(), 0o666)
		t.Errorf("what is sent differs from %s: compare it with %s, or run with -update", file, got)
	}
}

// Each rule's family has a model in the table of TestDestinations.
func TestEveryFamilyIsTested(t *testing.T) {
	t.Parallel()
	for _, r := range destination.Rules() {
		if r.Family == "" {
			continue
		}
		w := r.Wire
		if w == "" {
			w = lathe.WireOpenAIChat
		}
		if !slices.ContainsFunc(familyModels, func(model string) bool {
			row := destination.For(w, r.Server, "", model)
			return row == row.With(&r.Row) && row != destination.For(w, r.Server, "", "m")
		}) {
			t.Errorf("no model is of family %s, %d to %d", r.Family, r.From, r.To)
		}
	}
}

// The encoded conversation of a server with strict rules only grows from turn to turn.
func TestDestinationKeepsThePrefix(t *testing.T) {
	t.Parallel()
	eachWire(t, func(t *testing.T, w *wireCase) {
		for _, server := range []string{"llamacpp", "mistral", "openai", ""} {
			var bodies []string
			m := w.model(t, func(rw http.ResponseWriter, r *http.Request) {
				bodies = append(bodies, string(w.answer(t, rw, r, finishOf(lathe.FinishStop, lathe.Text{Text: "x"})).Body))
			}, func(o *provider.Options) { o.Server.Kind = server })
			msgs := everyRule("").Messages
			msgs = append(msgs, lathe.Assistant("a"), lathe.System("N"), lathe.User("w"), call("bcdefghij", "f", "{}"), result("bcdefghij", "s"))
			for n, end := range []int{3, 5, 7, 8, 10, len(msgs)} {
				req := everyRule("test-model")
				req.Messages = msgs[:end:end]
				for _, err := range m.Generate(t.Context(), req) {
					if err != nil {
						t.Fatal(err)
					}
				}
				if n == 0 {
					continue
				}
				before := strings.TrimRight(bodies[n-1], "]}")
				// A text of the user after another one is joined to it, in the string that ends the request before.
				before = strings.TrimSuffix(before, `"`)
				if !strings.HasPrefix(bodies[n], before) {
					t.Errorf("%s: request %d does not begin with the one before:\n%s\n%s", server, n, before, bodies[n])
				}
			}
		}
	})
}

// A server that refuses the order of roles gets the messages in the order that the strictest templates take, in the requests after it at
// once, and also where the client's own bytes would be relayed.
func TestRefusedRolesAreLearned(t *testing.T) {
	t.Parallel()
	eachWire(t, func(t *testing.T, w *wireCase) {
		if w.wire == lathe.WireGemini {
			return
		}
		var requests, refused atomic.Int32
		m := w.model(t, func(rw http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			if !bytes.Contains(body, []byte(`M\n\u003c/system`)) && !bytes.Contains(body, []byte(`M\n</system>`)) {
				refused.Add(1)
				rw.Header().Set("Content-Type", "application/json")
				rw.WriteHeader(http.StatusBadRequest)
				_, _ = rw.Write(w.served.AppendError(nil, &wire.APIError{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: "conversation roles must alternate"}))
				return
			}
			w.answer(t, rw, r, finishOf(lathe.FinishStop, lathe.Text{Text: "x"}))
		}, nil)
		for range 2 {
			req := &lathe.Request{Messages: []lathe.Message{lathe.System("S"), lathe.User("u"), lathe.System("M"), lathe.User("v")}}
			if w.wire == lathe.WireOpenAIChat {
				req.Relay = &lathe.Relay{Wire: w.wire, Stream: true, Take: func(*lathe.Raw) {}, Request: []byte(`{"model":"m","stream":true,"messages":[{"role":"system","content":"S"},{"role":"user","content":"u"},{"role":"system","content":"M"},{"role":"user","content":"v"}]}`)}
			}
			for _, err := range m.Generate(t.Context(), req) {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		want := int32(1)
		if w.wire == lathe.WireMessages { // whose messages are so from the start
			want = 0
		}
		if refused.Load() != want || requests.Load() != 2+want {
			t.Errorf("%d of %d requests were refused", refused.Load(), requests.Load())
		}
	})
}

// A refusal sets the rule that it is about, and no other: after one about system messages, the text of the user beside results of tools stays a turn of
// its own, and after one about the effort no effort is sent.
func TestEachRefusalSetsItsRule(t *testing.T) {
	t.Parallel()
	eachWire(t, func(t *testing.T, w *wireCase) {
		if w.wire != lathe.WireOpenAIChat {
			return
		}
		var requests atomic.Int32
		var last atomic.Pointer[string]
		m := w.model(t, func(rw http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			refusal := ""
			switch {
			case bytes.Contains(body, []byte(`"developer"`)):
				refusal = "messages[0].role: unknown variant `developer`, expected one of `system`, `user`"
			case bytes.Count(body, []byte(`"role":"system"`)) > 1:
				refusal = "Jinja Exception: System message must be at the beginning."
			case bytes.Contains(body, []byte("reasoning_effort")):
				refusal = "`reasoning_effort` is not supported with this model"
			}
			if refusal != "" {
				rw.Header().Set("Content-Type", "application/json")
				rw.WriteHeader(http.StatusBadRequest)
				_, _ = rw.Write(w.served.AppendError(nil, &wire.APIError{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: refusal}))
				return
			}
			text := string(body)
			last.Store(&text)
			w.answer(t, rw, r, finishOf(lathe.FinishStop, lathe.Text{Text: "x"}))
		}, nil)
		call := lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.ToolCall{ID: "c1", Name: "f", Arguments: "{}"}}}
		result := lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: "c1", Name: "f", Content: "R"}}}
		developer := lathe.System("D")
		developer.Role = lathe.RoleDeveloper
		for range 2 {
			req := &lathe.Request{Messages: []lathe.Message{developer, lathe.User("u"), call, result, lathe.User("stop"), lathe.System("M"), lathe.User("v")}}
			req.Sampling.ReasoningEffort = "high"
			for _, err := range m.Generate(t.Context(), req) {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		if n := requests.Load(); n != 5 { // three refusals once
			t.Errorf("%d requests", n)
		}
		if body := *last.Load(); !strings.Contains(body, `"content":"R"`) || !strings.Contains(body, `{"role":"user","content":"stop`) || !strings.Contains(body, `{"role":"system","content":"D"}`) {
			t.Error(body)
		}
	})
}

// Accepts replaces a rule, and its role rules are certain enough to encode a request anew that would be relayed.
func TestAcceptsReplacesRules(t *testing.T) {
	t.Parallel()
	eachWire(t, func(t *testing.T, w *wireCase) {
		if w.wire != lathe.WireOpenAIChat {
			return
		}
		for _, c := range []struct {
			accepts map[string]string
			opaque  bool
			want    string
		}{
			{nil, false, `"messages":[{"role":"developer","content":"D"}],"x":1`},
			{map[string]string{"developer": "no"}, false, `"messages":[{"role":"system","content":"D"}]`},
			{map[string]string{"developer": "no"}, true, `"messages":[{"role":"developer","content":"D"}],"x":1`},
			{map[string]string{"developer": "yes", "max_user": "3"}, false, `"messages":[{"role":"developer","content":"D"}],"x":1`},
		} {
			body := ""
			m := w.model(t, func(rw http.ResponseWriter, r *http.Request) {
				body = string(w.answer(t, rw, r, finishOf(lathe.FinishStop, lathe.Text{Text: "x"})).Body)
			}, func(o *provider.Options) { o.Server.Accepts = c.accepts })
			req := &lathe.Request{Messages: []lathe.Message{{Role: lathe.RoleDeveloper, Parts: []lathe.Part{lathe.Text{Text: "D"}}}}, Relay: &lathe.Relay{Wire: w.wire, Stream: true, Opaque: c.opaque,
				Take: func(*lathe.Raw) {}, Request: []byte(`{"model":"m","stream":true,"messages":[{"role":"developer","content":"D"}],"x":1}`)}}
			for _, err := range m.Generate(t.Context(), req) {
				if err != nil {
					t.Fatal(err)
				}
			}
			if !strings.Contains(body, c.want) {
				t.Errorf("%v: %s", c.accepts, body)
			}
		}
	})
	if _, err := provider.OpenAI("m", &provider.Options{Server: provider.Server{Accepts: map[string]string{"sistem": "one"}}}); err == nil || !strings.Contains(err.Error(), "did you mean system?") {
		t.Error(err)
	}
}
