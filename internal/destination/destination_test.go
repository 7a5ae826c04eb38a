package destination

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
)

const (
	chat      = lathe.WireOpenAIChat
	responses = lathe.WireResponses
	messages  = lathe.WireMessages
	gemini    = lathe.WireGemini

	asFile, ownOnly = "file", "own"
)

// template is the row of servers that render the chat template of the model.
var template = Row{System: one, Developer: no, Documents: asText, Reasoning: ownOnly}

// The rules name known columns, values and servers, and say who states them and when that was read.
func TestRulesAreWellFormed(t *testing.T) {
	t.Parallel()
	named := map[string]bool{"": true}
	for _, s := range Servers() {
		named[s.Name] = false
	}
	for i := range Rules() {
		r := &Rules()[i]
		at := fmt.Sprintf("rule %d (%s %s %s)", i, r.Server, r.Wire, r.Family)
		if _, known := named[r.Server]; !known {
			t.Errorf("%s: no such server", at)
		}
		named[r.Server] = true
		if _, err := time.Parse(time.DateOnly, r.Read); err != nil || r.Source == "" {
			t.Errorf("%s: source %q, read %q", at, r.Source, r.Read)
		}
		v := reflect.ValueOf(r.Row)
		for j := range v.NumField() {
			words := strings.Fields(v.Type().Field(j).Tag.Get("of"))
			if f := v.Field(j); f.Kind() == reflect.String && !f.IsZero() && !slices.Contains(words, f.String()) {
				t.Errorf("%s: %s is %q, of %q", at, v.Type().Field(j).Name, f, words)
			}
		}
	}
	for name, has := range named {
		if !has {
			t.Errorf("%s has no rule", name)
		}
	}
}

func TestFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		wire                lathe.Wire
		server, host, model string
		want                Row // of these columns
	}{
		{chat, "", "api.openai.com:443", "gpt-5-mini", Row{MaxUser: 64, MaxStop: 4, Schema: openAI, TokenLimit: MaxCompletionTokens}},
		{chat, "", "eu.api.openai.com", "o3-mini", Row{MaxUser: 64, TokenLimit: MaxCompletionTokens}},
		{chat, "", "proxy.example", "openai/o3", Row{MaxUser: 64}},
		{chat, "", "x.openai.azure.com", "gpt-35-turbo", Row{MaxUser: 64, Thinking: thinkingNone}},
		{chat, "", "proxy.example", "gpt-4o-2024-08-06", Row{MaxUser: 64, Thinking: thinkingNone}},
		{chat, "", "proxy.example", "gpt-oss-120b", Row{Thinking: thinkingEffort, Reasoning: Calls}},
		{responses, "", "proxy.example", "gpt-6", Row{LeastOutput: 16, Status: Yes, Sampling: samplingEffortless, Documents: asFile}},
		{responses, "openai_responses", "127.0.0.1:1", "m", Row{LeastOutput: 16}},
		{chat, "openrouter", "", "anthropic/claude-sonnet-4.5", Row{MaxUser: 128, Sampling: samplingOne, System: one, Developer: no}},
		{messages, "", "api.anthropic.com", "claude-opus-4-7", Row{System: free, Sampling: samplingNone, Thinking: Adaptive, Schema: object}},
		{messages, "", "", "claude-opus-4-6", Row{System: Leading, Sampling: samplingOne}},
		{messages, "", "", "claude-opus-4-5-20251101", Row{Sampling: samplingOne, Thinking: BudgetEffort}},
		{messages, "", "", "claude-haiku-4-5", Row{Sampling: samplingOne, Thinking: Budget}},
		{messages, "", "", "us.anthropic.claude-opus-4-1-20250805-v1:0", Row{Sampling: samplingOne, Thinking: Budget}},
		{messages, "", "", "claude-sonnet-4-20250514", Row{Thinking: Budget}},
		{messages, "", "", "claude-3-7-sonnet-latest", Row{Thinking: Budget}},
		{messages, "", "", "claude-3-5-haiku-20241022", Row{Thinking: thinkingNone}},
		{messages, "", "", "claude-opus-5", Row{Sampling: samplingNone, Thinking: Adaptive}},
		{gemini, "google", "", "models/gemini-2.5-pro", Row{Thinking: Budget, LeastThinking: 128, Format: formatAlone, System: Leading}},
		{gemini, "", "us-central1-aiplatform.googleapis.com", "gemini-2.5-flash", Row{Thinking: Budget, Format: formatAlone}},
		{gemini, "", "", "gemini-3-pro", Row{Thinking: Level}},
		{chat, "vllm", "localhost", "mistralai/Mistral-Nemo-Instruct-2407", Row{System: one, Developer: no, Turns: alternate, Format: formatAlone}},
		{chat, "", "localhost", "nemotron-4", Row{Reasoning: Calls}},
		{chat, "deepseek", "", "deepseek-chat", Row{Reasoning: Calls, Developer: no}},
		{"", "volcanoengine", "", "m", Row{Reasoning: Calls, Documents: asText}},
	} {
		got, want := reflect.ValueOf(For(c.wire, c.server, c.host, c.model)), reflect.ValueOf(c.want)
		for i := range want.NumField() {
			if w, g := want.Field(i), got.Field(i); !w.IsZero() && !w.Equal(g) {
				t.Errorf("%s %s %s %s: %s is %v, want %v", c.wire, c.server, c.host, c.model, want.Type().Field(i).Name, g, w)
			}
		}
	}
	for model, column := range map[string]string{"claude-sonnet-4-20250514": "Sampling", "gemini-2.5-flash": "LeastThinking", "gpt-oss-20b": "MaxUser", "nemotron-4": "Turns", "plain": "System"} {
		if f := reflect.ValueOf(For(chat, "", "", model)).FieldByName(column); !f.IsZero() {
			t.Errorf("%s: %s is %v", model, column, f)
		}
	}
}

