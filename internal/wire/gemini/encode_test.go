package gemini

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func TestAppendRequestOfAnotherWire(t *testing.T) {
	t.Parallel()
	off := false
	req := &lathe.Request{
		Model: "gemini-2.5-pro",
		Messages: []lathe.Message{
			lathe.System("be brief"),
			{Role: lathe.RoleDeveloper, Parts: []lathe.Part{lathe.Text{Text: "and kind", Extra: []lathe.Member{{Name: "cache_control", Value: raw(`{"type":"ephemeral"}`)}}}}},
			{Role: lathe.RoleUser, Name: "ann", Parts: []lathe.Part{lathe.Text{Text: "look"}, lathe.Blob{MediaType: "image/png", Data: []byte{1, 2}, Detail: "high"},
				lathe.Blob{URL: "https://example.org/a.pdf", MediaType: "application/pdf"}, lathe.Blob{URL: "openai-file:file-1"}}},
			{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Reasoning{Text: "hm", Field: "reasoning_content"}, lathe.Text{Text: "I look."},
				lathe.ToolCall{ID: "c1", Name: "f", Arguments: `{"n":1e400}`}, lathe.ToolCall{ID: "c2", Name: "g", Arguments: ""}, lathe.ToolCall{ID: "c3", Name: "h", Arguments: "oops"}},
				Extra: []lathe.Member{{Name: "audio", Value: raw(`{"id":"x"}`)}}},
			{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: "c1", Content: "one", Blobs: []lathe.Blob{{MediaType: "image/png", Data: []byte{3}}}}}},
			{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: "c2", Content: "two", IsError: true}}},
			{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: "c3", Content: ""}}},
			lathe.System("mind the gap"),
			{Role: lathe.RoleAssistant, Wire: lathe.WireMessages, Parts: []lathe.Part{lathe.Opaque{JSON: raw(`{"type":"x"}`)}}},
			lathe.User("go on"),
		},
		Tools: []*lathe.ToolSpec{{Name: "f", Description: "d", Schema: raw(`{"type":"object","properties":{"n":{"type":"number","exclusiveMinimum":0}},"additionalProperties":false}`),
			Extra: []lathe.Member{{Name: "function", Value: raw(`{"strict":true}`)}}}, {Name: "g"}},
		ToolChoice:        lathe.ToolChoice{Mode: lathe.ChoiceFunction, Name: "f"},
		ParallelToolCalls: &off,
		HostedTools:       []json.RawMessage{raw(`{"googleSearch":{}}`)},
		User:              "u",
		Sampling: lathe.Sampling{Temperature: pointer(0.5), TopP: pointer(0.25), TopK: pointer(3), MaxTokens: pointer(9), Seed: pointer(int64(7)), Stop: []string{"z"},
			PresencePenalty: pointer(0.1), FrequencyPenalty: pointer(0.2), ReasoningEffort: "medium", ReasoningSummary: "auto", ResponseFormat: raw(`{"type":"json_object"}`)},
		Overrides: []lathe.Member{{Name: "safetySettings", Value: raw(`[]`)}, {Name: "contents", Value: raw(`[]`)},
			{Name: "generationConfig", Value: raw(`{"top_k":40,"speechConfig":{}}`)}, {Name: "toolConfig", Value: raw(`{"retrievalConfig":{}}`)}},
	}
	got, dropped := encode(t, req, nil)
	want := `{"systemInstruction":{"parts":[{"text":"be brief"},{"text":"and kind"}]},` +
		`"tools":[{"functionDeclarations":[{"name":"f","description":"d","parametersJsonSchema":{"type":"object","properties":{"n":{"type":"number"}},"additionalProperties":false}},{"name":"g"}]},{"googleSearch":{}}],` +
		`"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f"]},"retrievalConfig":{}},` +
		`"generationConfig":{"temperature":0.5,"topP":0.25,"presencePenalty":0.1,"frequencyPenalty":0.2,"maxOutputTokens":9,"seed":7,"stopSequences":["z"],"responseMimeType":"application/json",` +
		`"thinkingConfig":{"includeThoughts":true,"thinkingBudget":8192},"top_k":40,"speechConfig":{}},"safetySettings":[],` +
		`"contents":[{"role":"user","parts":[{"text":"look"},{"inlineData":{"mimeType":"image/png","data":"AQI="}},{"fileData":{"mimeType":"application/pdf","fileUri":"https://example.org/a.pdf"}}]},` +
		`{"role":"model","parts":[{"text":"I look."},{"functionCall":{"id":"c1","name":"f","args":{"n":1e400}}},{"functionCall":{"id":"c2","name":"g","args":{}}},{"functionCall":{"id":"c3","name":"h","args":{}}}]},` +
		`{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"f","response":{"output":"one"}}},{"functionResponse":{"id":"c2","name":"g","response":{"error":"two"}}},` +
		`{"functionResponse":{"id":"c3","name":"h","response":{"output":""}}},{"inlineData":{"mimeType":"image/png","data":"Aw=="}}]},` +
		`{"role":"user","parts":[{"text":"<system>\nmind the gap\n</system>"}]},{"role":"user","parts":[{"text":"go on"}]}]}`
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	wantDropped := []string{"messages[1].parts[0].cache_control", "tools[0].schema.properties.n.exclusiveMinimum", "tools[0].strict", "parallel_tool_calls", "user",
		"messages[2].name", "messages[2].parts[1].detail", "messages[2].parts[3]", "messages[3].audio", "messages[3].parts[0]", "messages[3].parts[4].arguments",
		"messages[7].role", "messages[8].parts[0]", "messages[8]"}
	if !slices.Equal(dropped, wantDropped) {
		t.Errorf("dropped %q\nwant    %q", dropped, wantDropped)
	}
}

