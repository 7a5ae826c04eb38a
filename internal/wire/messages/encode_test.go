package messages

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/destination"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

func ptr[T any](v T) *T { return &v }

// write writes a request and checks that it is JSON.
func write(t testing.TB, req *lathe.Request, opts *wire.EncodeOptions) (string, []string) {
	t.Helper()
	if opts == nil {
		opts = &wire.EncodeOptions{}
	}
	if opts.Takes == (destination.Row{}) {
		opts.Takes = destination.For(lathe.WireMessages, "", "", req.Model)
	}
	body, dropped := Codec{}.AppendRequest([]byte("x"), req, opts)
	if err := rawjson.Check(body[1:], rawjson.Limits{MaxDepth: 600}); err != nil || body[0] != 'x' {
		t.Fatalf("%v\n%s", err, body)
	}
	if again, _ := (Codec{}).AppendRequest([]byte("x"), req, opts); !bytes.Equal(body, again) {
		t.Fatalf("the same request gives other bytes:\n%s\n%s", body, again)
	}
	return string(body[1:]), dropped
}

// TestAppendRequestOptions: sampling, reasoning, tool choice and format in the words of the API, and what it cannot express
// in the list (W19, W30).
func TestAppendRequestOptions(t *testing.T) {
	tool := []*lathe.ToolSpec{{Name: "f"}}
	format := json.RawMessage(`{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}}}`)
	for name, tt := range map[string]struct {
		req     lathe.Request
		opts    wire.EncodeOptions
		want    string // the members between model and messages
		dropped string
	}{
		"plain":           {lathe.Request{}, wire.EncodeOptions{}, `"max_tokens":8192`, ""},
		"stream":          {lathe.Request{}, wire.EncodeOptions{Stream: true, MaxTokens: 100}, `"stream":true,"max_tokens":100`, ""},
		"limit":           {lathe.Request{Sampling: lathe.Sampling{MaxTokens: ptr(5)}}, wire.EncodeOptions{MaxTokens: 100}, `"max_tokens":5`, ""},
		"sampling":        {lathe.Request{Sampling: lathe.Sampling{Temperature: ptr(0.5), TopP: ptr(0.9), TopK: ptr(4), Stop: []string{"a", " \n"}}, User: "u"}, wire.EncodeOptions{}, `"max_tokens":8192,"temperature":0.5,"top_p":0.9,"top_k":4,"stop_sequences":["a"],"metadata":{"user_id":"u"}`, "sampling.stop[1]"},
		"hot":             {lathe.Request{Sampling: lathe.Sampling{Temperature: ptr(1.5)}}, wire.EncodeOptions{}, `"max_tokens":8192,"temperature":1`, "sampling.temperature"},
		"foreign":         {lathe.Request{Sampling: lathe.Sampling{Seed: ptr(int64(1)), PresencePenalty: ptr(1.0), FrequencyPenalty: ptr(1.0)}}, wire.EncodeOptions{}, `"max_tokens":8192`, "sampling.seed sampling.presence_penalty sampling.frequency_penalty"},
		"effort":          {lathe.Request{Sampling: lathe.Sampling{ReasoningEffort: "high", Temperature: ptr(0.5), TopK: ptr(1)}}, wire.EncodeOptions{}, `"max_tokens":8192,"thinking":{"type":"adaptive"},"output_config":{"effort":"high"}`, "sampling.temperature sampling.top_k"},
		"minimal":         {lathe.Request{Sampling: lathe.Sampling{ReasoningEffort: "minimal"}}, wire.EncodeOptions{}, `"max_tokens":8192,"thinking":{"type":"adaptive"},"output_config":{"effort":"low"}`, "sampling.reasoning_effort"},
		"none":            {lathe.Request{Sampling: lathe.Sampling{ReasoningEffort: "none"}}, wire.EncodeOptions{}, `"max_tokens":8192,"thinking":{"type":"disabled"}`, ""},
		"budget":          {lathe.Request{Sampling: lathe.Sampling{ReasoningBudget: ptr(2000)}}, wire.EncodeOptions{}, `"max_tokens":10192,"thinking":{"type":"enabled","budget_tokens":2000}`, ""},
		"budget small":    {lathe.Request{Sampling: lathe.Sampling{ReasoningBudget: ptr(1)}}, wire.EncodeOptions{}, `"max_tokens":9216,"thinking":{"type":"enabled","budget_tokens":1024}`, "sampling.reasoning_budget"},
		"budget above":    {lathe.Request{Sampling: lathe.Sampling{ReasoningBudget: ptr(2000), MaxTokens: ptr(2000)}}, wire.EncodeOptions{}, `"max_tokens":2000,"thinking":{"type":"enabled","budget_tokens":1999}`, "sampling.reasoning_budget"},
		"budget too much": {lathe.Request{Sampling: lathe.Sampling{ReasoningBudget: ptr(2000), MaxTokens: ptr(500)}}, wire.EncodeOptions{}, `"max_tokens":500`, "sampling.reasoning_budget"},
		"budget zero":     {lathe.Request{Sampling: lathe.Sampling{ReasoningBudget: ptr(0)}}, wire.EncodeOptions{}, `"max_tokens":8192,"thinking":{"type":"disabled"}`, ""},
		"budget dynamic":  {lathe.Request{Sampling: lathe.Sampling{ReasoningBudget: ptr(-1), ReasoningSummary: "detailed"}}, wire.EncodeOptions{}, `"max_tokens":8192,"thinking":{"type":"adaptive","display":"summarized"}`, ""},
		"no adaptive": {lathe.Request{Sampling: lathe.Sampling{ReasoningEffort: "medium"}}, wire.EncodeOptions{Without: []string{featureAdaptive, featureEffort}},
			`"max_tokens":16384,"thinking":{"type":"enabled","budget_tokens":8192}`, ""},
		"no budget": {lathe.Request{Sampling: lathe.Sampling{ReasoningBudget: ptr(2000)}}, wire.EncodeOptions{Without: []string{featureBudget}}, `"max_tokens":8192,"thinking":{"type":"adaptive"}`, "sampling.reasoning_budget"},
		"budget and effort of a model without effort": {lathe.Request{Sampling: lathe.Sampling{ReasoningBudget: ptr(2000), ReasoningEffort: "high"}}, wire.EncodeOptions{Without: []string{featureEffort}},
			`"max_tokens":10192,"thinking":{"type":"enabled","budget_tokens":2000}`, "sampling.reasoning_effort"},
		"dynamic budget and effort of a model without either": {lathe.Request{Sampling: lathe.Sampling{ReasoningBudget: ptr(-1), ReasoningEffort: "low"}}, wire.EncodeOptions{Without: []string{featureAdaptive, featureEffort}},
			`"max_tokens":10240,"thinking":{"type":"enabled","budget_tokens":2048}`, ""},
		"no thinking": {lathe.Request{Sampling: lathe.Sampling{ReasoningEffort: "low"}}, wire.EncodeOptions{Without: []string{featureThinking, featureEffort}}, `"max_tokens":8192`, "sampling.reasoning_effort"},
		"forced call and thinking": {lathe.Request{Tools: tool, ToolChoice: lathe.ToolChoice{Mode: lathe.ChoiceRequired}, Sampling: lathe.Sampling{ReasoningEffort: "low", Temperature: ptr(0.1)}}, wire.EncodeOptions{},
			`"max_tokens":8192,"thinking":{"type":"adaptive"},"output_config":{"effort":"low"},"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"any"}`, "sampling.temperature"},
		"forced call and a budget": {lathe.Request{Tools: tool, ToolChoice: lathe.ToolChoice{Mode: lathe.ChoiceRequired}, Sampling: lathe.Sampling{ReasoningBudget: ptr(2000), Temperature: ptr(0.1)}}, wire.EncodeOptions{},
			`"max_tokens":8192,"temperature":0.1,"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"any"}`, "sampling.reasoning_budget"},
		"forced call and effort of a model without adaptive thinking": {lathe.Request{Tools: tool, ToolChoice: lathe.ToolChoice{Mode: lathe.ChoiceRequired}, Sampling: lathe.Sampling{ReasoningEffort: "low"}}, wire.EncodeOptions{Takes: destination.For(lathe.WireMessages, "", "", "claude-opus-4-5")},
			`"max_tokens":8192,"output_config":{"effort":"low"},"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"any"}`, ""},
		"choice without tools":  {lathe.Request{ToolChoice: lathe.ToolChoice{Mode: lathe.ChoiceRequired}, ParallelToolCalls: ptr(false)}, wire.EncodeOptions{}, `"max_tokens":8192`, ""},
		"one call":              {lathe.Request{Tools: tool, ParallelToolCalls: ptr(false)}, wire.EncodeOptions{}, `"max_tokens":8192,"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`, ""},
		"named":                 {lathe.Request{Tools: tool, ToolChoice: lathe.ToolChoice{Mode: lathe.ChoiceFunction, Name: "f"}, ParallelToolCalls: ptr(true)}, wire.EncodeOptions{}, `"max_tokens":8192,"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"tool","name":"f"}`, ""},
		"no call":               {lathe.Request{Tools: tool, ToolChoice: lathe.ToolChoice{Mode: lathe.ChoiceNone}, ParallelToolCalls: ptr(false)}, wire.EncodeOptions{}, `"max_tokens":8192,"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"none"}`, ""},
		"hosted":                {lathe.Request{HostedTools: []json.RawMessage{json.RawMessage(`{"type":"web_search_20250305","name":"web_search"}`)}}, wire.EncodeOptions{}, `"max_tokens":8192,"tools":[{"type":"web_search_20250305","name":"web_search"}]`, ""},
		"format":                {lathe.Request{Sampling: lathe.Sampling{ResponseFormat: format}}, wire.EncodeOptions{}, `"max_tokens":8192,"output_config":{"format":{"type":"json_schema","schema":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}}}`, ""},
		"format text":           {lathe.Request{Sampling: lathe.Sampling{ResponseFormat: json.RawMessage(`{"type":"text"}`)}}, wire.EncodeOptions{}, `"max_tokens":8192`, ""},
		"format and named call": {lathe.Request{Tools: tool, ToolChoice: lathe.ToolChoice{Mode: lathe.ChoiceFunction, Name: "f"}, Sampling: lathe.Sampling{ResponseFormat: json.RawMessage(`{"type":"json_object"}`)}}, wire.EncodeOptions{}, `"max_tokens":8192,"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"tool","name":"f"}`, ""},
		"format unknown":        {lathe.Request{Sampling: lathe.Sampling{ResponseFormat: json.RawMessage(`{"type":"xml"}`)}}, wire.EncodeOptions{}, `"max_tokens":8192`, "sampling.response_format"},
		"overrides of a version without sampling": {lathe.Request{APIVersion: "2026-10-21", Sampling: lathe.Sampling{TopK: new(3)}, Overrides: []lathe.Member{{Name: "temperature", Value: []byte("1")}, {Name: "top_p", Value: []byte("1")}, {Name: "service_tier", Value: []byte(`"auto"`)}}}, wire.EncodeOptions{}, `"max_tokens":8192,"service_tier":"auto"`, "sampling.top_k"},
		"overrides": {lathe.Request{Overrides: []lathe.Member{{Name: "max_tokens", Value: []byte("7")}, {Name: "model", Value: []byte(`"x"`)}, {Name: "service_tier", Value: []byte(`"auto"`)}}}, wire.EncodeOptions{}, `"max_tokens":7,"service_tier":"auto"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tt.req.Model, tt.req.Messages = "m", []lathe.Message{lathe.User("a")}
			body, dropped := write(t, &tt.req, &tt.opts)
			got := strings.TrimSuffix(strings.TrimPrefix(body, `{"model":"m",`), `,"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}`)
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if strings.Join(dropped, " ") != tt.dropped {
				t.Errorf("dropped %q, want %q", dropped, tt.dropped)
			}
		})
	}
}