func TestAccepts(t *testing.T) {
	t.Parallel()
	r, err := Accepts(map[string]string{"system": "one", "max_user": "any", "max_stop": "3"})
	if want := (Row{System: one, MaxUser: noLimit, MaxStop: 3}); err != nil || r != want {
		t.Errorf("%+v, %v", r, err)
	}
	openai := For(chat, "openai", "", "gpt-5")
	req := lathe.Request{User: strings.Repeat("u", 200)}
	if with := openai.With(&r); with.Fit(chat, &req) != nil || len(req.User) != 200 || with.Schema != openAI {
		t.Errorf("%+v", with)
	}
	for _, c := range []struct{ column, value, want string }{
		{"systen", "one", "did you mean system?"}, {"system", "onn", "did you mean one?"}, {"max_user", "0", "neither a number above 0 nor any"}, {"max_user", "lots", "neither a number above 0 nor any"},
	} {
		if _, err := Accepts(map[string]string{c.column: c.value}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s: %v", c.column, c.value, err)
		}
	}
}

func TestFit(t *testing.T) {
	t.Parallel()
	p := func(n int) *int { return &n }
	f := func(x float64) *float64 { return &x }
	long := strings.Repeat("u", 65)
	for name, c := range map[string]struct {
		row     Row
		wire    lathe.Wire
		req     lathe.Request
		want    lathe.Request
		changed string
	}{
		"short user":          {Row{MaxUser: 64}, chat, lathe.Request{User: strings.Repeat("ü", 64)}, lathe.Request{User: strings.Repeat("ü", 64)}, ""},
		"long user":           {Row{MaxUser: 64}, chat, lathe.Request{User: long}, lathe.Request{User: digest(long, 64)}, "user"},
		"stops":               {Row{MaxStop: 1}, chat, lathe.Request{Sampling: lathe.Sampling{Stop: []string{"a", "b", "c"}}}, lathe.Request{Sampling: lathe.Sampling{Stop: []string{"a"}}}, "sampling.stop[1] sampling.stop[2]"},
		"least output":        {Row{LeastOutput: 16}, responses, lathe.Request{Sampling: lathe.Sampling{MaxTokens: p(1)}}, lathe.Request{Sampling: lathe.Sampling{MaxTokens: p(16)}}, "sampling.max_tokens"},
		"enough output":       {Row{LeastOutput: 16}, responses, lathe.Request{Sampling: lathe.Sampling{MaxTokens: p(17)}}, lathe.Request{Sampling: lathe.Sampling{MaxTokens: p(17)}}, ""},
		"both":                {Row{Sampling: samplingOne}, messages, lathe.Request{Sampling: lathe.Sampling{Temperature: f(.5), TopP: f(.9), TopK: p(3)}}, lathe.Request{Sampling: lathe.Sampling{Temperature: f(.5), TopK: p(3)}}, "sampling.top_p"},
		"top_p alone":         {Row{Sampling: samplingOne}, messages, lathe.Request{Sampling: lathe.Sampling{TopP: f(.9)}}, lathe.Request{Sampling: lathe.Sampling{TopP: f(.9)}}, ""},
		"neither":             {Row{Sampling: samplingNone}, messages, lathe.Request{Sampling: lathe.Sampling{Temperature: f(.5), TopP: f(.9), TopK: p(3)}}, lathe.Request{}, "sampling.temperature sampling.top_p sampling.top_k"},
		"with effort":         {Row{Sampling: samplingEffortless}, responses, lathe.Request{Sampling: lathe.Sampling{Temperature: f(.5)}}, lathe.Request{}, "sampling.temperature"},
		"without effort":      {Row{Sampling: samplingEffortless}, responses, lathe.Request{Sampling: lathe.Sampling{Temperature: f(.5), ReasoningEffort: "none"}}, lathe.Request{Sampling: lathe.Sampling{Temperature: f(.5), ReasoningEffort: "none"}}, ""},
		"no thinking":         {Row{Thinking: thinkingNone}, chat, lathe.Request{Sampling: lathe.Sampling{ReasoningEffort: "high", ReasoningBudget: p(2)}}, lathe.Request{}, "sampling.reasoning_effort sampling.reasoning_budget"},
		"small budget":        {Row{Thinking: thinkingEffort}, chat, lathe.Request{Sampling: lathe.Sampling{ReasoningBudget: p(2000)}}, lathe.Request{Sampling: lathe.Sampling{ReasoningEffort: "low", ReasoningBudget: p(2000)}}, ""},
		"budget":              {Row{Thinking: thinkingEffort}, chat, lathe.Request{Sampling: lathe.Sampling{ReasoningBudget: p(8192)}}, lathe.Request{Sampling: lathe.Sampling{ReasoningEffort: "medium", ReasoningBudget: p(8192)}}, ""},
		"large budget":        {Row{Thinking: thinkingEffort}, chat, lathe.Request{Sampling: lathe.Sampling{ReasoningBudget: p(31999)}}, lathe.Request{Sampling: lathe.Sampling{ReasoningEffort: "high", ReasoningBudget: p(31999)}}, ""},
		"both given":          {Row{Thinking: thinkingEffort}, chat, lathe.Request{Sampling: lathe.Sampling{ReasoningEffort: "low", ReasoningBudget: p(31999)}}, lathe.Request{Sampling: lathe.Sampling{ReasoningEffort: "low", ReasoningBudget: p(31999)}}, ""},
		"thinking off":        {Row{Thinking: thinkingEffort}, chat, lathe.Request{Sampling: lathe.Sampling{ReasoningBudget: p(0)}}, lathe.Request{Sampling: lathe.Sampling{ReasoningBudget: p(0)}}, ""},
		"always thinks":       {Row{LeastThinking: 128}, gemini, lathe.Request{Sampling: lathe.Sampling{ReasoningEffort: "none"}}, lathe.Request{Sampling: lathe.Sampling{ReasoningBudget: p(128)}}, "sampling.reasoning_effort"},
		"least thinking":      {Row{LeastThinking: 128}, gemini, lathe.Request{Sampling: lathe.Sampling{ReasoningBudget: p(0)}}, lathe.Request{Sampling: lathe.Sampling{ReasoningBudget: p(128)}}, "sampling.reasoning_budget"},
		"dynamic":             {Row{LeastThinking: 128}, gemini, lathe.Request{Sampling: lathe.Sampling{ReasoningBudget: p(-1)}}, lathe.Request{Sampling: lathe.Sampling{ReasoningBudget: p(-1)}}, ""},
		"format beside tools": {Row{Format: formatAlone}, chat, lathe.Request{Tools: []*lathe.ToolSpec{{}}, Sampling: lathe.Sampling{ResponseFormat: []byte("{}")}}, lathe.Request{Tools: []*lathe.ToolSpec{{}}}, "sampling.response_format"},
		"format alone":        {Row{Format: formatAlone}, chat, lathe.Request{Sampling: lathe.Sampling{ResponseFormat: []byte("{}")}}, lathe.Request{Sampling: lathe.Sampling{ResponseFormat: []byte("{}")}}, ""},
		"format of a last turn": {Row{Format: formatAlone}, chat, lathe.Request{Tools: []*lathe.ToolSpec{{}}, ToolChoice: lathe.ToolChoice{Mode: "none"}, Sampling: lathe.Sampling{ResponseFormat: []byte("{}")}},
			lathe.Request{Tools: []*lathe.ToolSpec{{}}, ToolChoice: lathe.ToolChoice{Mode: "none"}, Sampling: lathe.Sampling{ResponseFormat: []byte("{}")}}, ""},
		"no rules": {Row{}, chat, lathe.Request{User: long, Sampling: lathe.Sampling{MaxTokens: p(0), ReasoningBudget: p(5)}}, lathe.Request{User: long, Sampling: lathe.Sampling{MaxTokens: p(0), ReasoningBudget: p(5)}}, ""},
	} {
		stops := slices.Clone(c.req.Sampling.Stop)
		given := c.req
		changed := c.row.Fit(c.wire, &c.req)
		if !reflect.DeepEqual(c.req, c.want) || strings.Join(changed, " ") != c.changed || !slices.Equal(given.Sampling.Stop, stops) {
			t.Errorf("%s: %+v, changed %q", name, c.req, changed)
		}
	}
	if digest(long, 64) == digest(long+"v", 64) || len(digest(long, 128)) != 64 {
		t.Error("digests of different users are equal")
	}
}

