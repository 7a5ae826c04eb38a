package uistream_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/wire/uistream"
)

func parse(t *testing.T, body string) *uistream.Request {
	t.Helper()
	req, err := uistream.ParseRequest([]byte(body), nil)
	if err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return req
}

// story writes a history so that a test can read it.
func story(messages []lathe.Message) string {
	var b strings.Builder
	for i := range messages {
		fmt.Fprintf(&b, "%s:", messages[i].Role)
		for _, p := range messages[i].Parts {
			switch p := p.(type) {
			case lathe.Text:
				fmt.Fprintf(&b, " %q", p.Text)
				if p.Commentary {
					b.WriteString("(commentary)")
				}
			case lathe.Reasoning:
				fmt.Fprintf(&b, " reasoning %q", p.Text)
			case lathe.Blob:
				fmt.Fprintf(&b, " blob %s %s %q", p.MediaType, p.URL, p.Data)
			case lathe.ToolCall:
				fmt.Fprintf(&b, " call %s %s %s", p.ID, p.Name, p.Arguments)
			case lathe.ToolResult:
				fmt.Fprintf(&b, " result %s %s %s %s", p.CallID, p.Name, p.Code, p.Content)
			case lathe.Refusal:
				fmt.Fprintf(&b, " refusal %q", p.Text)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestParseRequestRebuildsHistory(t *testing.T) {
	t.Parallel()
	interrupted := `{"ok":false,"error":{"code":"interrupted","message":"The call was interrupted before its result was known."}}`
	for _, tt := range []struct{ name, body, want string }{
		{"UI messages of one step", `{"id":"c","messages":[{"id":"u","role":"user","parts":[{"type":"text","text":"hi"}]}]}`, "user: \"hi\"\n"},
		{"steps are turns", `{"messages":[{"role":"user","parts":[{"type":"text","text":"q"}]},{"id":"a","role":"assistant","metadata":{"runId":"run_1"},"parts":[
			{"type":"step-start"},{"type":"reasoning","text":"hm"},{"type":"text","text":"wait","providerMetadata":{"lathe":{"commentary":true}}},
			{"type":"tool-w","toolCallId":"1","state":"output-available","input":{"city": "Oslo"},"output":{"t":20}},
			{"type":"dynamic-tool","toolName":"x","toolCallId":"2","state":"output-error","input":{},"errorText":"timeout: too long"},
			{"type":"step-start"},{"type":"text","text":"20"},{"type":"data-x","data":1},{"type":"source-url","url":"https://x","sourceId":"s"}]}]}`,
			"user: \"q\"\nassistant: \"wait\"(commentary) call 1 w {\"city\": \"Oslo\"} call 2 x {}\ntool: result 1 w  {\"t\":20}\n" +
				"tool: result 2 x timeout {\"ok\":false,\"error\":{\"code\":\"timeout\",\"message\":\"too long\"}}\nassistant: \"20\"\n"},
		{"text after results without steps", `{"messages":[{"role":"assistant","parts":[{"type":"tool-w","toolCallId":"1","state":"output-available","input":{},"output":"s"},{"type":"text","text":"20"}]}]}`,
			"assistant: call 1 w {}\ntool: result 1 w  s\nassistant: \"20\"\n"},
		{"incomplete calls", `{"messages":[{"role":"assistant","parts":[{"type":"tool-w","toolCallId":"1","state":"input-streaming"},{"type":"tool-w","toolCallId":"2","state":"input-available","input":"{\"bad"},
			{"type":"tool-w","toolCallId":"3","state":"approval-responded","input":{},"approval":{"id":"d","approved":false}},{"type":"tool-w","toolCallId":"4","state":"output-denied","input":{},"approval":{"id":"e","approved":false}}]},{"role":"user","parts":[{"type":"text","text":"go on"}]}]}`,
			"assistant: call 1 w {} call 2 w {\"bad call 3 w {} call 4 w {}\ntool: result 1 w interrupted " + interrupted + "\ntool: result 2 w interrupted " + interrupted +
				"\ntool: result 3 w approval_denied {\"ok\":false,\"error\":{\"code\":\"approval_denied\",\"message\":\"A person did not allow this call.\"}}" +
				"\ntool: result 4 w approval_denied {\"ok\":false,\"error\":{\"code\":\"approval_denied\",\"message\":\"A person did not allow this call.\"}}\nuser: \"go on\"\n"},
		{"files", `{"messages":[{"role":"user","parts":[{"type":"text","text":"see"},{"type":"file","mediaType":"image/png","url":"data:image/png;base64,aGk=","filename":"a.png"},{"type":"file","mediaType":"image/png","url":"https://x/y.png"}]}]}`,
			"user: \"see\" blob image/png  \"hi\" blob image/png https://x/y.png \"\"\n"},
		{"model messages", `{"system":"be kind","messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"text","text":"w"},{"type":"tool-call","toolCallId":"1","toolName":"w","args":{"a":1}},{"type":"tool-call","toolCallId":"2","toolName":"w","args":{}}]},
			{"role":"tool","content":[{"type":"tool-result","toolCallId":"2","toolName":"w","result":"second"}]},{"role":"tool","content":[{"type":"tool-result","toolCallId":"1","toolName":"w","output":{"type":"error-text","value":"broke"}}]},{"role":"assistant","content":"done"}]}`,
			"system: \"be kind\"\nuser: \"q\"\nassistant: \"w\" call 1 w {\"a\":1} call 2 w {}\ntool: result 1 w execution_failed {\"ok\":false,\"error\":{\"code\":\"execution_failed\",\"message\":\"broke\"}}\ntool: result 2 w  second\nassistant: \"done\"\n"},
		{"AG-UI", `{"threadId":"t","runId":"r","messages":[{"id":"1","role":"user","content":"q"},{"id":"2","role":"assistant","content":null,"toolCalls":[{"id":"c1","type":"function","function":{"name":"w","arguments":"{\"a\": 1}"}}]},
			{"id":"3","role":"tool","toolCallId":"c1","content":"{\"t\":20}"},{"id":"4","role":"reasoning","content":"hm"}],"tools":[{"name":"ask","description":"asks","parameters":{"type":"object"}}],"context":[],"state":{},"forwardedProps":{}}`,
			"user: \"q\"\nassistant: call c1 w {\"a\": 1}\ntool: result c1 w  {\"t\":20}\n"},
	} {
		if diff := cmp.Diff(tt.want, story(parse(t, tt.body).Messages)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestParseRequestSaysWhatWaits(t *testing.T) {
	t.Parallel()
	head := `{"messages":[{"role":"user","parts":[{"type":"text","text":"q"}]},{"id":"m1","role":"assistant","metadata":{"runId":"run_1"},"parts":[{"type":"step-start"},`
	approved := head + `{"type":"tool-w","toolCallId":"1","state":"approval-responded","input":{},"approval":{"id":"d1","approved":true}},
		{"type":"tool-mine","toolCallId":"2","state":"output-available","input":{},"output":{"a":1}}]}]}`
	w := parse(t, approved).Last
	if w == nil || w.RunID != "run_1" || w.MessageID != "m1" || len(w.Calls) != 2 {
		t.Fatalf("got %+v", w)
	}
	if want := []uistream.Approval{{ID: "d1", CallID: "1", Approved: true}}; !cmp.Equal(w.Approvals, want) {
		t.Errorf("approvals: %+v", w.Approvals)
	}
	if got := string(w.Results["2"].Data); got != `{"a":1}` {
		t.Errorf("result: %s", got)
	}
	if w := parse(t, strings.Replace(approved, `]}]}`, `]},{"role":"user","parts":[{"type":"text","text":"never mind"}]}]}`, 1)).Last; w != nil {
		t.Errorf("after the next word of the user: %+v", w)
	}
	ag := parse(t, `{"threadId":"t","runId":"r","messages":[{"role":"assistant","toolCalls":[{"id":"c1","function":{"name":"w","arguments":"{}"}}]}],"resume":[{"interruptId":"d1","status":"resolved"},{"interruptId":"d2","status":"cancelled"},{"interruptId":"d3","status":"resolved","payload":{"approved":false}}]}`)
	want := []uistream.Approval{{ID: "d1", Approved: true}, {ID: "d2"}, {ID: "d3"}}
	if ag.Last == nil || !cmp.Equal(ag.Last.Approvals, want) {
		t.Errorf("AG-UI: %+v", ag.Last)
	}
}

func TestParseRequestRefuses(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("é", n) }
	user := func(parts string) string { return `{"messages":[{"role":"user","parts":[` + parts + `]}]}` }
	bot := func(parts string) string { return `{"messages":[{"role":"assistant","parts":[` + parts + `]}]}` }
	call := func(id, name, args, output string) string {
		return bot(`{"type":"dynamic-tool","toolName":"` + name + `","toolCallId":"` + id + `","state":"output-available","input":` + args + `,"output":` + output + `}`)
	}
	text := func(n int) string { return `"` + long(n) + `"` }
	args := func(n int) string { return `{"a":"` + long(n-8) + `"}` }
	for _, tt := range []struct{ name, ok, bad, param, limit string }{
		{"text", user(`{"type":"text","text":` + text(1_000_000) + `}`), user(`{"type":"text","text":` + text(1_000_001) + `}`), "messages[0].parts[0].text", "max_text"},
		{"call id", call(long(128), "w", "{}", "1"), call(long(129), "w", "{}", "1"), "messages[0].parts[0].toolCallId", "max_id"},
		{"no call id", call("1", "w", "{}", "1"), call("", "w", "{}", "1"), "messages[0].parts[0].toolCallId", ""},
		{"tool name", call("1", long(64), "{}", "1"), call("1", long(65), "{}", "1"), "messages[0].parts[0].toolName", "max_tool_name"},
		{"arguments", call("1", "w", args(8192), "1"), call("1", "w", args(8193), "1"), "messages[0].parts[0].input", "max_args"},
		{"result", call("1", "w", "{}", args(32768)), call("1", "w", "{}", args(32769)), "messages[0].parts[0].output", "max_result"},
		{"message id", `{"messages":[{"id":"` + long(128) + `","role":"user","content":"x"}]}`, `{"messages":[{"id":"` + long(129) + `","role":"user","content":"x"}]}`, "messages[0].id", "max_id"},
		{"finite arguments", call("1", "w", `{"a":1e308}`, "1"), call("1", "w", `{"a":1e309}`, "1"), "messages[0].parts[0].input", ""},
		{"finite result", call("1", "w", `{}`, "-1e308"), call("1", "w", `{}`, "-1e309"), "messages[0].parts[0].output", ""},
		{"state key", `{"stateKey":"` + strings.Repeat("a", 512) + `","messages":[{"role":"user","content":"x"}]}`, `{"stateKey":"` + strings.Repeat("a", 513) + `","messages":[{"role":"user","content":"x"}]}`, "stateKey", "max_state_key"},
		{"state key characters", `{"stateKey":"a.b_c:d-1","messages":[{"role":"user","content":"x"}]}`, `{"stateKey":"a/b","messages":[{"role":"user","content":"x"}]}`, "stateKey", ""},
		{"role", `{"messages":[{"role":"user","content":"x"}]}`, `{"messages":[{"role":"boss","content":"x"}]}`, "messages[0].role", ""},
		{"unknown result", `{"messages":[{"role":"assistant","content":[{"type":"tool-call","toolCallId":"1","toolName":"w","args":{}}]},{"role":"tool","content":[{"type":"tool-result","toolCallId":"1","result":1}]}]}`,
			`{"messages":[{"role":"assistant","content":[{"type":"tool-call","toolCallId":"1","toolName":"w","args":{}}]},{"role":"tool","content":[{"type":"tool-result","toolCallId":"2","result":1}]}]}`, "messages[1].content[0].toolCallId", ""},
		{"duplicate result", `{"messages":[{"role":"assistant","content":[{"type":"tool-call","toolCallId":"1","toolName":"w","args":{}}]},{"role":"tool","content":[{"type":"tool-result","toolCallId":"1","result":1}]}]}`,
			`{"messages":[{"role":"assistant","content":[{"type":"tool-call","toolCallId":"1","toolName":"w","args":{},"result":1}]},{"role":"tool","content":[{"type":"tool-result","toolCallId":"1","result":1}]}]}`, "messages[1].content[0].toolCallId", ""},
		{"duplicate call", call("1", "w", "{}", "1"), bot(`{"type":"tool-w","toolCallId":"1","state":"input-available"},{"type":"tool-w","toolCallId":"1","state":"input-available"}`), "messages[0].parts[1].toolCallId", ""},
		{"state", call("1", "w", "{}", "1"), bot(`{"type":"tool-w","toolCallId":"1","state":"odd"}`), "messages[0].parts[0].state", ""},
		{"part of a user", user(`{"type":"text","text":"x"}`), user(`{"type":"tool-w","toolCallId":"1","state":"input-available"}`), "messages[0].parts[0].type", ""},
		{"part of the assistant", bot(`{"type":"text","text":"x"}`), bot(`{"type":"odd"}`), "messages[0].parts[0].type", ""},
		{"file", user(`{"type":"file","mediaType":"a/b","url":"https://x"}`), user(`{"type":"file","mediaType":"a/b","url":"file:///etc/passwd"}`), "messages[0].parts[0].url", ""},
		{"nothing", `{"messages":[{"role":"user","content":"x"}]}`, `{"messages":[]}`, "messages", ""},
		{"twice", `{"messages":[{"role":"user","content":"x"}]}`, `{"messages":[],"messages":[{"role":"user","content":"x"}]}`, "body", ""},
		{"system is text", `{"messages":[{"role":"system","content":"s"}]}`, `{"messages":[{"role":"system","content":[{"type":"file","url":"https://x"}]}]}`, "messages[0].content[0].type", ""},
	} {
		parse(t, tt.ok)
		_, err := uistream.ParseRequest([]byte(tt.bad), nil)
		var bad *uistream.RequestError
		if !errors.As(err, &bad) || bad.Param != tt.param || bad.Limit != tt.limit {
			t.Errorf("%s: got %v (%+v), want param %s, limit %q", tt.name, err, bad, tt.param, tt.limit)
			continue
		}
		if tt.limit != "" && !strings.Contains(bad.Message, tt.limit) {
			t.Errorf("%s: the text does not name the limit: %s", tt.name, bad.Message)
		}
	}
}

// What a page makes of a stream and sends back is the history that the run had.
func TestStreamAndRequestAreInverse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		want := []lathe.Message{lathe.User("q")}
		r := &recorder{}
		r.tell(&event.RunStarted{})
		n := 0
		for range rapid.IntRange(1, 3).Draw(rt, "turns") {
			r.turn++
			m := lathe.Message{Role: lathe.RoleAssistant}
			for i := range rapid.IntRange(0, 3).Draw(rt, "texts") {
				m.Parts = append(m.Parts, lathe.Text{Text: rapid.StringN(1, 20, -1).Draw(rt, "text"), Commentary: i%2 == 1})
			}
			var answers []lathe.Message
			r.tell(&event.ModelCallStarted{Attempt: 1})
			finished := &event.ModelCallFinished{Status: "success", Message: &m}
			r.tell(finished)
			for range rapid.IntRange(0, 3).Draw(rt, "calls") {
				n++
				c := lathe.ToolCall{ID: fmt.Sprint("call_", n), Name: rapid.SampledFrom([]string{"weather", "x_1", "a-b"}).Draw(rt, "name"),
					Arguments: rapid.SampledFrom([]string{"{}", `{"a":[1,2.50,"é\u0000"]}`, "{", "nonsense", `"text"`, "[1]", `{"a": 1}`, `{"a":1e999}`}).Draw(rt, "args")}
				m.Parts = append(m.Parts, c)
				a := lathe.ToolResult{CallID: c.ID, Name: c.Name, Content: rapid.SampledFrom([]string{`{"t":20}`, "text", `"quoted"`, "null", "[ 1 ]", "1e999", "", "\n"}).Draw(rt, "result")}
				d := &event.ToolCallResult{ToolCallID: c.ID, Tool: c.Name, Status: "ok", Result: a.Content}
				if rapid.Bool().Draw(rt, "failed") {
					a.IsError, a.Code = true, rapid.SampledFrom([]lathe.Code{lathe.CodeTimeout, lathe.CodeInvalidArguments}).Draw(rt, "code")
					a.Content = `{"ok":false,"error":{"code":"` + string(a.Code) + `","message":"m: n"` + rapid.SampledFrom([]string{"", `,"detail":[1]`}).Draw(rt, "detail") + "}}"
					d.Status, d.ErrorType, d.Message, d.Result = "error", a.Code, "m: n", a.Content
				}
				r.tell(&event.ToolCallProposed{ToolCallID: c.ID, ToolName: c.Name, RawName: c.Name, RawArgs: c.Arguments}, &event.ToolCallPlanned{ToolCallID: c.ID, Tool: c.Name}, d)
				answers = append(answers, lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{a}})
			}
			if len(m.Parts) > 0 {
				want = append(append(want, m), answers...)
			}
		}
		r.tell(&event.RunFinished{Reason: lathe.ReasonAnswered})
		page := []any{frame{"id": "u", "role": "user", "parts": []any{frame{"type": "text", "text": "q"}}}, page(encode(uistream.UIMessages, nil, r.events))}
		body, err := json.Marshal(frame{"messages": page})
		if err != nil {
			rt.Fatal(err)
		}
		req, err := uistream.ParseRequest(body, nil)
		if err != nil {
			rt.Fatalf("%v: %s", err, body)
		}
		if a, b := valued(story(joinTexts(want))), valued(story(joinTexts(req.Messages))); a != b {
			rt.Fatalf("(-want +got):\n%s\n%s", cmp.Diff(a, b), body)
		}
	})
}

// valued takes the white space and the spelling of numbers out of arguments.
func valued(s string) string {
	return strings.NewReplacer(`{"a": 1}`, `{"a":1}`, "2.50", "2.5", `é\u0000`, "é\\u0000").Replace(s)
}

// joinTexts joins texts side by side, which a stream tells as one.
func joinTexts(in []lathe.Message) []lathe.Message {
	var out []lathe.Message
	for _, m := range in {
		var parts []lathe.Part
		for _, p := range m.Parts {
			if t, ok := p.(lathe.Text); ok && len(parts) > 0 {
				if last, ok := parts[len(parts)-1].(lathe.Text); ok && last.Commentary == t.Commentary {
					parts[len(parts)-1] = lathe.Text{Text: last.Text + t.Text, Commentary: t.Commentary}
					continue
				}
			}
			parts = append(parts, p)
		}
		m.Parts = parts
		out = append(out, m)
	}
	return out
}

// page makes the message of a stream as the AI SDK does.
func page(stream []byte) frame {
	all, _, _ := frames(stream)
	m := frame{"id": "a", "role": "assistant"}
	var parts []frame
	tool := func(id string) frame {
		for i := len(parts) - 1; i >= 0; i-- {
			if parts[i]["toolCallId"] == id {
				return parts[i]
			}
		}
		return nil
	}
	for _, f := range all {
		id := f.s("toolCallId")
		switch f.s("type") {
		case "start":
			m["id"], m["metadata"] = f["messageId"], f["messageMetadata"]
		case "start-step":
			parts = append(parts, frame{"type": "step-start"})
		case "text-start", "reasoning-start":
			p := frame{"type": strings.TrimSuffix(f.s("type"), "-start"), "text": "", "state": "streaming"}
			if f["providerMetadata"] != nil {
				p["providerMetadata"] = f["providerMetadata"]
			}
			parts = append(parts, p)
		case "text-delta", "reasoning-delta":
			last := parts[len(parts)-1]
			last["text"] = last.s("text") + f.s("delta")
		case "tool-input-start":
			parts = append(parts, frame{"type": "tool-" + f.s("toolName"), "toolCallId": id, "state": "input-streaming"})
		case "tool-input-available":
			p := tool(id)
			p["state"], p["input"] = "input-available", f["input"]
		case "tool-approval-request":
			p := tool(id)
			p["state"], p["approval"] = "approval-requested", frame{"id": f["approvalId"]}
		case "tool-output-available":
			p := tool(id)
			p["state"], p["output"] = "output-available", f["output"]
		case "tool-output-error":
			p := tool(id)
			p["state"], p["errorText"] = "output-error", f["errorText"]
		case "tool-output-denied":
			tool(id)["state"] = "output-denied"
		}
	}
	m["parts"] = parts
	return m
}

func FuzzParseRequest(f *testing.F) {
	f.Add(`{"messages":[{"role":"user","parts":[{"type":"text","text":"q"}]},{"id":"a","role":"assistant","parts":[{"type":"step-start"},{"type":"tool-w","toolCallId":"1","state":"output-available","input":{},"output":{"t":20}},{"type":"text","text":"x"}]}]}`)
	f.Add(`{"threadId":"t","runId":"r","messages":[{"role":"assistant","toolCalls":[{"id":"c1","function":{"name":"w","arguments":"{}"}}]},{"role":"tool","toolCallId":"c1","content":"x"}],"tools":{"a":{"parameters":{}}},"resume":[{"interruptId":"d"}]}`)
	f.Add(`{"messages":[{"role":"assistant","content":[{"type":"tool-call","toolCallId":"1","toolName":"w","args":{}}]},{"role":"tool","content":[{"type":"tool-result","toolCallId":"1","output":{"type":"json","value":1}}]}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		req, err := uistream.ParseRequest([]byte(body), &uistream.ParseOptions{KeepReasoning: true})
		if err != nil {
			var bad *uistream.RequestError
			if !errors.As(err, &bad) || bad.Param == "" || bad.Message == "" {
				t.Fatalf("%v", err)
			}
			return
		}
		var open []string
		for _, m := range req.Messages {
			if len(m.Parts) == 0 || len(open) > 0 && m.Role != lathe.RoleTool {
				t.Fatalf("%s", story(req.Messages))
			}
			for _, p := range m.Parts {
				switch p := p.(type) {
				case lathe.ToolCall:
					open = append(open, p.ID)
				case lathe.ToolResult:
					if len(open) == 0 || open[0] != p.CallID {
						t.Fatalf("%s", story(req.Messages))
					}
					open = open[1:]
				default: // texts and files are anywhere
				}
			}
		}
		if len(open) > 0 || len(req.Messages) == 0 {
			t.Fatalf("%s", story(req.Messages))
		}
	})
}

func ExampleParseRequest() {
	req, err := uistream.ParseRequest([]byte(`{"id":"chat-1","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"What is 7 + 35?"}]}]}`), nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(req.ID, req.Messages[0].Role, req.Messages[0].Text())
	// Output: chat-1 user What is 7 + 35?
}
