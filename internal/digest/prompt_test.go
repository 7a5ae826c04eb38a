package digest

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
)

func sampling(temperature float64, maxTokens int) *lathe.Sampling {
	return &lathe.Sampling{Temperature: &temperature, MaxTokens: &maxTokens}
}

func message(role lathe.Role, parts ...lathe.Part) lathe.Message {
	return lathe.Message{Role: role, Parts: parts}
}

// The hashes are what Node 20 computes with createHash('sha256').update(JSON.stringify(…)).
func TestPromptVersion1(t *testing.T) {
	t.Parallel()
	hello := []lathe.Message{lathe.User("Hello")}
	tests := []struct {
		name     string
		messages []lathe.Message
		sampling *lathe.Sampling
		want     string
	}{
		{"hello", hello, sampling(0.7, 2048), "ba973fa4cbaa090fbe16ea7a545f98c7e596aa363f062ad641697b73a6585f71"},
		{"defaults", hello, nil, "ba973fa4cbaa090fbe16ea7a545f98c7e596aa363f062ad641697b73a6585f71"},
		{"defaults, zero sampling", hello, &lathe.Sampling{}, "ba973fa4cbaa090fbe16ea7a545f98c7e596aa363f062ad641697b73a6585f71"},
		{"4096", hello, sampling(0.7, 4096), "0e6ec624d8dfa3b6bf558b1258efe273283b1e5260487cb535175e1585a8c5d3"},
		{"system", []lathe.Message{lathe.System("You are helpful"), lathe.User("Hello")}, sampling(1, 2048),
			"a923d5696b1dca87070c24008005550a429820edd28f3d766cb54f590991bea9"},
		{"html", []lathe.Message{lathe.User("a<b>&c")}, sampling(0, 2048),
			"98f02f2fae38f98cec82c39cc54a39dc01b345f6f87763435b1f3cb8ce27435c"},
		{"escapes", []lathe.Message{lathe.User("line1\nline2\ttab \"q\" \\ /")}, sampling(0.2, 1024),
			"8ab689f8216a4ca887a92005768123036e99416149be56ae6dc2b7cef8c0d551"},
		{"not ASCII", []lathe.Message{lathe.User("Привет, мир — 你好 🚀")}, sampling(0.7, 2048),
			"afc7b97c78014746ceb4983a89a46ad38b3435bd9fff7e9a604fc8d7800e4bb8"},
		{"separators", []lathe.Message{lathe.User("x\u2028y\u2029z\x7f\x01")}, sampling(0.7, 2048),
			"e45b69982c2e589ddf3c44a09d4b571fef63dec8b73b2aea566a16c2a804de8c"},
		{"no messages", nil, sampling(0.7, 2048), "9ceae364c692911af22de17f827ef7801c3bbb7e3266d58fda95fdcd9593e489"},
		{"1e-7", []lathe.Message{lathe.User("n")}, sampling(1e-7, 1), "465c0ddcb7bf7e2a1bea0df0688700a963ad3ec779a660e68b275663f78e0eac"},
		{"0.000001", []lathe.Message{lathe.User("n")}, sampling(0.000001, 1), "0541bcdff2e9215c81b634ac7623b0dfa2a1ed8b1849a765046e834192be40dc"},
		{"tool result", []lathe.Message{
			message(lathe.RoleAssistant, lathe.Reasoning{Text: "hm"}, lathe.ToolCall{ID: "c", Name: "f", Arguments: "{}"}),
			message(lathe.RoleTool, lathe.ToolResult{CallID: "c", Name: "f", Content: `{"ok":true}`}),
		}, sampling(0.7, 2048), "c4bf3b78a44474ce66ac4069a77902d33923b50126d91e87c9da45f8ce4a74be"},
	}
	for _, tt := range tests {
		p := NewPrompt("gpt-4o-mini")
		p.Add(tt.messages...)
		if got, _ := p.Sum(tt.sampling, NoTools, lathe.ToolChoice{}); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func conversation() []lathe.Message {
	return []lathe.Message{
		lathe.System("You are helpful"),
		message(lathe.RoleUser, lathe.Text{Text: "Look: "}, lathe.Text{Text: "é\n"}, lathe.Blob{MediaType: "image/png", Data: []byte{1, 2, 3}}),
		message(lathe.RoleAssistant, lathe.Reasoning{Text: "think"}, lathe.Text{Text: "wait", Commentary: true}, lathe.Text{Text: "ok"},
			lathe.ToolCall{ID: "c1", Name: "f", Arguments: `{"a": 1}`}, lathe.ToolCall{ID: "c2", Name: "g", Arguments: ``}),
		message(lathe.RoleTool, lathe.ToolResult{CallID: "c1", Name: "f", Content: "one"}),
		message(lathe.RoleTool, lathe.ToolResult{CallID: "c2", Name: "g", Content: strings.Repeat("two ", 40_000), IsError: true}),
		message(lathe.RoleAssistant, lathe.Refusal{Text: "no"}),
		lathe.User(""),
	}
}

func TestPromptIncrementalEqualsFromScratch(t *testing.T) {
	t.Parallel()
	tools := []*lathe.ToolSpec{{Name: "f"}, {Name: "g"}}
	choice := lathe.ToolChoice{Mode: lathe.ChoiceAuto}
	all := conversation()
	grown := NewPrompt("m")
	for n := range len(all) + 1 {
		scratch := NewPrompt("m")
		scratch.Add(all[:n]...)
		want1, want2 := scratch.Sum(sampling(1, 2), Tools(tools), choice)
		for range 2 { // Sum changes nothing
			got1, got2 := grown.Sum(sampling(1, 2), Tools(tools), choice)
			if got1 != want1 || got2 != want2 {
				t.Errorf("after %d messages: %s %s, want %s %s", n, got1, got2, want1, want2)
			}
			grown.Sum(nil, NoTools, lathe.ToolChoice{})
			grown.Add()
		}
		if n < len(all) {
			grown.Add(all[n])
		}
	}
}

// What each version must tell from the same conversation without the change, and what it must not.
func TestPromptCovers(t *testing.T) {
	t.Parallel()
	type input struct {
		model    string
		messages []lathe.Message
		sampling lathe.Sampling
		tools    []*lathe.ToolSpec
		choice   lathe.ToolChoice
	}
	base := func() *input {
		return &input{model: "m", messages: conversation(), tools: []*lathe.ToolSpec{{Name: "f", Schema: json.RawMessage(`{"a":1}`)}}}
	}
	one, seed := 1.0, int64(1)
	tests := []struct {
		name   string
		change func(*input)
		v1, v2 bool // changes
	}{
		{"nothing", func(*input) {}, false, false},
		{"model", func(in *input) { in.model = "n" }, true, true},
		{"role", func(in *input) { in.messages[0].Role = lathe.RoleDeveloper }, true, true},
		{"text", func(in *input) { in.messages[0] = lathe.System("You are helpful.") }, true, true},
		{"text cut differently", func(in *input) {
			in.messages[1].Parts = []lathe.Part{lathe.Text{Text: "Look"}, lathe.Text{Text: ": é\n"}, in.messages[1].Parts[2]}
		}, false, false},
		{"order", func(in *input) { in.messages[0], in.messages[6] = in.messages[6], in.messages[0] }, true, true},
		{"a message more", func(in *input) { in.messages = append(in.messages, lathe.User("")) }, true, true},
		{"result", func(in *input) { in.messages[3].Parts = []lathe.Part{lathe.ToolResult{CallID: "c1", Content: "1"}} }, true, true},
		{"result id", func(in *input) { in.messages[3].Parts = []lathe.Part{lathe.ToolResult{CallID: "c3", Content: "one"}} }, false, true},
		{"call id", func(in *input) {
			in.messages[2].Parts[3] = lathe.ToolCall{ID: "c3", Name: "f", Arguments: `{"a": 1}`}
		}, false, true},
		{"call name", func(in *input) {
			in.messages[2].Parts[3] = lathe.ToolCall{ID: "c1", Name: "h", Arguments: `{"a": 1}`}
		}, false, true},
		{"call arguments", func(in *input) {
			in.messages[2].Parts[3] = lathe.ToolCall{ID: "c1", Name: "f", Arguments: `{"a":1}`}
		}, false, true},
		{"no call", func(in *input) { in.messages[2].Parts = in.messages[2].Parts[:3] }, false, true},
		{"refusal", func(in *input) { in.messages[5].Parts = []lathe.Part{lathe.Refusal{Text: "never"}} }, false, true},
		{"blob", func(in *input) { in.messages[1].Parts[2] = lathe.Blob{MediaType: "image/png", Data: []byte{1, 2, 4}} }, false, true},
		{"result blob", func(in *input) {
			in.messages[3].Parts = []lathe.Part{lathe.ToolResult{CallID: "c1", Content: "one", Blobs: []lathe.Blob{{URL: "x"}}}}
		}, false, true},
		{"name", func(in *input) { in.messages[0].Name = "n" }, false, true},
		{"reasoning", func(in *input) { in.messages[2].Parts[0] = lathe.Reasoning{Text: "other"} }, false, false},
		{"temperature", func(in *input) { in.sampling.Temperature = &one }, true, true},
		{"max tokens", func(in *input) { in.sampling.MaxTokens = new(int) }, true, true},
		{"top p", func(in *input) { in.sampling.TopP = &one }, false, true},
		{"seed", func(in *input) { in.sampling.Seed = &seed }, false, true},
		{"stop", func(in *input) { in.sampling.Stop = []string{"a", "b"} }, false, true},
		{"reasoning effort", func(in *input) { in.sampling.ReasoningEffort = "low" }, false, true},
		{"response format", func(in *input) { in.sampling.ResponseFormat = json.RawMessage(`{"type":"json_object"}`) }, false, true},
		{"tool", func(in *input) { in.tools = []*lathe.ToolSpec{{Name: "g"}} }, false, true},
		{"no tools", func(in *input) { in.tools = nil }, false, true},
		{"tool rewritten", func(in *input) { in.tools = []*lathe.ToolSpec{{Name: "f", Schema: json.RawMessage(` {"a":1.0} `)}} }, false, false},
		{"choice", func(in *input) { in.choice.Mode = lathe.ChoiceRequired }, false, true},
		{"choice of a function", func(in *input) { in.choice = lathe.ToolChoice{Mode: lathe.ChoiceFunction, Name: "f"} }, false, true},
	}
	sum := func(in *input) (string, string) {
		p := NewPrompt(in.model)
		p.Add(in.messages...)
		return p.Sum(&in.sampling, Tools(in.tools), in.choice)
	}
	base1, base2 := sum(base())
	if len(base1) != 64 || len(base2) != 64 || base1 == base2 {
		t.Errorf("the hashes are %q and %q", base1, base2)
	}
	seen := make(map[string]string)
	for _, tt := range tests {
		in := base()
		tt.change(in)
		got1, got2 := sum(in)
		if (got1 != base1) != tt.v1 {
			t.Errorf("%s: phv1 changes: %v, want %v", tt.name, got1 != base1, tt.v1)
		}
		if (got2 != base2) != tt.v2 {
			t.Errorf("%s: phv2 changes: %v, want %v", tt.name, got2 != base2, tt.v2)
		}
		if other := seen[got2]; tt.v2 && other != "" {
			t.Errorf("%s and %s have the same phv2", tt.name, other)
		}
		seen[got2] = tt.name
	}
}

func TestPromptWithoutTools(t *testing.T) {
	t.Parallel()
	p := NewPrompt("m")
	p.Add(lathe.User("Hello"))
	_, want := p.Sum(nil, NoTools, lathe.ToolChoice{})
	for name, got := range map[string]func() (string, string){
		"empty":             func() (string, string) { return p.Sum(nil, Tools([]*lathe.ToolSpec{}), lathe.ToolChoice{}) },
		"choice of nothing": func() (string, string) { return p.Sum(nil, NoTools, lathe.ToolChoice{Mode: lathe.ChoiceAuto}) },
	} {
		if _, v2 := got(); v2 != want {
			t.Errorf("%s: %s, want %s", name, v2, want)
		}
	}
	p.Sum(nil, Tools([]*lathe.ToolSpec{{Name: "f"}}), lathe.ToolChoice{})
	if _, v2 := p.Sum(nil, NoTools, lathe.ToolChoice{}); v2 != want {
		t.Error("the tools of one Sum are in the next")
	}
}

// phv2 of these is the hash of a text that any JSON writer can make.
func TestPromptVersion2IsTheHashOfItsText(t *testing.T) {
	t.Parallel()
	p := NewPrompt("m")
	p.Add(lathe.User("Hé"), message(lathe.RoleAssistant, lathe.ToolCall{ID: "c", Name: "f", Arguments: `{"a":1}`}, lathe.ToolCall{ID: "d", Name: "f"}),
		message(lathe.RoleTool, lathe.ToolResult{CallID: "c", Content: "one"}))
	s := sampling(0.5, 10)
	s.Stop = []string{"x", "y"}
	s.ResponseFormat = json.RawMessage(`{ "type":"json_object" }`)
	tools := []*lathe.ToolSpec{{Name: "f"}}
	_, got := p.Sum(s, Tools(tools), lathe.ToolChoice{Mode: lathe.ChoiceFunction, Name: "f"})
	want := hash64(`{"prompt_hash_version":"phv2","model":"m","messages":[{"role":"user","content":"Hé"},` +
		`{"role":"assistant","content":"","tool_calls":[{"id":"c","name":"f","arguments":"{\"a\":1}"},{"id":"d","name":"f","arguments":""}]},` +
		`{"role":"tool","content":"one","tool_call_id":"c"}],` +
		`"sampling":{"temperature":0.5,"max_tokens":10,"stop":["x","y"],"response_format":{"type":"json_object"}},` +
		`"tools":"` + Tools(tools) + `","tool_choice":{"mode":"function","name":"f"}}`)
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestPromptTemperatureThatIsNoNumber(t *testing.T) {
	t.Parallel()
	want := hash64(`{"prompt_hash_version":"phv1","model":"m","messages":[],"temperature":null,"max_tokens":1}`)
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if got, _ := NewPrompt("m").Sum(sampling(f, 1), NoTools, lathe.ToolChoice{}); got != want {
			t.Errorf("%v: %s, want %s", f, got, want)
		}
	}
}