// wroteTurns returns the value of messages, and system before it if there is one.
func wroteTurns(body string) string {
	i := strings.Index(body, `"system":`)
	if i < 0 {
		i = strings.Index(body, `"messages":`)
	}
	return strings.TrimSuffix(body[i:], "}")
}

// TestAppendRequestTurns: roles alternate, all results of a step are the first blocks of one turn, and system messages keep
// their place (W17, W18, W27).
func TestAppendRequestTurns(t *testing.T) {
	call := func(id, args string) lathe.ToolCall { return lathe.ToolCall{ID: id, Name: "f", Arguments: args} }
	result := func(id, content string) lathe.Message {
		return lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: id, Content: content}}}
	}
	for name, tt := range map[string]struct {
		messages []lathe.Message
		opts     wire.EncodeOptions
		want     string
		dropped  string
	}{
		"step": {[]lathe.Message{lathe.System("s"), lathe.User("u"), {Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Text{Text: "t"}, call("a", `{"x" : 1}`), call("b", "")}}, result("a", "1"), result("b", ""), lathe.User("next")}, wire.EncodeOptions{},
			`"system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":[{"type":"text","text":"u"}]},{"role":"assistant","content":[{"type":"text","text":"t"},{"type":"tool_use","id":"a","name":"f","input":{"x" : 1}},{"type":"tool_use","id":"b","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"tool_result","tool_use_id":"b"},{"type":"text","text":"next"}]}]`, ""},
		"neighbours": {[]lathe.Message{lathe.User("a"), lathe.User("b"), lathe.Assistant(""), lathe.User("c"), lathe.Assistant("d"), lathe.Assistant("e")}, wire.EncodeOptions{},
			`"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"},{"type":"text","text":"c"}]},{"role":"assistant","content":[{"type":"text","text":"d"},{"type":"text","text":"e"}]}]`, ""},
		"system turns": {[]lathe.Message{lathe.User("a"), lathe.System("3"), lathe.User("b")}, wire.EncodeOptions{},
			`"messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"system","content":[{"type":"text","text":"3"}]},{"role":"user","content":[{"type":"text","text":"b"}]}]`, ""},
		"assistant first": {[]lathe.Message{lathe.Assistant("hello"), lathe.User("a")}, wire.EncodeOptions{},
			`"messages":[` + opening + `,{"role":"assistant","content":[{"type":"text","text":"hello"}]},{"role":"user","content":[{"type":"text","text":"a"}]}]`, ""},
		"system only": {[]lathe.Message{lathe.System("s")}, wire.EncodeOptions{}, `"system":[{"type":"text","text":"s"}],"messages":[` + opening + `]`, ""},
		"blank text": {[]lathe.Message{lathe.User("a"), {Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Text{Text: " \n"}, lathe.Text{Text: "x"}}}}, wire.EncodeOptions{},
			`"messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":[{"type":"text","text":"x"}]}]`, "messages[1].parts[0]"},
		"name and members of another wire": {[]lathe.Message{{Role: lathe.RoleUser, Name: "n", Parts: []lathe.Part{lathe.Text{Text: "a", Extra: []lathe.Member{{Name: "cache_control", Value: []byte(`{"type":"ephemeral"}`)}, {Name: "x", Value: []byte("1")}}}, lathe.Opaque{JSON: []byte(`{}`)}}, Extra: []lathe.Member{{Name: "y", Value: []byte("1")}}}}, wire.EncodeOptions{},
			`"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}]`, "messages[0].name messages[0].y messages[0].parts[0].x messages[0].parts[1]"},
		"odd ids and arguments": {[]lathe.Message{lathe.User("a"), {Role: lathe.RoleAssistant, Parts: []lathe.Part{call("call:1", `[1]`), call(strings.Repeat("x", 65), "null")}}, result("call:1", "1"), result(strings.Repeat("x", 65), "2")}, wire.EncodeOptions{},
			`"messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":[{"type":"tool_use","id":"` + CallID("call:1") + `","name":"f","input":{}},{"type":"tool_use","id":"` + CallID(strings.Repeat("x", 65)) + `","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"` + CallID("call:1") + `","content":"1"},{"type":"tool_result","tool_use_id":"` + CallID(strings.Repeat("x", 65)) + `","content":"2"}]}]`, "messages[1].parts[0].arguments"},
		"tool history without tools": {[]lathe.Message{lathe.User("a"), {Role: lathe.RoleAssistant, Parts: []lathe.Part{call("a", "{}")}}, result("a", "1")}, wire.EncodeOptions{},
			`"messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]}]`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			body, dropped := write(t, &lathe.Request{Model: "m", Messages: tt.messages}, &tt.opts)
			if got := wroteTurns(body); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if strings.Join(dropped, " ") != tt.dropped {
				t.Errorf("dropped %q, want %q", dropped, tt.dropped)
			}
		})
	}
}