func TestFitSchema(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, object, openai, changes string }{
		{``, `{"type":"object","properties":{}}`, `{"type":"object","properties":{}}`, ""},
		{`{}`, `{"type":"object","properties":{}}`, `{"type":"object","properties":{}}`, ""},
		{`{"type":"object"}`, `{"type":"object"}`, `{"type":"object","properties":{}}`, ""},
		{`{"type":"object","properties":{"l":{"type":"array"},"t":{"type":["array","null"]},"b":true,"i":{"type":"array","items":true}}}`, `{"type":"object","properties":{"l":{"type":"array"},"t":{"type":["array","null"]},"b":true,"i":{"type":"array","items":true}}}`,
			`{"type":"object","properties":{"l":{"type":"array","items":{}},"t":{"type":["array","null"],"items":{}},"b":{},"i":{"type":"array","items":{}}}}`, ""},
		{`{"type":"object","properties":{"type":{"type":"array","items":[{"type":"array"}]},"d":{"default":{"type":"array"}}},"$defs":{"x":{"anyOf":[{"type":"array"}]}}}`, `{"type":"object","properties":{"type":{"type":"array","items":[{"type":"array"}]},"d":{"default":{"type":"array"}}},"$defs":{"x":{"anyOf":[{"type":"array"}]}}}`,
			`{"type":"object","properties":{"type":{"type":"array","items":[{"type":"array","items":{}}]},"d":{"default":{"type":"array"}}},"$defs":{"x":{"anyOf":[{"type":"array","items":{}}]}}}`, ""},
		{`{"type":"object","anyOf":[{"properties":{"a":{},"c":{}},"required":["a","c"]},{"properties":{"b":{}},"required":["c"]}],"description":"d"}`, `{"type":"object","description":"d","properties":{"a":{},"c":{},"b":{}},"required":["c"]}`,
			`{"type":"object","description":"d","properties":{"a":{},"c":{},"b":{}},"required":["c"]}`, ".anyOf"},
		{`{"allOf":[{"properties":{"a":{}},"required":["a"]}],"required":["z"]}`, `{"type":"object","properties":{"a":{}},"required":["a"]}`, `{"type":"object","properties":{"a":{}},"required":["a"]}`, ".allOf"},
		{`{"type":["object","null"],"properties":{"a":{}}}`, `{"type":"object","properties":{"a":{}}}`, `{"type":"object","properties":{"a":{}}}`, ".type"},
		{`{"$ref":"#/$defs/X","$defs":{"X":{"type":"object","properties":{"a":{}},"required":["a"]}}}`, `{"$defs":{"X":{"type":"object","properties":{"a":{}},"required":["a"]}},"type":"object","properties":{"a":{}},"required":["a"]}`,
			`{"$defs":{"X":{"type":"object","properties":{"a":{}},"required":["a"]}},"type":"object","properties":{"a":{}},"required":["a"]}`, ""},
		{`{"$ref":"#/definitions/Y","properties":{"a":{}},"definitions":{"Y":{"properties":{"b":{}}}}}`, `{"type":"object","$ref":"#/definitions/Y","definitions":{"Y":{"properties":{"b":{}}}},"properties":{"a":{}}}`,
			`{"type":"object","$ref":"#/definitions/Y","definitions":{"Y":{"properties":{"b":{}}}},"properties":{"a":{}}}`, ""},
		{`{"oneOf":[{"$ref":"#/$defs/A"},{"allOf":[{"properties":{"b":{}},"required":["b"]},{"properties":{"a":{}},"required":["a"]}]}],"$defs":{"A":{"properties":{"a":{}},"required":["a"]}}}`,
			`{"type":"object","$defs":{"A":{"properties":{"a":{}},"required":["a"]}},"properties":{"a":{},"b":{}},"required":["a"]}`, `{"type":"object","$defs":{"A":{"properties":{"a":{}},"required":["a"]}},"properties":{"a":{},"b":{}},"required":["a"]}`, ".oneOf"},
		{`{"type":"object","properties":null}`, `{"type":"object","properties":null}`, `{"type":"object","properties":{}}`, ""},
		{`true`, `{"type":"object","properties":{}}`, `{"type":"object","properties":{}}`, " "},
	} {
		for rule, want := range map[string]string{object: c.object, openAI: c.openai, free: c.in} {
			row := Row{Schema: rule}
			got, changes := row.FitSchema([]byte(c.in))
			if string(got) != want || rule != free && strings.Join(changes, " ") != strings.TrimSpace(c.changes) {
				t.Errorf("%s of %s:\n%s\nwant\n%s\nchanges %q", rule, c.in, got, want, changes)
			}
		}
	}
	row := Row{Schema: openAI}
	if got, changes := row.FitSchema([]byte(`{"type":"object","properties":{},"enum":[{}],"not":{}}`)); string(got) != `{"type":"object","properties":{}}` || strings.Join(changes, " ") != ".enum .not" {
		t.Errorf("%s %q", got, changes)
	}
}
