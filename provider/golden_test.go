package provider_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/provider"
)

var update = flag.Bool("update", false, "write the golden files")

// TestRequestBodies holds the bytes of the requests fast: a change of them costs users their prompt caches.
func TestRequestBodies(t *testing.T) {
	t.Parallel()
	temp, top, maxTokens, seed, par := 0.2, 0.9, 256, int64(7), false
	tools := []*lathe.ToolSpec{
		{Name: "add", Description: "Adds two numbers.", Schema: json.RawMessage(`{"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]}`)},
		{Name: "now"},
	}
	for _, c := range []struct {
		name string
		o    provider.Options
		r    lathe.Request
	}{
		{"plain", provider.Options{}, lathe.Request{Messages: []lathe.Message{lathe.System("Be short."), lathe.User("Hi <b> & \u2028 ü \"q\"")}}},
		{"tools", provider.Options{}, lathe.Request{Tools: tools, ToolChoice: lathe.ToolChoice{Mode: lathe.ChoiceFunction, Name: "add"}, ParallelToolCalls: &par,
			Messages: []lathe.Message{lathe.User("1 + 2?"), call("call_1", "add", `{"a": 1,"b":2}`), result("call_1", "3")}}},
		{"sampling", provider.Options{Server: provider.Server{NoUsage: true}}, lathe.Request{User: "u-1", Model: "other",
			Sampling:  lathe.Sampling{Temperature: &temp, TopP: &top, MaxTokens: &maxTokens, Seed: &seed, Stop: []string{"\n\n"}, ReasoningEffort: "low", ResponseFormat: json.RawMessage(`{"type": "json_object"}`)},
			Overrides: []lathe.Member{{Name: "provider", Value: json.RawMessage(`{"sort": "price"}`)}, {Name: "model", Value: json.RawMessage(`"evil"`)}},
			Messages:  []lathe.Message{lathe.User("x")}}},
		{"reasoning", provider.Options{Server: provider.Server{ReasoningField: "reasoning_content", MaxCompletionTokens: true}}, lathe.Request{Sampling: lathe.Sampling{MaxTokens: &maxTokens}, Messages: []lathe.Message{lathe.User("x"),
			{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Reasoning{Text: "hm", Field: "reasoning"}, lathe.Text{Text: "y"}}}, lathe.User("z")}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rec := &recorder{}
			m := open(t, rec, func(o *provider.Options) {
				c.o.BaseURL, c.o.Transport = o.BaseURL, o.Transport
				*o = c.o
			})
			for _, err := range m.Generate(t.Context(), &c.r) {
				if err != nil {
					t.Fatal(err)
				}
			}
			file := filepath.Join("testdata", "requests", c.name+".json")
			if *update {
				if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, rec.last(), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if string(rec.last()) != string(want) {
				t.Errorf("got\n%s\nwant\n%s", rec.last(), want)
			}
		})
	}
}