// TestAppendRequestStubs: a server that demands tools for a history with calls gets stubs that it must not call (W20).
func TestAppendRequestStubs(t *testing.T) {
	req := &lathe.Request{Model: "m", Messages: []lathe.Message{lathe.User("a"), {Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.ToolCall{ID: "a", Name: "f"}, lathe.ToolCall{ID: "b", Name: "f"}}}}}
	body, _ := write(t, req, &wire.EncodeOptions{Without: []string{featureHistory}})
	if !strings.Contains(body, `"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"none"}`) {
		t.Error(body)
	}
}

// TestAppendRequestReasoning: reasoning goes back to the model that wrote it, byte for byte and in its place, and to no other (W26).
func TestAppendRequestReasoning(t *testing.T) {
	signed := lathe.Reasoning{Text: "hm", Field: fieldThinking, Data: "EqQB+/="}
	for name, tt := range map[string]struct {
		part lathe.Reasoning
		wire lathe.Wire
		want string
	}{
		"of a client":          {signed, lathe.WireMessages, `{"type":"thinking","thinking":"hm","signature":"EqQB+/="}`},
		"of this model":        {lathe.Reasoning{Text: "", Field: fieldThinking, Data: "sig", Entry: "claude"}, lathe.WireMessages, `{"type":"thinking","thinking":"","signature":"sig"}`},
		"of another model":     {lathe.Reasoning{Text: "hm", Field: fieldThinking, Data: "sig", Entry: "other"}, lathe.WireMessages, ""},
		"redacted":             {lathe.Reasoning{Field: fieldRedacted, Data: "x", Entry: "claude"}, lathe.WireMessages, `{"type":"redacted_thinking","data":"x"}`},
		"redacted of another":  {lathe.Reasoning{Field: fieldRedacted, Data: "x", Entry: "other"}, lathe.WireMessages, ""},
		"unsigned of a client": {lathe.Reasoning{Text: "hm", Field: fieldThinking}, lathe.WireMessages, ""},
		"unsigned of this":     {lathe.Reasoning{Text: "hm", Field: fieldThinking, Entry: "claude"}, lathe.WireMessages, `{"type":"thinking","thinking":"hm","signature":""}`},
		"of chat":              {lathe.Reasoning{Text: "hm", Field: "reasoning_content", Entry: "claude"}, lathe.WireOpenAIChat, ""},
		"of responses":         {lathe.Reasoning{Text: "hm", Field: "encrypted_content", Data: "x"}, lathe.WireResponses, ""},
		"of another wire":      {signed, lathe.WireGemini, ""},
		"of an unknown field":  {lathe.Reasoning{Text: "hm", Field: "x", Data: "y"}, lathe.WireMessages, ""},
	} {
		req := &lathe.Request{Model: "m", Messages: []lathe.Message{lathe.User("a"), {Role: lathe.RoleAssistant, Wire: tt.wire, Parts: []lathe.Part{tt.part, lathe.ToolCall{ID: "a", Name: "f"}}}}}
		body, dropped := write(t, req, &wire.EncodeOptions{Entry: "claude"})
		want := tt.want
		if want != "" {
			want += ","
		}
		if !strings.Contains(body, `"content":[`+want+`{"type":"tool_use"`) || (len(dropped) == 1 && dropped[0] == "messages[1].parts[0]") != (tt.want == "") {
			t.Errorf("%s: dropped %v\n%s", name, dropped, body)
		}
	}
	// With mode enabled, the API refuses a step that does not begin with thinking.
	step := []lathe.Message{lathe.User("a"), {Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.ToolCall{ID: "a", Name: "f"}}}, {Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: "a"}}}}
	body, dropped := write(t, &lathe.Request{Messages: step, Sampling: lathe.Sampling{ReasoningBudget: ptr(2000)}}, nil)
	if strings.Contains(body, "thinking") || !cmp.Equal(dropped, []string{"sampling.reasoning_budget"}) {
		t.Errorf("dropped %v\n%s", dropped, body)
	}
	step[1].Wire, step[1].Parts = lathe.WireMessages, append([]lathe.Part{signed}, step[1].Parts...)
	if body, _ := write(t, &lathe.Request{Messages: step, Sampling: lathe.Sampling{ReasoningBudget: ptr(2000)}}, nil); !strings.Contains(body, `"type":"enabled"`) {
		t.Error(body)
	}
}

