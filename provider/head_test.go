package provider

import (
	"encoding/json"
	"testing"

	"github.com/lathe-run/lathe"
)

func TestHeadKeySeesEveryChange(t *testing.T) {
	t.Parallel()
	spec := &lathe.ToolSpec{Name: "a"}
	base := func() *lathe.Request {
		temp, top, maxTokens, seed, par := 0.5, 0.9, 10, int64(3), true
		return &lathe.Request{Model: "m", Tools: []*lathe.ToolSpec{spec}, ToolChoice: lathe.ToolChoice{Mode: lathe.ChoiceAuto}, ParallelToolCalls: &par,
			Sampling: lathe.Sampling{Temperature: &temp, TopP: &top, MaxTokens: &maxTokens, Seed: &seed, Stop: []string{"x"},
				ReasoningEffort: "low", ResponseFormat: json.RawMessage(`{}`)},
			Overrides: []lathe.Member{{Name: "k", Value: json.RawMessage(`1`)}}, User: "u"}
	}
	var k headKey
	if k.matches(&lathe.Request{}) {
		t.Error("an empty key matches the zero request")
	}
	k.remember(base())
	if !k.matches(base()) {
		t.Error("an equal request does not match")
	}
	changed := base()
	changed.Messages, changed.RequestID = []lathe.Message{lathe.User("hi")}, "other"
	if !k.matches(changed) {
		t.Error("messages and request id belong to the head")
	}
	other := 0.7
	for name, change := range map[string]func(*lathe.Request){
		"model":            func(r *lathe.Request) { r.Model = "n" },
		"tools":            func(r *lathe.Request) { r.Tools = []*lathe.ToolSpec{{Name: "a"}} },
		"no tools":         func(r *lathe.Request) { r.Tools = nil },
		"choice":           func(r *lathe.Request) { r.ToolChoice.Name = "f" },
		"parallel":         func(r *lathe.Request) { *r.ParallelToolCalls = false },
		"parallel unset":   func(r *lathe.Request) { r.ParallelToolCalls = nil },
		"temperature":      func(r *lathe.Request) { r.Sampling.Temperature = &other },
		"no temperature":   func(r *lathe.Request) { r.Sampling.Temperature = nil },
		"top_p":            func(r *lathe.Request) { r.Sampling.TopP = &other },
		"max_tokens":       func(r *lathe.Request) { *r.Sampling.MaxTokens = 11 },
		"seed":             func(r *lathe.Request) { r.Sampling.Seed = nil },
		"stop":             func(r *lathe.Request) { r.Sampling.Stop[0] = "y" },
		"reasoning effort": func(r *lathe.Request) { r.Sampling.ReasoningEffort = "" },
		"response format":  func(r *lathe.Request) { r.Sampling.ResponseFormat = json.RawMessage(`{"a":1}`) },
		"override value":   func(r *lathe.Request) { r.Overrides[0].Value = json.RawMessage(`2`) },
		"override name":    func(r *lathe.Request) { r.Overrides[0].Name = "l" },
		"user":             func(r *lathe.Request) { r.User = "v" },
	} {
		r := base()
		change(r)
		if k.matches(r) {
			t.Errorf("%s: the change is not seen", name)
		}
	}
	r := base()
	k.remember(r)
	r.Sampling.Stop[0], r.Overrides[0].Value[0], *r.Sampling.MaxTokens = "z", '7', 99
	if !k.matches(base()) {
		t.Error("the key shares memory with the request")
	}
	k.forget()
	if k.matches(base()) {
		t.Error("the key still matches after forget")
	}
}

func TestSamePrefix(t *testing.T) {
	t.Parallel()
	a, b, c := lathe.User("a"), lathe.Assistant("b"), lathe.User("a")
	bare := lathe.Message{Role: lathe.RoleUser}
	for _, k := range []struct {
		name       string
		sent, msgs []lathe.Message
		want       bool
	}{
		{"nothing sent", nil, []lathe.Message{a}, true},
		{"same", []lathe.Message{a, b}, []lathe.Message{a, b}, true},
		{"grown", []lathe.Message{a}, []lathe.Message{a, b, c}, true},
		{"shorter", []lathe.Message{a, b}, []lathe.Message{a}, false},
		{"equal text, other message", []lathe.Message{a}, []lathe.Message{c}, false},
		{"other order", []lathe.Message{a, b}, []lathe.Message{b, a}, false},
		{"more parts", []lathe.Message{a}, []lathe.Message{{Role: a.Role, Parts: append(a.Parts[:1:1], lathe.Text{})}}, false},
		{"other role", []lathe.Message{a}, []lathe.Message{{Role: lathe.RoleSystem, Parts: a.Parts}}, false},
		{"other name", []lathe.Message{a}, []lathe.Message{{Role: a.Role, Name: "n", Parts: a.Parts}}, false},
		{"other extra", []lathe.Message{a}, []lathe.Message{{Role: a.Role, Parts: a.Parts, Extra: []lathe.Member{{}}}}, false},
		{"no parts", []lathe.Message{bare}, []lathe.Message{bare, a}, true},
	} {
		if got := samePrefix(k.sent, k.msgs); got != k.want {
			t.Errorf("%s: got %v", k.name, got)
		}
	}
}
