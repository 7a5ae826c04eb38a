package responses

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

func TestAppendRequestOfAnotherWire(t *testing.T) {
	seed, stop, k, budget := int64(1), []string{"x"}, 5, 100
	yes := true
	req := &lathe.Request{Model: "m", User: "u", ToolChoice: lathe.ToolChoice{Mode: "function", Name: "f"}, ParallelToolCalls: &yes,
		Sampling: lathe.Sampling{Seed: &seed, Stop: stop, TopK: &k, ReasoningBudget: &budget, ResponseFormat: []byte(`{"type":"json_object"}`)},
		Messages: []lathe.Message{
			{Role: "system", Parts: []lathe.Part{lathe.Text{Text: "sys"}}},
			{Role: "user", Name: "ann", Parts: []lathe.Part{lathe.Text{Text: "hi", Extra: []lathe.Member{{Name: "cache_control", Value: []byte("{}")}}}, lathe.Blob{URL: "https://x.example/i", Raw: []byte(`{"type":"image_url"}`)}, lathe.Blob{MediaType: "audio/wav", Data: []byte{1}}}},
			{Role: "assistant", Extra: []lathe.Member{{Name: "odd", Value: []byte("1")}}, Parts: []lathe.Part{lathe.Reasoning{Text: "hm", Field: "thinking", Data: "sig"}, lathe.Text{Text: "pre", Commentary: true}, lathe.Text{Text: "post"}, lathe.Refusal{Text: "no"},
				lathe.ToolCall{ID: strings.Repeat("i", 70), Name: "f", Arguments: "```json\n{\"a\": 1}\n```"}, lathe.ToolCall{ID: "b", Name: "we ird", Arguments: "oops"}}},
			{Role: "tool", Parts: []lathe.Part{lathe.ToolResult{CallID: strings.Repeat("i", 70), Content: "1", IsError: true}}},
			{Role: "tool", Parts: []lathe.Part{lathe.ToolResult{CallID: "b", Content: "2", Blobs: []lathe.Blob{{MediaType: "application/pdf", Name: "a.pdf", Data: []byte("x")}}}}},
			{Role: "system", Parts: []lathe.Part{lathe.Text{Text: "late"}}},
		},
		Tools: []*lathe.ToolSpec{
			{Name: "f", Description: "d", Schema: []byte(`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}`), Extra: []lathe.Member{{Name: "function", Value: []byte(`{"strict":true}`)}}},
			{Name: "g", Schema: []byte(`{"type": "object","properties":{"a":{"type":"integer"}}}`), Wire: lathe.WireMessages, Extra: []lathe.Member{{Name: "strict", Value: []byte("true")}, {Name: "cache_control", Value: []byte("{}")}}},
			{Name: "h"},
		},
		HostedTools: []json.RawMessage{[]byte(`{"type":"web_search"}`)},
		Overrides:   []lathe.Member{{Name: "input", Value: []byte(`"x"`)}, {Name: "truncation", Value: []byte(`"auto"`)}, {Name: "text", Value: []byte(`{"format":{"type":"text"},"verbosity":"low"}`)}, {Name: "include", Value: []byte(`["message.output_text.logprobs"]`)}},
	}
	body, dropped := Codec{}.AppendRequest(nil, req, &wire.EncodeOptions{Stream: true})
	id := wire.ShortID("call_", strings.Repeat("i", 70), maxID)
	odd := joinName("", "we ird")
	want := `{"model":"m","stream":true,"store":false,"include":["message.output_text.logprobs","reasoning.encrypted_content"],"text":{"format":{"type":"json_object"},"verbosity":"low"},` +
		`"tools":[{"type":"function","name":"f","description":"d","parameters":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false},"strict":true},` +
		`{"type":"function","name":"g","parameters":{"type":"object","properties":{"a":{"type":"integer"}}},"strict":false},{"type":"function","name":"h","parameters":{"type":"object","properties":{}},"strict":false},{"type":"web_search"}],` +
		`"tool_choice":{"type":"function","name":"f"},"parallel_tool_calls":true,"user":"u","truncation":"auto","instructions":"sys","input":[` +
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"},{"type":"input_image","image_url":"https://x.example/i"}]},` +
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"pre","annotations":[]}],"phase":"commentary"},` +
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"post","annotations":[]},{"type":"refusal","refusal":"no"}]},` +
		`{"type":"function_call","call_id":"` + id + `","name":"f","arguments":"{\"a\": 1}"},{"type":"function_call","call_id":"b","name":"` + odd + `","arguments":"{}"},` +
		`{"type":"function_call_output","call_id":"` + id + `","output":"1"},` +
		`{"type":"function_call_output","call_id":"b","output":[{"type":"input_text","text":"2"},{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,eA=="}]},` +
		`{"type":"message","role":"system","content":"late"}]}`
	if string(body) != want {
		t.Errorf("got  %s\nwant %s", body, want)
	}
	if d := cmp.Diff([]string{"sampling.seed", "sampling.stop", "sampling.top_k", "sampling.reasoning_budget", "tools[1].strict", "tools[1].cache_control", "messages[1].name",
		"messages[1].parts[0].cache_control", "messages[1].parts[2]", "messages[2].odd", "messages[2].parts[0]"}, dropped); d != "" {
		t.Error(d)
	}
	again, _ := Codec{}.AppendRequest(nil, req, &wire.EncodeOptions{Stream: true})
	if !bytes.Equal(body, again) {
		t.Error("W16: the same request gives other bytes")
	}
	for n := 2; n < len(req.Messages); n++ { // prefixes stay for the caches of vendors
		shorter := *req
		shorter.Messages = req.Messages[:n]
		body, _ := Codec{}.AppendRequest(nil, &shorter, &wire.EncodeOptions{Stream: true})
		if !strings.HasPrefix(want, strings.TrimSuffix(string(body), "]}")) {
			t.Errorf("with %d messages: %s", n, body)
		}
	}
}