func TestAppendRequestWithoutRefusedFeatures(t *testing.T) {
	t.Parallel()
	req := &lathe.Request{Model: "gemini-2.5-pro", Messages: []lathe.Message{lathe.User("a"),
		{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.ToolCall{ID: "c1", Name: "f"}, lathe.ToolCall{ID: "c2", Name: "f"}}},
		{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: "c1", Content: "x"}}}, {Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: "c2", Content: "y"}}}},
		Tools:    []*lathe.ToolSpec{{Name: "f", Schema: raw(`{"type":"object","properties":{"a":{"type":["string","null"]}}}`)}},
		Sampling: lathe.Sampling{ReasoningEffort: "high", ResponseFormat: raw(`{"type":"json_schema","json_schema":{"schema":{"type":"object"}}}`)}}
	for feature, want := range map[string]string{
		featureIDs:        `{"functionCall":{"name":"f","args":{}}}`,
		featureUnsigned:   `"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"id":"c2","name":"f","args":{}}}`,
		featureJSONSchema: `"parameters":{"type":"OBJECT","properties":{"a":{"type":"STRING","nullable":true}}}`,
		featureThinking:   `"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":{"type":"object"}}`,
	} {
		with, _ := encode(t, req, nil)
		without, _ := encode(t, req, &wire.EncodeOptions{Without: []string{feature}})
		if strings.Contains(with, want) || !strings.Contains(without, want) {
			t.Errorf("%s: %s", feature, without)
		}
	}
	for message, want := range map[string]string{
		`Invalid JSON payload received. Unknown name "parametersJsonSchema" at 'tools[0]': Cannot find field.`: featureJSONSchema,
		`Invalid JSON payload received. Unknown name "id" at 'contents[1].parts[0].function_call': no`:         featureIDs,
		`Function call is missing a thought_signature in functionCall parts.`:                                  featureUnsigned,
		`Thinking level is not supported for this model.`:                                                      featureLevel,
		`Unable to submit request because thinking is not supported by this model.`:                            featureThinking,
		`The thinking budget 5 is invalid. Please choose a value between 128 and 32768.`:                       "",
		`Please ensure that the number of function response parts is equal`:                                    "",
	} {
		if got := (Codec{}).Refused(&wire.APIError{Status: 400, Message: message}); got != want {
			t.Errorf("%s: %q, want %q", message, got, want)
		}
	}
	if got := (Codec{}).Refused(&wire.APIError{Status: 500, Message: "thinking"}); got != "" {
		t.Error(got)
	}
}

