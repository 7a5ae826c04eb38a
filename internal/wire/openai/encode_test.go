package openai

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

func TestAppendMessage(t *testing.T) {
	t.Parallel()
	reasoned := lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{
		lathe.Reasoning{Text: "h", Field: "reasoning_content"}, lathe.Reasoning{Text: "m", Field: "reasoning_content"}, lathe.Text{Text: "a"}},
		Extra: []lathe.Member{{Name: "reasoning", Value: json.RawMessage(`"x"`)}}}
	unsaid := lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Reasoning{Text: "hm"}}}
	for _, tt := range []struct {
		name, field string
		in          lathe.Message
		want        string
	}{
		{"reasoning left out", "", reasoned, `{"role":"assistant","content":"a","reasoning":"x"}`},
		{"reasoning under a name", "reasoning", reasoned, `{"role":"assistant","content":"a","reasoning":"hm"}`},
		{"reasoning as it came", ReasoningSame, reasoned, `{"role":"assistant","content":"a","reasoning_content":"hm","reasoning":"x"}`},
		{"reasoning of no name, as it came", ReasoningSame, unsaid, `{"role":"assistant","content":""}`},
		{"reasoning of no name", "thinking", unsaid, `{"role":"assistant","content":"","thinking":"hm"}`},
		{"commentary", "", lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{
			lathe.Text{Text: "First,", Commentary: true}, lathe.Text{Text: " look.", Commentary: true}, lathe.Text{Text: "Done."}}},
			`{"role":"assistant","content":"First, look.\n\nDone."}`},
		{"commentary and a call", "", lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{
			lathe.Text{Text: "Let me see.", Commentary: true}, lathe.ToolCall{ID: "a", Name: "f"}}},
			`{"role":"assistant","content":"Let me see.","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`},
		{"names that are not allowed", "", lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{
			lathe.ToolCall{ID: "a", Name: "mcp.read file"}, lathe.ToolCall{ID: "b", Name: strings.Repeat("x", 65)}, lathe.ToolCall{ID: "c"}}},
			`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"mcp_read_file","arguments":"{}"}},` +
				`{"id":"b","type":"function","function":{"name":"` + strings.Repeat("x", 64) + `","arguments":"{}"}},` +
				`{"id":"c","type":"function","function":{"name":"unknown","arguments":"{}"}}]}`},
		{"a result with a picture", "", lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{
			lathe.ToolResult{CallID: "a", Name: "f", Content: "x", IsError: true, Code: lathe.CodeTimeout, Blobs: []lathe.Blob{{URL: "https://e/x"}}}}},
			`{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"https://e/x"}}]}`},
		{"extra members", "", lathe.Message{Role: lathe.RoleUser, Parts: []lathe.Part{lathe.Text{Text: "a"}}, Extra: []lathe.Member{
			{Name: "x", Value: json.RawMessage(`1`)}, {Name: "role", Value: json.RawMessage(`"system"`)}, {Name: "y", Value: json.RawMessage(`[ 1, "a b" ]`)},
			{Name: "x", Value: json.RawMessage(`2`)}, {Name: "z"}}},
			`{"role":"user","content":"a","y":[ 1, "a b" ],"x":2}`},
		{"a part as it came", "", lathe.Message{Role: lathe.RoleUser, Parts: []lathe.Part{lathe.Blob{URL: "u", Raw: json.RawMessage(`{"type": "video_url"}`)}}},
			`{"role":"user","content":[{"type": "video_url"}]}`},
		{"no media type", "", lathe.Message{Role: lathe.RoleUser, Parts: []lathe.Part{lathe.Text{}, lathe.Blob{Data: []byte("a")}}},
			`{"role":"user","content":[{"type":"file","file":{"file_data":"data:application/octet-stream;base64,YQ=="}}]}`},
		{"nothing", "", lathe.Message{Role: lathe.RoleUser}, `{"role":"user","content":""}`},
	} {
		got := string(AppendMessages(nil, []lathe.Message{tt.in}, &EncodeOptions{ReasoningField: tt.field}))
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got)\n%s", tt.name, d)
		}
		if err := rawjson.Check([]byte(got), rawjson.Limits{}); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestAppendHead(t *testing.T) {
	t.Parallel()
	tool := &lathe.ToolSpec{Name: "f"}
	member := func(name, value string) lathe.Member { return lathe.Member{Name: name, Value: json.RawMessage(value)} }
	for _, tt := range []struct {
		name string
		req  lathe.Request
		opts *EncodeOptions
		want string
	}{
		{"nothing", lathe.Request{}, nil, `{"messages":[`},
		{"no tools, so nothing about them", lathe.Request{Model: "m", ToolChoice: lathe.ToolChoice{Mode: "auto"}, ParallelToolCalls: ptr(true)}, nil, `{"model":"m","messages":[`},
		{"a tool without schema", lathe.Request{Tools: []*lathe.ToolSpec{tool}, ToolChoice: lathe.ToolChoice{Mode: "none"}}, nil,
			`{"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}],"tool_choice":"none","messages":[`},
		{"usage only in a stream", lathe.Request{}, &EncodeOptions{IncludeUsage: true}, `{"messages":[`},
		{"newer name of the limit", lathe.Request{Sampling: lathe.Sampling{MaxTokens: ptr(5)}}, &EncodeOptions{MaxCompletionTokens: true}, `{"max_completion_tokens":5,"messages":[`},
		{"overrides", lathe.Request{Model: "m", User: "u", Sampling: lathe.Sampling{Temperature: ptr(0.5), TopP: ptr(0.5), MaxTokens: ptr(5), Seed: ptr(int64(1)), Stop: []string{"x"}, ReasoningEffort: "low", ResponseFormat: json.RawMessage(`{"type":"text"}`)},
			Tools: []*lathe.ToolSpec{tool}, ParallelToolCalls: ptr(true),
			Overrides: []lathe.Member{member("model", `"evil"`), member("messages", `[]`), member("tools", `[]`), member("tool_choice", `"none"`), member("response_format", `{}`), member("stream", `false`),
				member("temperature", `1`), member("top_p", `1`), member("max_tokens", `9`), member("seed", `2`), member("stop", `[]`), member("reasoning_effort", `"high"`), member("user", `"v"`),
				member("parallel_tool_calls", `false`), member("stream_options", `{}`), member("top_k", `1`), member("top_k", `2`)}},
			&EncodeOptions{Stream: true, IncludeUsage: true},
			`{"model":"m","stream":true,"response_format":{"type":"text"},"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}],` +
				`"temperature":1,"top_p":1,"max_tokens":9,"seed":2,"stop":[],"reasoning_effort":"high","user":"v","parallel_tool_calls":false,"stream_options":{},"top_k":2,"messages":[`},
	} {
		if d := cmp.Diff(tt.want, string(AppendHead(nil, &tt.req, tt.opts))); d != "" {
			t.Errorf("%s (-want +got)\n%s", tt.name, d)
		}
	}
}