// TestAppendRequestBlobs: images and documents in turns and results (W11).
func TestAppendRequestBlobs(t *testing.T) {
	png := lathe.Blob{MediaType: "image/png", Data: []byte{1, 2, 3}}
	for name, tt := range map[string]struct {
		blob lathe.Blob
		want string
	}{
		"image":       {png, `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AQID"}}`},
		"jpg":         {lathe.Blob{MediaType: "image/jpg", Data: []byte{1, 2, 3}}, `{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"AQID"}}`},
		"address":     {lathe.Blob{URL: "https://a/b.png"}, `{"type":"image","source":{"type":"url","url":"https://a/b.png"}}`},
		"pdf":         {lathe.Blob{MediaType: "application/pdf", Data: []byte{1, 2, 3}, Name: "a.pdf"}, `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AQID"},"title":"a.pdf"}`},
		"text":        {lathe.Blob{MediaType: "text/plain", Data: []byte("hi")}, `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"hi"}}`},
		"audio":       {lathe.Blob{MediaType: "audio/wav", Data: []byte{1}}, ""},
		"vendor file": {lathe.Blob{URL: "openai-file:file_1"}, ""},
		"raw of chat": {lathe.Blob{MediaType: "image/png", Data: []byte{1, 2, 3}, Raw: []byte(`{"type":"image_url"}`)}, `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AQID"}}`},
	} {
		req := &lathe.Request{Messages: []lathe.Message{{Role: lathe.RoleUser, Parts: []lathe.Part{lathe.Text{Text: "a"}, tt.blob}},
			{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.ToolCall{ID: "a", Name: "f"}}},
			{Role: lathe.RoleTool, Name: "f", Parts: []lathe.Part{lathe.ToolResult{CallID: "a", Content: "b", Blobs: []lathe.Blob{tt.blob}}}}}}
		body, dropped := write(t, req, nil)
		want := tt.want
		if want != "" {
			want = "," + want
		}
		result := want
		if want == "" {
			result = `,{"type":"text","text":` + string(rawjson.AppendQuote(nil, wire.BlobNote(&tt.blob))) + `}`
		}
		if !strings.Contains(body, `{"type":"text","text":"a"}`+want+`]`) || !strings.Contains(body, `"content":[{"type":"text","text":"b"}`+result+`]`) {
			t.Errorf("%s:\n%s", name, body)
		}
		if got := strings.Join(dropped, " "); (got == "messages[0].parts[1] messages[2].parts[0].blobs[0]") != (tt.want == "") {
			t.Errorf("%s: dropped %q", name, got)
		}
	}
}

