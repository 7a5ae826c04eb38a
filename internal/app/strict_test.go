package app_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/app"
)

// strict is set on the server's own tools where the configuration asks for it, or lets the profile decide and the profile is known to
// take it; with the whole schema where the server takes every one.
func TestConstrainSetsStrictByProfile(t *testing.T) {
	t.Parallel()
	var sent atomic.Pointer[string]
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		body := strings.ReplaceAll(string(b), `\"`, `"`) // a dialect writes tools as text
		sent.Store(&body)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id":"a","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`)
	}))
	defer upstream.Close()
	const unique, strict = `"uniqueItems":true`, `"strict":true`
	tools := []*lathe.ToolSpec{{Name: "f", Schema: []byte(`{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"},"uniqueItems":true}},"required":["a"],"additionalProperties":false}`)}}
	for _, tt := range []struct {
		entry         string
		strict, whole bool
	}{
		{`profile: openai`, false, true},
		{`profile: openai, constrain: off`, false, true},
		{`profile: openai, constrain: auto`, true, false},
		{`profile: openai, constrain: strict`, true, false},
		{`profile: vllm, constrain: auto`, true, true},
		{`profile: sglang, constrain: strict`, true, true},
		{`profile: llamacpp, constrain: auto`, false, true},
		{`profile: ollama, constrain: auto`, false, true},
		{`constrain: auto`, false, true},
		{`constrain: strict`, true, false},
		{`profile: vllm, constrain: auto, dialect: tags`, false, true},
	} {
		cfg := load(t, "models:\n  m: {base_url: "+upstream.URL+"/v1, "+tt.entry+"}\n")
		model, err := app.NewModel(cfg, cfg.Models["m"], nil)
		if err != nil {
			t.Fatal(err)
		}
		var dropped []string
		for d, err := range model.Generate(t.Context(), &lathe.Request{Model: "m", Messages: []lathe.Message{lathe.User("a")}, Tools: tools}) {
			if err != nil {
				t.Fatal(err)
			}
			if d.Finish != nil {
				dropped = d.Finish.Dropped
			}
		}
		body := *sent.Load()
		listed := slices.Contains(dropped, "tools[0].schema.properties.a.uniqueItems")
		if strings.Contains(body, strict) != tt.strict || strings.Contains(body, unique) != tt.whole || listed == tt.whole {
			t.Errorf("%s: %s, dropped %q", tt.entry, body, dropped)
		}
	}
}

// A grammar is sent where the configuration names the server or the profile is one of those that are known, and the entry has a dialect.
// What cannot be constrained is refused.
func TestConstrainSendsGrammarByProfile(t *testing.T) {
	t.Parallel()
	var sent atomic.Pointer[string]
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		body := string(b)
		sent.Store(&body)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id":"a","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`)
	}))
	defer upstream.Close()
	tools := []*lathe.ToolSpec{{Name: "f", Schema: []byte(`{"type":"object","properties":{"a":{"type":"string","pattern":"^x"}},"required":["a"]}`)}}
	members := []string{`"grammar":"root ::= `, `"structured_outputs":{"structural_tag":`, `"response_format":{"type":"structural_tag"`}
	for _, tt := range []struct {
		entry string
		want  int // of members; -1: none
	}{
		{`dialect: hermes, profile: llamacpp`, -1},
		{`dialect: hermes, profile: llamacpp, constrain: auto`, 0},
		{`dialect: hermes, profile: vllm, constrain: auto`, 1},
		{`dialect: hermes, profile: sglang, constrain: auto`, 2},
		{`dialect: hermes, profile: ollama, constrain: auto`, -1},
		{`dialect: hermes, constrain: auto`, -1},
		{`dialect: hermes, constrain: vllm`, 1},
		{`dialect: native, profile: llamacpp, constrain: auto`, -1},
		{`dialect: auto, profile: llamacpp, constrain: auto`, -1},
	} {
		cfg := load(t, "models:\n  m: {base_url: "+upstream.URL+"/v1, "+tt.entry+"}\n")
		model, err := app.NewModel(cfg, cfg.Models["m"], nil)
		if err != nil {
			t.Fatal(err)
		}
		var dropped []string
		for d, err := range model.Generate(t.Context(), &lathe.Request{Model: "m", Messages: []lathe.Message{lathe.User("a")}, Tools: tools}) {
			if err != nil {
				t.Fatal(err)
			}
			if d.Finish != nil {
				dropped = d.Finish.Dropped
			}
		}
		for i, member := range members {
			if strings.Contains(*sent.Load(), member) != (i == tt.want) {
				t.Errorf("%s: %s", tt.entry, *sent.Load())
			}
		}
		if tt.want >= 0 && !slices.Equal(dropped, []string{"constraint.f.a.pattern"}) {
			t.Errorf("%s: dropped %q", tt.entry, dropped)
		}
	}
	for entry, want := range map[string]string{
		`constrain: vllm`: "needs a dialect", `dialect: hermes, constrain: strict`: "requests have none", `dialect: hermes, recover_leaked_calls: true, constrain: llamacpp`: "needs a dialect",
	} {
		cfg := load(t, "models:\n  m: {base_url: "+upstream.URL+"/v1, "+entry+"}\n")
		if _, err := app.NewModel(cfg, cfg.Models["m"], nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", entry, err, want)
		}
	}
}