func TestThinking(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		model    string
		sampling lathe.Sampling
		want     string
		dropped  int
	}{
		{"gemini-3-pro", lathe.Sampling{ReasoningEffort: "low"}, `{"thinkingLevel":"low"}`, 0},
		{"gemini-3-pro", lathe.Sampling{ReasoningEffort: "xhigh"}, `{"thinkingLevel":"high"}`, 1},
		{"gemini-3-pro", lathe.Sampling{ReasoningEffort: "none"}, `{"thinkingLevel":"minimal"}`, 1},
		{"models/gemini-2.5-flash", lathe.Sampling{ReasoningEffort: "none"}, `{"thinkingBudget":0}`, 0},
		{"gemini-2.5-flash", lathe.Sampling{ReasoningEffort: "high"}, `{"thinkingBudget":24576}`, 0},
		{"gemini-2.5-flash", lathe.Sampling{ReasoningBudget: pointer(-1), ReasoningEffort: "low", ReasoningSummary: "detailed"}, `{"includeThoughts":true,"thinkingBudget":-1}`, 1},
	} {
		got, dropped := encode(t, &lathe.Request{Model: c.model, Messages: []lathe.Message{lathe.User("a")}, Sampling: c.sampling}, nil)
		if !strings.Contains(got, `"thinkingConfig":`+c.want+`}`) || len(dropped) != c.dropped {
			t.Errorf("%s %s: %s, dropped %v", c.model, dump(t, c.sampling), got, dropped)
		}
	}
}

func TestSystemAloneIsContent(t *testing.T) {
	t.Parallel()
	got, _ := encode(t, &lathe.Request{Messages: []lathe.Message{lathe.System("s")}}, nil)
	if got != `{"contents":[{"role":"user","parts":[{"text":"<system>\ns\n</system>"}]}]}` {
		t.Error(got)
	}
	got, _ = encode(t, &lathe.Request{Messages: []lathe.Message{lathe.System(""), lathe.User("u")}}, nil)
	if got != `{"contents":[{"role":"user","parts":[{"text":"u"}]}]}` {
		t.Error(got)
	}
}

func TestResultsKeepTheirForm(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ response, content string }{
		{`{"output":"x"}`, "x"}, {`{"error":"no"}`, "no"}, {`{"output":{"a":1}}`, `{"a":1}`}, {`{"a":12345678901234567890}`, `{"a":12345678901234567890}`},
		{`{"output":"x","error":"e"}`, `{"output":"x","error":"e"}`}, {`{}`, `{}`},
	} {
		req := mustParse(t, `{"contents":[{"role":"model","parts":[{"functionCall":{"id":"1","name":"f","args":{}}}]},
			{"parts":[{"functionResponse":{"id":"1","name":"f","response":`+c.response+`,"scheduling":"SILENT"},"k":1}]}]}`)
		r := req.Messages[1].Parts[0].(lathe.ToolResult)
		if r.Content != c.content || r.IsError != strings.Contains(c.response, "error") {
			t.Errorf("%s: %+v", c.response, r)
		}
		got, _ := encode(t, &req.Request, nil)
		want := []string{`"response":` + c.response, `"scheduling":"SILENT"`, `"k":1`}
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: %s", w, got)
			}
		}
		// A content that was changed replaces what the client sent.
		r.Content = "changed"
		req.Messages[1].Parts[0] = r
		if got, _ := encode(t, &req.Request, nil); !strings.Contains(got, `"changed"`) || strings.Contains(got, `"response":`+c.response) {
			t.Errorf("changed: %s", got)
		}
	}
}