// TestW26_ReasoningReturnsToItsModelAlone: opaque data goes back byte for byte, and to no other entry.
func TestW26_ReasoningReturnsToItsModelAlone(t *testing.T) {
	message := func(w lathe.Wire, entry string) *lathe.Request {
		return &lathe.Request{Model: "m", Messages: []lathe.Message{{Role: "assistant", Wire: w, Parts: []lathe.Part{lathe.Reasoning{Text: "t", Field: "encrypted_content", Data: "gA=\"é", ID: "rs_1", Entry: entry}, lathe.ToolCall{ID: "c", Name: "f"}}}}}
	}
	const item = `[{"type":"reasoning","summary":[{"type":"summary_text","text":"t"}],"encrypted_content":"gA=\"é"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]`
	for _, c := range []struct {
		req     *lathe.Request
		without []string
		sent    bool
	}{
		{message(lathe.WireResponses, "mine"), nil, true}, {message(lathe.WireResponses, ""), nil, true},
		{message(lathe.WireResponses, "other"), nil, false}, {message(lathe.WireMessages, "mine"), nil, false}, {message("", "mine"), nil, false},
		{message(lathe.WireResponses, "mine"), []string{featureEncrypted}, false},
	} {
		body, dropped := Codec{}.AppendRequest(nil, c.req, &wire.EncodeOptions{Entry: "mine", Without: c.without})
		if got := string(get(body, "input")) == item; got != c.sent || strings.Contains(string(body), "gA=") != c.sent || (len(dropped) == 0) != c.sent {
			t.Errorf("%s %v", body, dropped)
		}
		if asked := get(body, "include") != nil; asked != (c.without == nil) {
			t.Errorf("%s", body)
		}
	}
}

func TestRefused(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":{"message":"Encrypted content is not supported with this model.","type":"invalid_request_error","param":"include","code":null}}`: featureEncrypted,
		`{"error":{"message":"The encrypted content gAAA could not be verified.","code":"invalid_encrypted_content"}}`:                             wire.FeatureBound,
		`{"error":{"message":"Input tag 'custom' found using 'type' does not match","param":"tools[0].type"}}`:                                     featureCustom,
		`{"error":{"message":"Unknown model"}}`: "",
	} {
		if got := (Codec{}).Refused(Codec{}.ParseError(400, []byte(body))); got != want {
			t.Errorf("%s: %q", body, got)
		}
	}
	if (Codec{}).Refused(&wire.APIError{Status: 500, Message: "Encrypted content is not supported"}) != "" {
		t.Error("a server's failure is no refusal")
	}
}

func TestParseError(t *testing.T) {
	for body, want := range map[string]wire.APIError{
		`{"error":{"message":"m","type":"t","param":"p","code":"c"}}`:                                     {Message: "m", Type: "t", Param: "p", Code: "c"},
		`{"type":"error","sequence_number":2,"error":{"type":"t","code":"c","message":"m","param":null}}`: {Message: "m", Type: "t", Code: "c"},
		`{"type":"error","code":"c","message":"m","param":"p"}`:                                           {Message: "m", Code: "c", Param: "p"},
		`{"type":"error","status":400,"error":{"code":429,"message":"m"}}`:                                {Message: "m", Code: "429", Status: 429},
		`{"type":"response.failed","response":{"error":{"code":"server_error","message":"m"}}}`:           {Message: "m", Code: "server_error"},
		`<html>`: {Message: "the server answered with an HTML page"},
	} {
		if d := cmp.Diff(&want, Codec{}.ParseError(0, []byte(body))); d != "" {
			t.Errorf("%s\n%s", body, d)
		}
	}
	if e := (Codec{}).ParseError(429, []byte(`{"error":{"message":"m"}}`)); e.Status != 429 {
		t.Errorf("%+v", e)
	}
}