func TestAppendSchema(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"items":`, 70) + `{"required":[]}` + strings.Repeat("}", 70)
	for _, tt := range []struct{ in, want string }{
		{` { "type" : "object" , "required" : [ ] } `, `{"type":"object"}`},
		{`{"required":["a"],"properties":{"a":{"type":"object","required":[]}}}`, `{"required":["a"],"properties":{"a":{"type":"object"}}}`},
		{`{"properties":{"required":{"required":[]}}}`, `{"properties":{"required":{}}}`},
		{`{"anyOf":[{"required":[]},{"$defs":{"x":{"required":[]}}}],"items":{"required":[]}}`, `{"anyOf":[{},{"$defs":{"x":{}}}],"items":{}}`},
		{`{"default":{"required":[]},"const":{"required":[]},"enum":[{"required":[]}],"examples":[{"required":[]}]}`, `{"default":{"required":[]},"const":{"required":[]},"enum":[{"required":[]}],"examples":[{"required":[]}]}`},
		{`{"required":[],"type":"object","x":1}`, `{"type":"object","x":1}`},
		{`{"\u0072equired":[]}`, `{}`},
		{`true`, `true`},
		{`{"properties":true,"n":1.50,"d":"a b"}`, `{"properties":true,"n":1.50,"d":"a b"}`},
		{deep, deep},
	} {
		if got := string(appendSchema(nil, []byte(tt.in), rawjson.DefaultMaxDepth)); got != tt.want {
			t.Errorf("%s\ngot  %s\nwant %s", tt.in, got, tt.want)
		}
	}
}

func floatText(f float64) []byte { return wire.JSON("{").Fields("f", f)[len(`{"f":`):] }

func TestAppendFloat(t *testing.T) {
	t.Parallel()
	for _, f := range []float64{0, 1, -1.5, 0.1, 1e-7, 1e21, 123456789, math.MaxFloat64, math.SmallestNonzeroFloat64} {
		got := floatText(f)
		var back float64
		if err := json.Unmarshal(got, &back); err != nil || back != f {
			t.Errorf("%v becomes %s", f, got)
		}
	}
	if got := string(floatText(math.NaN())) + string(floatText(math.Inf(1))); got != "nullnull" {
		t.Errorf("not numbers become %s", got)
	}
}

func TestParseErrorBodies(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 2000)
	for _, tt := range []struct {
		body string
		want APIError
	}{
		{`{"error":{"message":"No.","type":"invalid_request_error","param":"model","code":"model_not_found"}}`, APIError{Message: "No.", Type: "invalid_request_error", Param: "model", Code: "model_not_found"}},
		{` {"error":"No."} `, APIError{Message: "No."}},
		{`[{"error":{"code":400,"message":"No.","status":"INVALID_ARGUMENT"}}]`, APIError{Message: "No.", Type: "INVALID_ARGUMENT", Code: "400"}},
		{`{"object":"error","message":"No.","code":40001}`, APIError{Message: "No.", Code: "40001"}},
		{`{"detail":"Not Found"}`, APIError{Message: "Not Found"}},
		{`{"message":"No.","request_id":"x"}`, APIError{Message: "No."}},
		{"<html><body>Bad Gateway</body></html>", APIError{Message: "the server answered with an HTML page"}},
		{"upstream connect error", APIError{}},
		{"", APIError{}},
		{"null", APIError{}},
		{"[]", APIError{}},
		{`{"error":{"message":"Provider returned error","code":400,"metadata":{"provider_name":"Acme","raw":"{\"error\":{\"message\":\"No such tool.\"}}"}}}`,
			APIError{Message: "Provider returned error (Acme: No such tool.)", Code: "400"}},
		{`{"error":{"metadata":{"raw":{"message":"Inner."}}}}`, APIError{Message: "(Inner.)"}},
		{`{"error":{"message":"No.","metadata":{"provider_name":"Acme","raw":[{"error":"Inner."}]}}}`, APIError{Message: "No. (Acme: Inner.)"}},
		{`{"error":{"message":"No.","metadata":{"provider_name":"Acme","raw":"plain words"}}}`, APIError{Message: "No. (Acme: plain words)"}},
		{`{"error":{"message":"No.","metadata":{"provider_name":"Acme","raw":"<html>"}}}`, APIError{Message: "No. (Acme)"}},
		{`{"error":{"message":"No.","metadata":{"raw":[]}}}`, APIError{Message: "No."}},
		{`{"error":{"message":"No.","metadata":null}}`, APIError{Message: "No."}},
		{`{"error":{"message":"No.","metadata":{"raw":"` + long + `"}}}`, APIError{Message: ("No. (" + long)[:maxErrorText-1]}},
		{`{"error":{"message":"` + long + `"}}`, APIError{Message: long[:maxErrorText]}},
	} {
		tt.want.Status = 418
		if d := cmp.Diff(&tt.want, ParseError(418, []byte(tt.body))); d != "" {
			t.Errorf("%.80s (-want +got)\n%s", tt.body, d)
		}
	}
	e := &APIError{Status: 400, Message: "secret", Type: "t", Code: "c", Param: "p"}
	if got, want := e.Error(), "t (HTTP 400) code c at p"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, e := range []*APIError{e, {Message: "a", Type: "b"}} {
		got := ParseError(e.Status, AppendError(nil, e))
		if d := cmp.Diff(e, got); d != "" {
			t.Errorf("written and read (-want +got)\n%s", d)
		}
	}
	if got := string(AppendError(nil, &APIError{Status: 404})) + string(AppendError(nil, &APIError{Status: 500})); !strings.Contains(got, "invalid_request_error") || !strings.Contains(got, "server_error") {
		t.Errorf("types by status: %s", got)
	}
}

func TestParseCompletion(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "<html></html>", "{}", "[]", `{"choices":[]}`, `{"choices":[{}]}`, `{"choices":"x","id":"y"}`, done} {
		if f, err := ParseCompletion([]byte(body), nil); err != wire.ErrNoAnswer {
			t.Errorf("%q: got %v, %v; want %v", body, f, err, wire.ErrNoAnswer)
		}
	}
	if _, err := ParseCompletion([]byte(`{"error":{"message":"x","code":"y"}}`), nil); err == nil || err.(*APIError).Code != "y" {
		t.Errorf("an error in place of an answer: %v", err)
	}
	if _, err := ParseCompletion([]byte(`{"choices":[{"message":{"content":"0123456789"}}]}`), &AssemblerOptions{MaxBytes: 5}); err != wire.ErrTooManyBytes {
		t.Errorf("above the limit: %v", err)
	}
	// Each element of tool_calls is a call, whatever its id and name.
	f, err := ParseCompletion([]byte(`{"id":"r","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"function_call":null,"tool_calls":[
		{"id":"","type":"function","function":{"name":"f","arguments":{"x":1}}},{"function":{"name":"f","arguments":""}},{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}
		]},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []lathe.ToolCall{{Name: "f", Arguments: `{"x":1}`}, {Name: "f"}, {ID: "a", Name: "f", Arguments: "{}"}}
	if d := cmp.Diff(want, f.Message.Calls()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if f.Reason != lathe.FinishToolCalls || faultsOf(f)[faultIndexMissing] != 0 {
		t.Errorf("reason %q, faults %v", f.Reason, f.Faults)
	}
	legacy, err := ParseCompletion([]byte(`{"choices":[{"message":{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"[1]"}},"finish_reason":"function_call"}]}`), nil)
	if err != nil || !cmp.Equal(legacy.Message.Calls(), []lathe.ToolCall{{ID: "call_1", Name: "f", Arguments: "[1]"}}) {
		t.Errorf("legacy: %+v, %v", legacy, err)
	}
}

func TestArgumentsOfARequestAreAlwaysAnObject(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"a":`, 400) + "1" + strings.Repeat("}", 400)
	for args, want := range map[string]string{
		"":                                       "{}",
		"  ":                                     "{}",
		"null":                                   "{}",
		`{"a":"6 * 7`:                            "{}",
		`{"a": 6 * }`:                            "{}",
		`{"a":1} {"b":2}`:                        "{}",
		`[1]`:                                    "{}",
		`"text"`:                                 "{}",
		`7`:                                      "{}",
		`{"a":"\ud800"}`:                         "{}",
		`{"a":1,"a":2}`:                          "{}",
		`{"a":` + deep + strings.Repeat(deep, 2): "{}",
		`{ "a": 1.50 }`:                          `{ "a": 1.50 }`,
		deep:                                     deep,
		`"{\"a\":1}"`:                            `{"a":1}`,
		`"{\"a\":"`:                              "{}",
		"```json\n{\"a\":1}\n```":                `{"a":1}`,
		"\n\"\" ":                                "{}",
		"{\"a\":\"\xff\"}":                       "{}",
		strings.Repeat(`{"a":`, 501) + "1" + strings.Repeat("}", 501): "{}",
	} {
		req := &lathe.Request{Model: "m", Messages: []lathe.Message{{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.ToolCall{ID: "a", Name: "f", Arguments: args}}}}}
		got, err := ParseRequest(AppendRequest(nil, req, nil))
		if err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		if sent := got.Messages[0].Calls()[0].Arguments; sent != want {
			t.Errorf("%.60q is sent as %.60q, want %.60q", args, sent, want)
		}
	}
}

func TestArgumentsOfAnAnswerAreAsWritten(t *testing.T) {
	t.Parallel()
	f := &lathe.Finish{Message: lathe.Message{Parts: []lathe.Part{lathe.ToolCall{ID: "a", Name: "f", Arguments: `{"a":"6 * 7`}}}}
	got, err := ParseCompletion(AppendCompletion(nil, &Completion{Finish: f}), nil)
	if err != nil {
		t.Fatal(err)
	}
	if args := got.Message.Calls()[0].Arguments; args != `{"a":"6 * 7` {
		t.Errorf("%q", args)
	}
}