// TestAppendRequestTools: members of a tool pass on this wire; of those of other wires, the ones with the same meaning do (W25).
func TestAppendRequestTools(t *testing.T) {
	member := func(name, value string) lathe.Member {
		return lathe.Member{Name: name, Value: json.RawMessage(value)}
	}
	closed := `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`
	for name, tt := range map[string]struct {
		tool    lathe.ToolSpec
		without string
		want    string
		dropped string
	}{
		"own": {lathe.ToolSpec{Wire: lathe.WireMessages, Schema: json.RawMessage(`{ "anyOf":[] }`), Extra: []lathe.Member{member("strict", "true"), member("input_examples", `[{}]`)}}, "",
			`{"name":"f","input_schema":{ "anyOf":[] },"strict":true,"input_examples":[{}]}`, ""},
		"own without strict":    {lathe.ToolSpec{Wire: lathe.WireMessages, Schema: json.RawMessage(closed), Extra: []lathe.Member{member("strict", "true")}}, featureStrict, `{"name":"f","input_schema":` + closed + `}`, "tools[0].strict"},
		"chat, strict":          {lathe.ToolSpec{Schema: json.RawMessage(closed), Extra: []lathe.Member{member("function", `{"strict":true,"x":1}`)}}, "", `{"name":"f","input_schema":` + closed + `,"strict":true}`, "tools[0].x"},
		"responses, open":       {lathe.ToolSpec{Wire: lathe.WireResponses, Schema: json.RawMessage(`{"type":"object"}`), Extra: []lathe.Member{member("strict", "true")}}, "", `{"name":"f","input_schema":{"type":"object"}}`, "tools[0].strict"},
		"responses, not":        {lathe.ToolSpec{Wire: lathe.WireResponses, Extra: []lathe.Member{member("strict", "false"), member("defer_loading", "true")}}, "", `{"name":"f","input_schema":{"type":"object"},"defer_loading":true}`, ""},
		"names like keywords":   {lathe.ToolSpec{Schema: json.RawMessage(`{"type":"object","properties":{"anyOf":{"const":{"oneOf":[1]}},"allOf":{"enum":["anyOf"]}}}`)}, "", `{"name":"f","input_schema":{"type":"object","properties":{"anyOf":{"const":{"oneOf":[1]}},"allOf":{"enum":["anyOf"]}}}}`, ""},
		"union at the root":     {lathe.ToolSpec{Schema: json.RawMessage(`{"$defs":{"d":{}},"oneOf":[{"properties":{"a":{"type":"string"},"k":{"const":1}},"required":["k","a"]},{"properties":{"b":{"type":"number"},"k":{"const":2}},"required":["k"]}],"description":"x"}`)}, "", `{"name":"f","input_schema":{"type":"object","$defs":{"d":{}},"description":"x","properties":{"a":{"type":"string"},"k":{"const":1},"b":{"type":"number"}},"required":["k"]}}`, "tools[0].schema.oneOf"},
		"all of, at the root":   {lathe.ToolSpec{Schema: json.RawMessage(`{"type":"object","properties":{"z":{}},"required":["z"],"allOf":[{"properties":{"a":{}},"required":["a"]},{"properties":{"b":{}}}]}`)}, "", `{"name":"f","input_schema":{"type":"object","properties":{"z":{},"a":{},"b":{}},"required":["z","a"]}}`, "tools[0].schema.allOf"},
		"no type":               {lathe.ToolSpec{Schema: json.RawMessage(`{"properties":{"a":{}}}`)}, "", `{"name":"f","input_schema":{"type":"object","properties":{"a":{}}}}`, ""},
		"cache control of chat": {lathe.ToolSpec{Extra: []lathe.Member{member("cache_control", `{"type":"ephemeral"}`)}}, "", `{"name":"f","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}`, ""},
	} {
		tt.tool.Name = "f"
		body, dropped := write(t, &lathe.Request{Tools: []*lathe.ToolSpec{&tt.tool}, Messages: []lathe.Message{lathe.User("a")}}, &wire.EncodeOptions{Without: []string{tt.without}})
		if !strings.Contains(body, `"tools":[`+tt.want+`]`) || strings.Join(dropped, " ") != tt.dropped {
			t.Errorf("%s: dropped %q\ngot  %s\nwant %s", name, dropped, body, tt.want)
		}
	}
}