func TestAppendRelayedChangesNothingElse(t *testing.T) {
	no := false
	tool := []*lathe.ToolSpec{{Name: "f"}}
	for _, c := range []struct {
		body, want string
		req        lathe.Request
		opts       wire.EncodeOptions
	}{
		{`{ "model" : "a", "input":"x", "store" : false , "odd":1.0}`, `{ "model" : "b", "input":"x", "store" : false , "odd":1.0}`, lathe.Request{Model: "b"}, wire.EncodeOptions{}},
		{`{"model":"a","input":"x","include":["z"]}`, `{"model":"a","input":"x","include":["z","reasoning.encrypted_content"],"store":false}`, lathe.Request{Model: "a"}, wire.EncodeOptions{}},
		{`{"model":"a","input":"x","include":["reasoning.encrypted_content"],"store":false}`, `{"model":"a","input":"x","include":[],"store":false}`, lathe.Request{Model: "a"}, wire.EncodeOptions{Without: []string{featureEncrypted}}},
		{`{"model":"a","store":true,"text":{"format":{"type":"text"},"verbosity":"high"}}`, `{"model":"a","store":true,"text":{"format":{"type":"text"},"verbosity":"low"},"include":["reasoning.encrypted_content"]}`, lathe.Request{Model: "a",
			Overrides: []lathe.Member{{Name: "store", Value: []byte("true")}, {Name: "text", Value: []byte(`{"verbosity":"low"}`)}, {Name: "include", Value: []byte(`["reasoning.encrypted_content"]`)}, {Name: "input", Value: []byte("1")}}}, wire.EncodeOptions{}},
		{`{"model":"a","store":false,"tools":[{"type":"function","name":"f"}],"tool_choice":{"type":"function","name":"f"}}`, `{"model":"a","store":false,"tools":[{"type":"function","name":"f"}],"tool_choice":"auto","parallel_tool_calls":false}`,
			lathe.Request{Model: "a", Tools: tool, ToolChoice: lathe.ToolChoice{Mode: "auto"}, ParallelToolCalls: &no}, wire.EncodeOptions{}},
		{`{"model":"a","store":false,"tool_choice":{"type":"function","name":"f"}}`, `{"model":"a","store":false,"tool_choice":{"type":"function","name":"f"}}`,
			lathe.Request{Model: "a", Tools: tool, ToolChoice: lathe.ToolChoice{Mode: "function", Name: "f"}}, wire.EncodeOptions{}},
	} {
		if got := string(Codec{}.AppendRelayed(nil, []byte(c.body), &c.req, &c.opts)); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// TestW24_ReasonsInBothDirections: a refusal is text, a filter and a limit end an answer early, and calls come from the content.
func TestW24_ReasonsInBothDirections(t *testing.T) {
	const call = `{"type":"function_call","call_id":"c","name":"f","arguments":"{}","status":"completed"}`
	const refusal = `{"type":"message","content":[{"type":"refusal","refusal":"no"}]}`
	for _, c := range []struct {
		status, reason, output string
		want                   lathe.FinishReason
		raw                    string
	}{
		{"completed", "", refusal, lathe.FinishStop, "completed"},
		{"completed", "", call, lathe.FinishToolCalls, "completed"},
		{"completed", "", "", lathe.FinishStop, "completed"},
		{"incomplete", "max_output_tokens", call, lathe.FinishLength, "max_output_tokens"},
		{"incomplete", "content_filter", "", lathe.FinishContentFilter, "content_filter"},
		{"incomplete", "steered", "", lathe.FinishUnknown, "steered"},
		{"incomplete", "steered", call, lathe.FinishToolCalls, "steered"},
	} {
		_, f, err := Codec{}.NewAssembler(nil).Complete(nil, fmt.Appendf(nil, `{"status":%q,"incomplete_details":{"reason":%q},"output":[%s]}`, c.status, c.reason, c.output))
		if err != nil || f.Reason != c.want || f.RawReason != c.raw {
			t.Errorf("%+v: %+v %v", c, f, err)
			continue
		}
		whole := wire.AppendAnswer(nil, Codec{}, &wire.Answer{AnswerHead: *testHead(t, `{"model":"m","input":"x"}`), Finish: f})
		_, g, err := Codec{}.NewAssembler(nil).Complete(nil, whole)
		if err != nil || g.Reason != f.Reason && f.Reason != lathe.FinishUnknown {
			t.Errorf("%+v became %+v", f, g)
		}
	}
}

func TestW10_UsageInBothDirections(t *testing.T) {
	u := lathe.Usage{InputTokens: 120, OutputTokens: 64, TotalTokens: 190, CachedTokens: 100, CacheWriteTokens: 7, ReasoningTokens: 20}
	if got, bad := readUsage(appendUsage(nil, &u)); got != u || bad != 0 {
		t.Errorf("%+v", got)
	}
	if got, bad := readUsage([]byte(`{"input_tokens":1,"output_tokens":-2,"input_tokens_details":{"cached_tokens":"x"}}`)); got != (lathe.Usage{InputTokens: 1, TotalTokens: 1}) || bad != 2 {
		t.Errorf("%+v %d", got, bad)
	}
}
