package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// with returns a request that is good but for the members given.
func with(members string) string {
	return `{"model":"m","messages":[{"role":"user","content":"a"}],` + members + `}`
}

func messages(list string) string { return `{"model":"m","messages":[` + list + `]}` }

func TestParseRequestRefuses(t *testing.T) {
	t.Parallel()
	tool := `{"type":"function","function":{"name":"f"}}`
	for _, tt := range []struct{ body, param string }{
		{``, ""},
		{`[]`, ""},
		{`"x"`, ""},
		{`{"model":"m"`, ""},
		{`{"model":"m","model":"n","messages":[]}`, ""},
		{messages(`{"role":"user","content":"\ud800"}`), ""},
		{strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100), ""},
		{`{"messages":[{"role":"user","content":"a"}]}`, "model"},
		{`{"model":7,"messages":[{"role":"user","content":"a"}]}`, "model"},
		{`{"model":null,"messages":[{"role":"user","content":"a"}]}`, "model"},
		{`{"model":"m"}`, "messages"},
		{messages(``), "messages"},
		{`{"model":"m","messages":{}}`, "messages"},
		{messages(`"a"`), "messages[0]"},
		{messages(`{"content":"a"}`), "messages[0].role"},
		{messages(`{"role":"function","content":"a"}`), "messages[0].role"},
		{messages(`{"role":"user"}`), "messages[0].content"},
		{messages(`{"role":"user","content":null}`), "messages[0].content"},
		{messages(`{"role":"user","content":"a"},{"role":"user","content":7}`), "messages[1].content"},
		{messages(`{"role":"user","content":"a","name":1}`), "messages[0].name"},
		{messages(`{"role":"user","content":[1]}`), "messages[0].content[0]"},
		{messages(`{"role":"user","content":[{"text":"a"}]}`), "messages[0].content[0].type"},
		{messages(`{"role":"user","content":[{"type":"text"}]}`), "messages[0].content[0].text"},
		{messages(`{"role":"user","content":[{"type":"hologram"}]}`), "messages[0].content[0].type"},
		{messages(`{"role":"user","content":[{"type":"image_url"}]}`), "messages[0].content[0].type"},
		{messages(`{"role":"user","content":[{"type":"image_url","image_url":{}}]}`), "messages[0].content[0].image_url"},
		{messages(`{"role":"user","content":[{"type":"image_url","image_url":{"url":1}}]}`), "messages[0].content[0].image_url.url"},
		{messages(`{"role":"user","content":[{"type":"image_url","image_url":{"url":""}}]}`), "messages[0].content[0].image_url.url"},
		{messages(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,!!"}}]}`), "messages[0].content[0].image_url.url"},
		{messages(`{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"!","format":"wav"}}]}`), "messages[0].content[0].input_audio.data"},
		{messages(`{"role":"user","content":[{"type":"file","file":{"filename":"a"}}]}`), "messages[0].content[0].file"},
		{messages(`{"role":"user","content":"a","tool_calls":[]}`), "messages[0].tool_calls"},
		{messages(`{"role":"assistant","tool_calls":{}}`), "messages[0].tool_calls"},
		{messages(`{"role":"assistant","tool_calls":[1]}`), "messages[0].tool_calls[0]"},
		{messages(`{"role":"assistant","tool_calls":[{"function":{"name":"f"}}]}`), "messages[0].tool_calls[0].id"},
		{messages(`{"role":"assistant","tool_calls":[{"id":"a"}]}`), "messages[0].tool_calls[0].function"},
		{messages(`{"role":"assistant","tool_calls":[{"id":"a","type":"custom"}]}`), "messages[0].tool_calls[0].type"},
		{messages(`{"role":"assistant","tool_calls":[{"id":"a","function":{}}]}`), "messages[0].tool_calls[0].function.name"},
		{messages(`{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":{}}}]}`), "messages[0].tool_calls[0].function.arguments"},
		{messages(`{"role":"assistant","function_call":{"name":"f"}}`), "messages[0].function_call"},
		{messages(`{"role":"assistant","content":"a","refusal":1}`), "messages[0].refusal"},
		{messages(`{"role":"tool","content":"a"}`), "messages[0].tool_call_id"},
		{messages(`{"role":"tool","tool_call_id":"a","content":{}}`), "messages[0].content"},
		{with(`"tools":{}`), "tools"},
		{with(`"tools":[1]`), "tools[0]"},
		{with(`"tools":[` + tool + `,{"type":"custom","custom":{}}]`), "tools[1].type"},
		{with(`"tools":[{"function":{"name":"f"}}]`), "tools[0].type"},
		{with(`"tools":[{"type":"function"}]`), "tools[0].function"},
		{with(`"tools":[{"type":"function","function":{}}]`), "tools[0].function.name"},
		{with(`"tools":[{"type":"function","function":{"name":"a b"}}]`), "tools[0].function.name"},
		{with(`"tools":[{"type":"function","function":{"name":"f","description":1}}]`), "tools[0].function.description"},
		{with(`"tools":[{"type":"function","function":{"name":"f","parameters":[]}}]`), "tools[0].function.parameters"},
		{with(`"tools":[` + tool + `,` + tool + `]`), "tools[1].function.name"},
		{with(`"tool_choice":"always"`), "tool_choice"},
		{with(`"tool_choice":1`), "tool_choice"},
		{with(`"tool_choice":"required"`), "tool_choice"},
		{with(`"tool_choice":{"type":"allowed_tools"}`), "tool_choice.type"},
		{with(`"tool_choice":{"type":"function"}`), "tool_choice.function"},
		{with(`"tool_choice":{"type":"function","function":{}}`), "tool_choice.function.name"},
		{with(`"tools":[` + tool + `],"tool_choice":{"type":"function","function":{"name":"g"}}`), "tool_choice.function.name"},
		{with(`"parallel_tool_calls":"no"`), "parallel_tool_calls"},
		{with(`"stream":1`), "stream"},
		{with(`"stream_options":true`), "stream_options"},
		{with(`"stream_options":{"include_usage":1}`), "stream_options.include_usage"},
		{with(`"temperature":"hot"`), "temperature"},
		{with(`"temperature":1e999`), "temperature"},
		{with(`"top_p":[]`), "top_p"},
		{with(`"max_tokens":0`), "max_tokens"},
		{with(`"max_tokens":1.5`), "max_tokens"},
		{with(`"max_completion_tokens":5,"max_tokens":"x"`), "max_tokens"},
		{with(`"max_completion_tokens":-1`), "max_completion_tokens"},
		{with(`"seed":0.5`), "seed"},
		{with(`"stop":1`), "stop"},
		{with(`"stop":["a",1]`), "stop[1]"},
		{with(`"reasoning_effort":1`), "reasoning_effort"},
		{with(`"response_format":"json"`), "response_format"},
		{with(`"user":1`), "user"},
		{with(`"n":0`), "n"},
		{with(`"functions":[]`), "functions"},
		{with(`"function_call":"auto"`), "function_call"},
	} {
		req, err := ParseRequest([]byte(tt.body))
		var e *APIError
		if !errors.As(err, &e) || req != nil {
			t.Errorf("%.200s: got %v, %v", tt.body, req, err)
			continue
		}
		if e.Status != 400 || e.Param != tt.param || e.Message == "" || e.Type != "invalid_request_error" {
			t.Errorf("%.200s: got %+v, want param %q", tt.body, e, tt.param)
		}
	}
}

func TestParseRequestReads(t *testing.T) {
	t.Parallel()
	parse := func(body string) *ChatRequest {
		t.Helper()
		r, err := ParseRequest([]byte(body))
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		return r
	}
	r := parse(with(`"max_tokens":5,"max_completion_tokens":7,"stop":"x","tool_choice":"none","n":3,"temperature":null,"zeta":{"b":1,"a":2},"alpha":null,"metadata":{}`))
	if *r.Sampling.MaxTokens != 7 || !cmp.Equal(r.Sampling.Stop, []string{"x"}) || r.ToolChoice.Mode != "none" || r.N != 3 || r.Sampling.Temperature != nil {
		t.Errorf("got %+v", r)
	}
	want := []lathe.Member{{Name: "zeta", Value: json.RawMessage(`{"b":1,"a":2}`)}, {Name: "metadata", Value: json.RawMessage(`{}`)}}
	if d := cmp.Diff(want, r.Unknown); d != "" {
		t.Errorf("unknown (-want +got)\n%s", d)
	}
	if r := parse(with(`"max_completion_tokens":7,"max_tokens":5`)); *r.Sampling.MaxTokens != 7 {
		t.Errorf("max_completion_tokens counts, not the order: %d", *r.Sampling.MaxTokens)
	}

	m := parse(messages(`{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"refusal","refusal":"no"}],"reasoning":"hm","audio":{"id":"x"}},
		{"role":"assistant","content":""},
		{"role":"assistant","tool_calls":[{"id":"c","type":"function","index":0,"function":{"name":"f","arguments":null},"extra_content":1}]},
		{"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"name":"f"},
		{"role":"tool","tool_call_id":"nobody","content":"x"},
		{"role":"user","content":[{"type":"image_url","image_url":"https://e/x"},{"type":"video_url","video_url":{"url":"https://e/v","fps":2}},
			{"type":"image_url","image_url":{"url":"https://e/y"},"cache_control":{"type":"ephemeral"}},
			{"type":"image_url","image_url":{"url":"data:text/plain;charset=utf-8,hi"}}]}`)).Messages
	wantMessages := []lathe.Message{
		{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Reasoning{Text: "hm", Field: "reasoning"}, lathe.Text{Text: "a"}, lathe.Refusal{Text: "no"}},
			Extra: []lathe.Member{{Name: "audio", Value: json.RawMessage(`{"id":"x"}`)}}},
		{Role: lathe.RoleAssistant},
		{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.ToolCall{ID: "c", Name: "f", Extra: []lathe.Member{{Name: "extra_content", Value: json.RawMessage(`1`)}}}}},
		{Role: lathe.RoleTool, Name: "f", Parts: []lathe.Part{lathe.ToolResult{CallID: "c", Name: "f", Content: "ab"}}},
		{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: "nobody", Content: "x"}}},
		{Role: lathe.RoleUser, Parts: []lathe.Part{
			lathe.Blob{URL: "https://e/x", Raw: json.RawMessage(`{"type":"image_url","image_url":"https://e/x"}`)},
			lathe.Blob{MediaType: "video/*", URL: "https://e/v", Raw: json.RawMessage(`{"type":"video_url","video_url":{"url":"https://e/v","fps":2}}`)},
			lathe.Blob{URL: "https://e/y", Raw: json.RawMessage(`{"type":"image_url","image_url":{"url":"https://e/y"},"cache_control":{"type":"ephemeral"}}`)},
			lathe.Blob{URL: "data:text/plain;charset=utf-8,hi"},
		}},
	}
	if d := cmp.Diff(wantMessages, m); d != "" {
		t.Errorf("messages (-want +got)\n%s", d)
	}
}