// TestAppendRequestKeepsPrefix: a request that continues an earlier one begins with the bytes of its turns, so that caches
// match (W16).
func TestAppendRequestKeepsPrefix(t *testing.T) {
	history := []lathe.Message{lathe.System("s"), lathe.User("u")}
	before := ""
	for i := range 10 {
		body, _ := write(t, &lathe.Request{Model: "m", Tools: []*lathe.ToolSpec{{Name: "f"}}, Messages: history}, &wire.EncodeOptions{Stream: true})
		if prefix := strings.TrimSuffix(before, "]}]}"); !strings.HasPrefix(body, prefix) {
			t.Fatalf("turn %d does not begin with the one before:\n%s\n%s", i, before, body)
		}
		before = body
		history = append(history, lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.ToolCall{ID: "odd id", Name: "f"}}},
			lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: "odd id", Content: "r"}}})
	}
}

// TestStrictSchema: keywords that the API does not take become text, in schema positions only (W25).
func TestStrictSchema(t *testing.T) {
	for _, tt := range []struct{ in, want, changes string }{
		{`{"type":"object","properties":{"minimum":{"type":"integer","minimum":1,"description":"n"}},"required":["minimum"],"additionalProperties":false}`,
			`{"type":"object","properties":{"minimum":{"type":"integer","description":"n\n\n{minimum: 1}"}},"required":["minimum"],"additionalProperties":false}`, ".properties.minimum.minimum"},
		{`{"type":"object","properties":{}}`, `{"type":"object","properties":{},"additionalProperties":false}`, ".additionalProperties"},
		{`{"oneOf":[{"type":"string","format":"date"},{"type":"string","format":"x"}]}`, `{"anyOf":[{"type":"string","format":"date"},{"type":"string","description":"{format: \"x\"}"}]}`, ".oneOf .oneOf.format"},
		{`{"type":"array","items":{"enum":["minimum"]},"minItems":2}`, `{"type":"array","items":{"enum":["minimum"]},"description":"{minItems: 2}"}`, ".minItems"},
		{`{"type":"array","items":{"$ref":"#/$defs/a"},"minItems":1,"$defs":{"a":{"const":{"minimum":1}}}}`, ``, ""},
	} {
		strict := strictRules.Strict([]byte(tt.in))
		got, changes := strict.Schema, strict.Changes
		want := tt.want
		if want == "" {
			want = tt.in
		}
		if string(got) != want || strings.Join(changes, " ") != tt.changes {
			t.Errorf("%s:\ngot  %s %q\nwant %s %q", tt.in, got, changes, want, tt.changes)
		}
		if again := strictRules.Strict(got); string(again.Schema) != string(got) || len(again.Changes) > 0 {
			t.Errorf("%s changes again: %s %q", got, again.Schema, again.Changes)
		}
	}
}