func TestAppendRelayed(t *testing.T) {
	t.Parallel()
	body := `{ "contents": [ {"parts":[{"text":"a"}]} ], "tool_config":{"functionCallingConfig":{"mode":"AUTO"},"x":1}, "generation_config": {"topK": 1, "n": 2.50} }`
	tools := []*lathe.ToolSpec{{Name: "f"}}
	for _, c := range []struct {
		req  *lathe.Request
		want string
	}{
		{&lathe.Request{Model: "gemini-x"}, body},
		{&lathe.Request{Tools: tools, ToolChoice: lathe.ToolChoice{Mode: lathe.ChoiceAuto}}, body},
		{&lathe.Request{Tools: tools, ToolChoice: lathe.ToolChoice{Mode: lathe.ChoiceNone}},
			`{ "contents": [ {"parts":[{"text":"a"}]} ], "tool_config":{"x":1,"functionCallingConfig":{"mode":"NONE"}}, "generation_config": {"topK": 1, "n": 2.50} }`},
		{&lathe.Request{Overrides: []lathe.Member{{Name: "safetySettings", Value: raw("[]")}, {Name: "generationConfig", Value: raw(`{"top_k":9}`)}, {Name: "contents", Value: raw("[]")}}},
			`{ "contents": [ {"parts":[{"text":"a"}]} ], "tool_config":{"functionCallingConfig":{"mode":"AUTO"},"x":1}, "generation_config": {"n":2.50,"top_k":9},"safetySettings":[] }`},
	} {
		if got := string(Codec{}.AppendRelayed([]byte("x"), []byte(body), c.req, nil)); got != "x"+c.want {
			t.Errorf("%s\nwant\n%s", got, c.want)
		}
	}
	got := string(Codec{}.AppendRelayed(nil, []byte(`{"model":"models/a","contents":[]}`), &lathe.Request{Model: "b"}, nil))
	if got != `{"model":"b","contents":[]}` {
		t.Error(got)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		e      wire.APIError
		code   int
		status string
	}{
		{wire.APIError{Status: 400, Type: "invalid_request_error", Message: "m", Param: "contents[0]", Code: "c"}, 400, "INVALID_ARGUMENT"},
		{wire.APIError{Type: "rate_limit_error", RetryAfter: 1.5}, 429, "RESOURCE_EXHAUSTED"},
		{wire.APIError{Status: 401, RequestID: "r"}, 401, "UNAUTHENTICATED"}, {wire.APIError{Status: 403}, 403, "PERMISSION_DENIED"}, {wire.APIError{Status: 404}, 404, "NOT_FOUND"},
		{wire.APIError{Status: 413}, 413, "INVALID_ARGUMENT"}, {wire.APIError{Status: 400, Type: "FAILED_PRECONDITION"}, 400, "FAILED_PRECONDITION"},
		{wire.APIError{Status: 502}, 502, "UNAVAILABLE"}, {wire.APIError{Status: 503}, 503, "UNAVAILABLE"}, {wire.APIError{Status: 504}, 504, "DEADLINE_EXCEEDED"},
		{wire.APIError{Status: 529, Type: "overloaded_error"}, 529, "UNAVAILABLE"}, {wire.APIError{}, 500, "INTERNAL"}, {wire.APIError{Status: 200}, 500, "INTERNAL"},
		{wire.APIError{Type: "UNAVAILABLE"}, 503, "UNAVAILABLE"},
	} {
		body := Codec{}.AppendError(nil, &c.e)
		var got struct {
			Error struct {
				Code    int
				Status  string
				Details []map[string]any
			}
		}
		if err := json.Unmarshal(body, &got); err != nil || got.Error.Code != c.code || got.Error.Status != c.status || got.Error.Details == nil {
			t.Errorf("%+v: %s %v", c.e, body, err)
		}
		back := Codec{}.ParseError(0, body)
		want := c.e
		want.Status, want.Type = c.code, c.status
		if *back != want {
			t.Errorf("%+v, want %+v", back, want)
		}
	}
	long := Codec{}.ParseError(400, []byte(`[{"error":{"code":400,"message":"The input token count (9) exceeds the maximum number of tokens allowed (8). `+strings.Repeat("x", 5000)+`","status":"INVALID_ARGUMENT"}}]`))
	if long.Code != "context_length_exceeded" || len(long.Message) != 2048 || long.Status != 400 {
		t.Errorf("%d %+v", len(long.Message), long.Code)
	}
	key := Codec{}.ParseError(400, []byte(`{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}`))
	if key.Status != 401 || key.Type != "UNAUTHENTICATED" {
		t.Errorf("a key that is not valid: %+v", key)
	}
	over := string(Codec{}.AppendError(nil, &wire.APIError{Status: 400, Code: "context_length_exceeded", Message: "too long"}))
	if !strings.Contains(over, "exceeds the maximum number of tokens allowed. too long") {
		t.Error(over)
	}
	for _, body := range []string{"", "<html>", "null", "[]", `{"error":null}`, `{"error":"x"}`, "\xff"} {
		if e := (Codec{}).ParseError(503, []byte(body)); e.Status != 503 {
			t.Errorf("%q: %+v", body, e)
		}
	}
}

func TestPath(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		model  string
		stream bool
		want   string
	}{{"m", true, "/models/m:streamGenerateContent?alt=sse"}, {"m", false, "/models/m:generateContent"}, {"tunedModels/m", false, "/tunedModels/m:generateContent"}} {
		if got := (Codec{}).Path(c.model, c.stream); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}