// FuzzParseRequest wants what was read to be written as something that reads the same.
func FuzzParseRequest(f *testing.F) {
	for _, r := range requests() {
		f.Add(encode(r))
	}
	f.Add([]byte(with(`"max_tokens":5,"stop":"x","n":2,"x":{"a":[1]}`)))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := ParseRequest(body)
		if err != nil {
			var e *APIError
			if !errors.As(err, &e) || e.Status != 400 {
				t.Fatalf("error %v", err)
			}
			return
		}
		out := encode(r)
		if err := rawjson.Check(out, rawjson.Limits{MaxDepth: 80, MaxKeys: 1 << 20}); err != nil {
			t.Fatalf("%s\nis written as\n%s\n%v", body, out, err)
		}
		again, err := ParseRequest(out)
		if err != nil {
			t.Fatalf("%s\nis written as\n%s\n%v", body, out, err)
		}
		if third := encode(again); !bytes.Equal(out, third) {
			t.Fatalf("written twice:\n%s\n%s", out, third)
		}
	})
}

// FuzzParseAnswer wants no panic, and an answer that is written and read as the same answer.
func FuzzParseAnswer(f *testing.F) {
	for _, fin := range finishes() {
		f.Add([]byte(AppendCompletion(nil, &Completion{ID: "a", Model: "m", Finish: fin})))
	}
	f.Add([]byte(`{"error":{"message":"a","code":1}}`))
	f.Add([]byte(`{"choices":[{"message":{"content":[{"type":"image_url","image_url":{"url":"https://e"}}]}}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		ParseError(400, body)
		fin, err := ParseCompletion(body, nil)
		if err != nil {
			return
		}
		out := AppendCompletion(nil, &Completion{Finish: fin})
		if rawjson.Check(out, rawjson.Limits{MaxDepth: 1 << 20, MaxKeys: 1 << 20}) != nil && rawjson.Check(body, rawjson.Limits{}) == nil {
			t.Fatalf("%s\nis written as\n%s", body, out)
		}
		again, err := ParseCompletion(out, nil)
		if err != nil {
			t.Fatalf("%s\nis written as\n%s\n%v", body, out, err)
		}
		if got, want := again.Message.Text(), fin.Message.Text(); got != want {
			t.Fatalf("text %q, want %q", got, want)
		}
		if got, want := len(again.Message.Calls()), len(fin.Message.Calls()); got != want {
			t.Fatalf("%d calls, want %d", got, want)
		}
	})
}

// FuzzText wants one string, cut anywhere between its characters and escapes, to be the same text.
func FuzzText(f *testing.F) {
	f.Add([]byte("a\xF0\x9F\x98\x80\\ud83d\\ude00\xFF\\ud800x\\n"), uint(3))
	f.Add([]byte("0\xE2\x82"), uint(2))
	f.Fuzz(func(t *testing.T, body []byte, cut uint) {
		quoted := append(append([]byte{'"'}, body...), '"')
		if end, err := rawjson.Scan(quoted, 0); err != nil || end != len(quoted) {
			return
		}
		var whole, pieces text
		var d damage
		whole.add(body, &d)
		whole.flush(&d)
		want := whole.b.String()
		if got := string(rawjson.AppendUnquoteLossy(nil, quoted)); got != want {
			t.Fatalf("got %q, rawjson says %q", want, got)
		}
		at := int(cut % uint(len(body)+1))
		for i := 0; i < len(body); { // no cut within an escape
			n := 1
			if body[i] == '\\' {
				if n = 2; body[i+1] == 'u' {
					n = 6
				}
			}
			if i < at && at < i+n {
				at = i
			}
			i += n
		}
		got := pieces.add(body[:at], &d)
		got += pieces.add(body[at:], &d)
		got += pieces.flush(&d)
		if got != want {
			t.Fatalf("%q cut at %d is %q, want %q", body, at, got, want)
		}
	})
}

func ExampleParseRequest() {
	_, err := ParseRequest([]byte(`{"model":"m","messages":[{"role":"user","content":7}]}`))
	fmt.Println(err)
	fmt.Println(string(AppendError(nil, err.(*APIError))))
	// Output:
	// invalid_request_error (HTTP 400) at messages[0].content
	// {"error":{"message":"Must be a string or an array of parts.","type":"invalid_request_error","param":"messages[0].content","code":null}}
}

func ExampleAppendRequest() {
	req := &lathe.Request{Model: "m", Messages: []lathe.Message{lathe.User("What time is it?")}, Tools: []*lathe.ToolSpec{{Name: "now"}}}
	fmt.Println(string(AppendRequest(nil, req, &EncodeOptions{Stream: true})))
	// Output:
	// {"model":"m","stream":true,"tools":[{"type":"function","function":{"name":"now","parameters":{"type":"object","properties":{}}}}],"messages":[{"role":"user","content":"What time is it?"}]}
}

func ExampleAssembler() {
	a := NewAssembler(nil)
	for _, data := range []string{
		`{"choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"call_1","function":{"name":"add","arguments":"{\"a\":"}}]}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}}]}`,
		`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
		`[DONE]`,
	} {
		deltas, err := a.Append(nil, []byte(data))
		if err != nil {
			fmt.Println(err)
		}
		for _, d := range deltas {
			fmt.Printf("%d %q %q %q\n", d.Kind, d.ID, d.Name, d.Text)
		}
	}
	f, err := a.Finish(true)
	fmt.Println(f.Message.Calls()[0].Arguments, f.Reason, f.Faults, err)
	// Output:
	// 5 "call_1" "add" ""
	// 6 "" "" "{\"a\":"
	// 6 "" "" "1}"
	// 7 "" "" ""
	// {"a":1} tool_calls [{finish_reason_mismatch 1}] <nil>
}

func ExampleChunkWriter() {
	w := newChunkWriter("1", false)
	var out []byte
	out = w.AppendDelta(out, lathe.Delta{Kind: lathe.DeltaText, Text: "Hi"})
	out = w.AppendDelta(out, lathe.Delta{Kind: lathe.DeltaFinish, Finish: &lathe.Finish{Reason: lathe.FinishStop}})
	fmt.Print(string(out))
	// Output:
	// data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}
	//
	// data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"Hi"},"logprobs":null,"finish_reason":null}]}
	//
	// data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}
	//
	// data: [DONE]
}