// TestAppendRelayedChangesLittle: a client's own request passes byte for byte, but for what the server must change.
func TestAppendRelayedChangesLittle(t *testing.T) {
	body := "{ \"model\":\"alias\", \"max_tokens\" : 9.0e0,\"stream\":true,\"new\":{\"a\":1},\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"tools\":[{\"name\":\"f\",\"input_schema\":{}}] }"
	req := &lathe.Request{Model: "claude", Tools: []*lathe.ToolSpec{{Name: "f"}}, Overrides: []lathe.Member{{Name: "new", Value: []byte("2")}, {Name: "more", Value: []byte("3")}}}
	got := string(Codec{}.AppendRelayed(nil, []byte(body), req, &wire.EncodeOptions{Stream: true}))
	want := strings.Replace(strings.Replace(strings.Replace(body, "alias", "claude", 1), `{"a":1}`, "2", 1), `{}}]`, `{}}],"more":3`, 1)
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	req.ToolChoice = lathe.ToolChoice{Mode: lathe.ChoiceNone}
	req.Overrides = nil
	got = string(Codec{}.AppendRelayed(nil, []byte(body), req, &wire.EncodeOptions{}))
	want = strings.Replace(strings.Replace(strings.Replace(body, "alias", "claude", 1), `"stream":true`, `"stream":false`, 1), `{}}]`, `{}}],"tool_choice":{"type":"none"}`, 1)
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	req = &lathe.Request{APIVersion: "2026-10-21", Overrides: []lathe.Member{{Name: "temperature", Value: []byte("1")}}}
	if got = string(Codec{}.AppendRelayed(nil, []byte(body), req, nil)); got != body {
		t.Errorf("got  %s\nwant %s", got, body)
	}
}

// The tool choice and the setting of parallel calls are sent also if all tools are defined in blocks of the conversation.
func TestChoiceWithToolsOfBlocks(t *testing.T) {
	t.Parallel()
	no := false
	req := &lathe.Request{Model: "m", Tools: []*lathe.ToolSpec{{Name: "f", Wire: lathe.WireMessages, Origin: wire.OriginInput}}, ToolChoice: lathe.ToolChoice{Mode: lathe.ChoiceRequired},
		ParallelToolCalls: &no, Messages: []lathe.Message{lathe.User("x")}}
	body, _ := Codec{}.AppendRequest(nil, req, nil)
	if want := `"tool_choice":{"type":"any","disable_parallel_tool_use":true}`; !strings.Contains(string(body), want) || strings.Contains(string(body), `"tools"`) {
		t.Errorf("there is no %s in %s", want, body)
	}
}
