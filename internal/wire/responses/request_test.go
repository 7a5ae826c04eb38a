package responses

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

func TestParseRequestNamesTheMemberAtFault(t *testing.T) {
	for body, param := range map[string]string{
		`{`: "", `[]`: "", `{"input":"x"}`: "model", `{"model":"m"}`: "input", `{"model":1,"input":"x"}`: "model", `{"model":"m","input":1}`: "input",
		`{"model":"m","input":"x","Tools":[]}`:                                                            "Tools",
		`{"model":"m","input":"x","background":true}`:                                                     "background",
		`{"model":"m","input":"x","conversation":"c"}`:                                                    "conversation",
		`{"model":"m","input":"x","prompt":{"id":"p"}}`:                                                   "prompt",
		`{"model":"m","input":"x","moderation":{}}`:                                                       "moderation",
		`{"model":"m","input":"x","context_management":[{"type":"other"}]}`:                               "context_management[0].type",
		`{"model":"m","input":"x","metadata":[]}`:                                                         "metadata",
		`{"model":"m","input":"x","store":1}`:                                                             "store",
		`{"model":"m","input":"x","previous_response_id":""}`:                                             "previous_response_id",
		`{"model":"m","input":"x","max_output_tokens":0}`:                                                 "max_output_tokens",
		`{"model":"m","input":"x","text":{"format":{"type":"json_schema"}}}`:                              "text.format.name",
		`{"model":"m","input":"x","reasoning":{"effort":1}}`:                                              "reasoning.effort",
		`{"model":"m","input":"x","tool_choice":"some"}`:                                                  "tool_choice",
		`{"model":"m","input":"x","tool_choice":{"type":"web_search"}}`:                                   "tool_choice.type",
		`{"model":"m","input":"x","tool_choice":{"type":"function"}}`:                                     "tool_choice.name",
		`{"model":"m","input":"x","tools":[{"name":"f"}]}`:                                                "tools[0].type",
		`{"model":"m","input":"x","tools":[{"type":"function"}]}`:                                         "tools[0].name",
		`{"model":"m","input":"x","tools":[{"type":"function","name":"f","parameters":[]}]}`:              "tools[0].parameters",
		`{"model":"m","input":"x","tools":[{"type":"function","name":"f"},{"type":"custom","name":"f"}]}`: "tools[1].name",
		`{"model":"m","input":"x","tools":[{"type":"namespace","name":"n","tools":[{"type":"mcp"}]}]}`:    "tools[0].tools[0].type",
		`{"model":"m","input":[{"content":"x"}]}`:                                                         "input[0].type",
		`{"model":"m","input":[{"role":"tool","content":"x"}]}`:                                           "input[0].role",
		`{"model":"m","input":[{"role":"user"}]}`:                                                         "input[0].content",
		`{"model":"m","input":[{"role":"user","content":[{"type":"input_text"}]}]}`:                       "input[0].content[0].text",
		`{"model":"m","input":[{"role":"user","content":[{"type":"input_image"}]}]}`:                      "input[0].content[0]",
		`{"model":"m","input":[{"role":"user","content":"x","Role":"system"}]}`:                           "input[0].Role",
		`{"model":"m","input":[{"type":"function_call","name":"f"}]}`:                                     "input[0].call_id",
		`{"model":"m","input":[{"type":"function_call","call_id":"c","name":"f","arguments":{}}]}`:        "input[0].arguments",
		`{"model":"m","input":[{"type":"function_call_output","call_id":"c","output":"x"}]}`:              "input[0].call_id",
		`{"model":"m","input":[{"type":"reasoning","summary":"x"}]}`:                                      "input[0].summary",
		`{"model":"m","input":[{"type":"mcp_approval_response","approval_request_id":"x"}]}`:              "input[0].approve",
		`{"model":"m","input":[{"type":"mcp_approval_response","approve":true}]}`:                         "input[0].approval_request_id",
		`{"model":"m","input":[{"type":"mcp_approval_response","request_id":1,"approve":true}]}`:          "input[0].request_id",
		`{"model":"m","input":[{"type":"item_reference"}]}`:                                               "input[0].id",
	} {
		_, err := Codec{}.ParseRequest([]byte(body))
		e, ok := err.(*wire.APIError)
		if !ok || e.Status != 400 || e.Param != param || e.Message == "" {
			t.Errorf("%s\n%#v, want an error at %q", body, err, param)
		}
	}
}

func TestParseRequestReadsAllMembers(t *testing.T) {
	r := parseRequest(t, []byte(`{"model":"m","instructions":"sys","input":[{"role":"developer","content":"dev"},{"role":"user","content":[{"type":"input_text","text":"look"},
	 {"type":"input_image","image_url":"data:image/png;base64,AAEC","detail":"low"},{"type":"input_image","file_id":"file_1"},{"type":"input_file","file_url":"https://x.example/a.pdf"},
	 {"type":"input_file","filename":"a.txt","file_data":"data:text/plain;base64,AAEC"},{"type":"input_video","video_url":"v"}],"priority":1}],
	 "temperature":0,"top_p":0.5,"presence_penalty":1,"frequency_penalty":-1,"max_output_tokens":10,"text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object"}},"verbosity":"low"},
	 "reasoning":{"effort":"high","summary":"auto","context":"all"},"user":"u","store":false,"previous_response_id":"resp_1","stream":true,"stream_options":{"include_obfuscation":true,"x":1},
	 "parallel_tool_calls":false,"include":["reasoning.encrypted_content"],"top_k":5,"background":false}`))
	zero, half, one, minus, ten, no := 0.0, 0.5, 1.0, -1.0, 10, false
	want := lathe.Request{Model: "m", User: "u", ParallelToolCalls: &no, Sampling: lathe.Sampling{Temperature: &zero, TopP: &half, PresencePenalty: &one, FrequencyPenalty: &minus, MaxTokens: &ten,
		ReasoningEffort: "high", ReasoningSummary: "auto", ResponseFormat: []byte(`{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"}}}`)},
		Messages: []lathe.Message{
			{Role: "system", Wire: "responses", Parts: []lathe.Part{lathe.Text{Text: "sys"}}},
			{Role: "developer", Wire: "responses", Parts: []lathe.Part{lathe.Text{Text: "dev"}}},
			{Role: "user", Wire: "responses", Extra: []lathe.Member{{Name: "priority", Value: []byte("1")}}, Parts: []lathe.Part{lathe.Text{Text: "look"},
				lathe.Blob{MediaType: "image/png", Data: []byte{0, 1, 2}, Detail: "low"}, lathe.Blob{MediaType: "image/*", URL: "openai-file:file_1"},
				lathe.Blob{MediaType: "application/pdf", URL: "https://x.example/a.pdf"}, lathe.Blob{MediaType: "text/plain", Name: "a.txt", Data: []byte{0, 1, 2}},
				lathe.Opaque{JSON: []byte(`{"type":"input_video","video_url":"v"}`)}}},
		}}
	if d := cmp.Diff(want, r.Request, sameJSON); d != "" {
		t.Error(d)
	}
	if !r.Stream || !r.Obfuscate || r.Keep == nil || *r.Keep || r.PreviousID != "resp_1" || r.N != 1 {
		t.Errorf("%+v", r)
	}
	unknown := ""
	for _, m := range r.Unknown {
		unknown += m.Name + "=" + string(m.Value) + " "
	}
	if unknown != `text={"verbosity":"low"} reasoning={"context":"all"} include=["reasoning.encrypted_content"] top_k=5 ` {
		t.Error(unknown)
	}
	if d := cmp.Diff([]string{"stream_options.x"}, r.Dropped); d != "" {
		t.Error(d)
	}
	body, dropped := written(t, r, nil)
	again := parseRequest(t, body)
	again.ParallelToolCalls = r.ParallelToolCalls // not sent without tools
	if d := cmp.Diff(r.Request, again.Request, sameJSON); d != "" || len(dropped) > 0 {
		t.Error(d, dropped)
	}
	if got := string(get(body, "text")); got != `{"format":{"type":"json_schema","name":"n","schema":{"type":"object"}},"verbosity":"low"}` {
		t.Error(got)
	}
	if got := string(get(body, "reasoning")); got != `{"effort":"high","summary":"auto","context":"all"}` {
		t.Error(got)
	}
	if got := string(get(body, "include")); got != `["reasoning.encrypted_content"]` || string(get(body, "store")) != "false" {
		t.Error(got)
	}
}

// TestW36_ResultsFollowTheirCallsInOrder: whatever the order of the client, and with what stands between them.
func TestW36_ResultsFollowTheirCallsInOrder(t *testing.T) {
	r := parseRequest(t, []byte(`{"model":"m","input":[{"role":"user","content":"go"},
	 {"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}],"content":null,"encrypted_content":"E"},
	 {"type":"message","role":"assistant","id":"msg_1","status":"completed","phase":"commentary","content":[{"type":"output_text","text":"I look.","annotations":[]}]},
	 {"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"function_call","call_id":"b","name":"g","arguments":""},
	 {"type":"function_call_output","call_id":"b","output":"B"},{"role":"user","content":"well"},
	 {"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"A1"},{"type":"input_image","image_url":"https://x.example/i"},{"type":"input_text","text":"A2"}]},
	 {"type":"message","role":"assistant","content":"done"}]}`))
	want := []lathe.Message{
		{Role: "user", Parts: []lathe.Part{lathe.Text{Text: "go"}}},
		{Role: "assistant", Parts: []lathe.Part{lathe.Reasoning{Text: "a\n\nb", Field: "encrypted_content", Data: "E", ID: "rs_1"}, lathe.Text{Text: "I look.", Commentary: true},
			lathe.ToolCall{ID: "a", Name: "f", Arguments: "{}"}, lathe.ToolCall{ID: "b", Name: "g", Arguments: "{}"}}},
		{Role: "tool", Parts: []lathe.Part{lathe.ToolResult{CallID: "a", Name: "f", Content: "A1\nA2", Blobs: []lathe.Blob{{URL: "https://x.example/i"}}}}},
		{Role: "tool", Parts: []lathe.Part{lathe.ToolResult{CallID: "b", Name: "g", Content: "B"}}},
		{Role: "user", Parts: []lathe.Part{lathe.Text{Text: "well"}}},
		{Role: "assistant", Parts: []lathe.Part{lathe.Text{Text: "done"}}},
	}
	for i := range want {
		want[i].Wire = lathe.WireResponses
	}
	if d := cmp.Diff(want, r.Messages); d != "" {
		t.Error(d)
	}
}

func TestW19_OrphanResults(t *testing.T) {
	const orphan = `{"type":"function_call_output","call_id":"x","output":"o"}`
	if _, err := (Codec{}).ParseRequest([]byte(`{"model":"m","input":[` + orphan + `]}`)); err == nil {
		t.Error("a result without its call was taken")
	}
	r := parseRequest(t, []byte(`{"model":"m","previous_response_id":"resp_1","input":[`+orphan+`]}`))
	if len(r.Messages) != 1 || r.Messages[0].Role != lathe.RoleTool {
		t.Errorf("%+v", r.Messages)
	}
	parseRequest(t, []byte(`{"model":"m","input":[{"type":"item_reference","id":"fc_1"},`+orphan+`]}`))
	call := `{"type":"function_call","call_id":"x","name":"f"},`
	if _, err := (Codec{}).ParseRequest([]byte(`{"model":"m","input":[` + call + orphan + "," + orphan + `]}`)); err == nil {
		t.Error("a second result was taken")
	}
	if _, err := (Codec{}).ParseRequest([]byte(`{"model":"m","input":[` + call + call + orphan + `]}`)); err == nil {
		t.Error("two calls of one id were taken")
	}
	parseRequest(t, []byte(`{"model":"m","input":[`+call+orphan+","+call+orphan+`]}`)) // ids begin anew in each turn of some clients
}

func TestUnknownItemsStayInTheirPlace(t *testing.T) {
	body := []byte(`{"model":"m","input":[{"role":"user","content":"go"},{"type":"web_search_call","id":"ws_1","status":"completed"},{"type":"message","role":"assistant","content":"x"},
	 {"type":"mcp_call","id":"mcp_1","server_label":"s","name":"n","arguments":"{}","output":"o"},{"type":"mcp_approval_request","id":"mcpr_a1","server_label":"s","name":"n","arguments":"{}"},
	 {"type":"mcp_approval_response","approval_request_id":"mcpr_a1","approve":true,"reason":"fine"},{"type":"compaction","encrypted_content":"c"},{"type":"item_reference","id":"msg_1"}]}`)
	r := parseRequest(t, body)
	if d := cmp.Diff([]wire.ApprovalAnswer{{ID: "a1", Approve: true, Reason: "fine"}}, r.Approvals); d != "" {
		t.Error(d)
	}
	shape := ""
	for _, p := range r.Messages[1].Parts {
		switch p := p.(type) {
		case lathe.Opaque:
			shape += text(p.JSON, "type") + " "
		case lathe.Text:
			shape += "text "
		}
	}
	if len(r.Messages) != 2 || shape != "web_search_call text mcp_call mcp_approval_request compaction item_reference " {
		t.Errorf("%d messages, %s", len(r.Messages), shape)
	}
	out, dropped := written(t, r, nil)
	if d := cmp.Diff([]string{"messages[1].parts[2]", "messages[1].parts[3]", "messages[1].parts[5]"}, dropped); d != "" {
		t.Error(d)
	}
	if !strings.Contains(string(out), `{"type":"web_search_call","id":"ws_1","status":"completed"},{"type":"message","role":"assistant"`) {
		t.Errorf("%s", out)
	}
	r.HostedTools = append(r.HostedTools, []byte(`{"type":"mcp","server_label":"s"}`))
	if out, _ = written(t, r, nil); !strings.Contains(string(out), `"mcp_call"`) {
		t.Errorf("%s", out)
	}
}

// TestW13_EveryToolOfCodexIsThereOrListed: namespaces become functions, others are in Hosted.
func TestW13_EveryToolOfCodexIsThereOrListed(t *testing.T) {
	body := agentRequest(t, "codex-0.169.0-turn1.json")
	r := parseRequest(t, body)
	names := map[string]bool{}
	for _, tool := range r.Tools {
		names[tool.Name] = true
	}
	for _, name := range []string{"exec_command", "write_stdin", "multi_agent_v1__close_agent", "update_goal"} {
		if !names[name] {
			t.Errorf("no tool %s among %v", name, names)
		}
	}
	if len(r.Hosted) != 1 || r.Hosted[0].Type != "web_search" || r.Hosted[0].Forced || r.Foreign != nil {
		t.Errorf("%+v", r.Hosted)
	}
	if got := r.Names["multi_agent_v1__close_agent"]; got != (wire.ToolName{Namespace: "multi_agent_v1", Name: "close_agent"}) {
		t.Errorf("%+v", got)
	}
	if d := cmp.Diff([]string{"tools[4].description"}, r.Dropped); d != "" {
		t.Error(d)
	}
}

func TestW14_NestedFunctionIsFlattened(t *testing.T) {
	r := parseRequest(t, []byte(`{"model":"m","input":"x","tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"},"strict":true}}],
	 "tool_choice":{"type":"function","function":{"name":"f"}}}`))
	tool := r.Tools[0]
	if tool.Name != "f" || tool.Description != "d" || string(tool.Schema) != `{"type":"object"}` || string(wire.MemberValue(tool.Extra, "strict")) != "true" || r.ToolChoice != (lathe.ToolChoice{Mode: "function", Name: "f"}) {
		t.Errorf("%+v %+v", tool, r.ToolChoice)
	}
	body, _ := written(t, r, nil)
	if got := string(get(body, "tools")); got != `[{"type":"function","name":"f","description":"d","parameters":{"type":"object"},"strict":true}]` {
		t.Error(got)
	}
}

func TestToolChoice(t *testing.T) {
	const tools = `"tools":[{"type":"function","name":"a"},{"type":"function","name":"b"},{"type":"web_search"},{"type":"file_search"}]`
	parse := func(choice string) *wire.ClientRequest {
		t.Helper()
		return parseRequest(t, []byte(`{"model":"m","input":"x",`+tools+`,"tool_choice":`+choice+`}`))
	}
	r := parse(`{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"b"},{"type":"web_search"},{"type":"function","name":"ours"}]}`)
	if len(r.Tools) != 2 || !r.Tools[0].Disallowed || r.Tools[1].Disallowed || len(r.Hosted) != 2 || r.Hosted[0].Disallowed || !r.Hosted[1].Disallowed || r.ToolChoice.Mode != "auto" || cmp.Diff([]string{"b", "ours"}, r.Allowed) != "" {
		t.Errorf("%+v", r)
	}
	if r := parse(`{"type":"allowed_tools","mode":"required","tools":[]}`); len(wire.Allowed(r.Tools)) > 0 || !r.Hosted[0].Disallowed || !r.Hosted[1].Disallowed || r.Hosted[0].Forced || r.Allowed == nil {
		t.Errorf("%+v", r)
	}
	if r := parse(`{"type":"web_search"}`); r.Foreign == nil || !r.Hosted[0].Forced || r.Hosted[1].Forced {
		t.Errorf("%+v", r)
	}
	if r := parse(`"required"`); r.Hosted[0].Forced || r.Allowed != nil {
		t.Errorf("%+v", r)
	}
	r = parseRequest(t, []byte(`{"model":"m","input":"x","tools":[{"type":"web_search"}],"tool_choice":"required"}`))
	if !r.Hosted[0].Forced {
		t.Errorf("%+v", r)
	}
}

// TestW41_MappedNamesAreMappedBack: in tools, choice, history, streams and whole answers.
func TestW41_MappedNamesAreMappedBack(t *testing.T) {
	long := strings.Repeat("n", 70)
	body := fmt.Sprintf(`{"model":"m","input":[{"role":"user","content":"x"},
	 {"type":"function_call","call_id":"1","namespace":"ns","name":"f","arguments":"{}"},{"type":"custom_tool_call","call_id":"2","name":"patch","input":"a \"b\"\n"},
	 {"type":"function_call","call_id":"3","name":%[1]q,"arguments":"{}"},{"type":"function_call","call_id":"4","name":"gét it","arguments":"{}"},
	 {"type":"function_call_output","call_id":"1","output":"1"},{"type":"custom_tool_call_output","call_id":"2","output":"2"},{"type":"function_call_output","call_id":"3","output":"3"},{"type":"function_call_output","call_id":"4","output":"4"}],
	 "tools":[{"type":"function","name":"ns__f"},{"type":"namespace","name":"ns","tools":[{"type":"function","name":"f"},{"type":"custom","name":"c"}]},{"type":"custom","name":"patch","format":{"type":"grammar","syntax":"lark","definition":"start: x"}},
	 {"type":"function","name":%[1]q},{"type":"function","name":"gét it"}],"tool_choice":{"type":"function","namespace":"ns","name":"f"}}`, long)
	r := parseRequest(t, []byte(body))
	inner := map[wire.ToolName]string{}
	for name, to := range r.Names {
		inner[to] = name
	}
	seen := map[string]bool{}
	for _, tool := range r.Tools {
		if seen[tool.Name] || len(tool.Name) > 64 || !wire.PlainName(tool.Name) {
			t.Errorf("name %q", tool.Name)
		}
		seen[tool.Name] = true
	}
	f := inner[wire.ToolName{Namespace: "ns", Name: "f"}]
	if f == "ns__f" || r.ToolChoice.Name != f || inner[wire.ToolName{Namespace: "ns", Name: "c", Custom: true}] != "ns__c" || inner[wire.ToolName{Name: "patch", Custom: true}] != "patch" {
		t.Errorf("%v %+v", inner, r.ToolChoice)
	}
	calls := r.Messages[1].Calls()
	for i, want := range []string{f, "patch", inner[wire.ToolName{Name: long}], inner[wire.ToolName{Name: "gét it"}]} {
		if calls[i].Name != want || want == "" {
			t.Errorf("call %d is %q, want %q", i, calls[i].Name, want)
		}
		if result, _ := r.Messages[2+i].Parts[0].(lathe.ToolResult); result.Name != want {
			t.Errorf("result %d is %q, want %q", i, result.Name, want)
		}
	}
	if calls[1].Arguments != `{"input":"a \"b\"\n"}` || !strings.Contains(string(r.Tools[3].Schema), "start: x") {
		t.Errorf("%+v", calls[1])
	}
	head := &wire.AnswerHead{ID: "1", Model: "m", Request: r}
	finish := &lathe.Finish{Reason: lathe.FinishToolCalls, Message: lathe.Message{Parts: []lathe.Part{calls[0], calls[1], calls[2], calls[3], lathe.ToolCall{ID: "5", Name: "ns__c", Arguments: `{"input":"t"}`}}}}
	stream := Codec{}.NewWriter(head).AppendFinish(nil, finish, nil)
	if last := checkStreamRules(t, stream); string(last) != string(wire.AppendAnswer(nil, Codec{}, &wire.Answer{AnswerHead: *head, Finish: finish})) {
		t.Error("stream and whole differ")
	}
	for _, want := range []string{`"call_id":"1","name":"f","namespace":"ns","arguments":"{}"`, `"type":"custom_tool_call","call_id":"2","name":"patch","input":"a \"b\"\n"`,
		`"name":"` + long + `"`, `"name":"gét it"`, `"type":"custom_tool_call","call_id":"5","name":"c","namespace":"ns","input":"t"`} {
		if !strings.Contains(string(stream), want) {
			t.Errorf("no %s in\n%s", want, stream)
		}
	}
	out, _ := written(t, r, nil) // a server of this wire has the custom tool as it is
	for _, want := range []string{`{"type":"custom","name":"patch","format":{"type":"grammar"`, `{"type":"custom_tool_call","call_id":"2","name":"patch","input":"a \"b\"\n"}`, `{"type":"custom_tool_call_output","call_id":"2"`} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
	out, dropped := written(t, r, &wire.EncodeOptions{Without: []string{featureCustom}})
	if strings.Contains(string(out), `"custom`) || len(dropped) != 2 {
		t.Errorf("%v\n%s", dropped, out)
	}
}

func TestW21_EmptyArgumentsAreAnObject(t *testing.T) {
	for _, args := range []string{``, `,"arguments":""`, `,"arguments":null`} {
		r := parseRequest(t, []byte(`{"model":"m","input":[{"type":"function_call","call_id":"a","name":"f"`+args+`}]}`))
		if c := r.Messages[0].Calls()[0]; c.Arguments != "{}" {
			t.Errorf("%q gives %q", args, c.Arguments)
		}
	}
}

// TestParseRequestTakesLinearTime: bodies that take as long as the whole package's other tests, or hours, if a part of them is
// read once for each of the others.
func TestParseRequestTakesLinearTime(t *testing.T) {
	many := func(n int, f func(i int) string) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(f(i))
		}
		return b.String()
	}
	members := many(9000, func(i int) string { return fmt.Sprintf(`"k%d":1`, i) })
	label := strings.Repeat("l", 1<<20)
	for name, body := range map[string]string{
		"calls": `{"model":"m","input":[` + many(100_000, func(i int) string { return fmt.Sprintf(`{"type":"function_call","call_id":"c%d","name":"f"}`, i) }) + `]}`,
		"one id": `{"model":"m","input":[` + many(50_000, func(int) string {
			return `{"type":"function_call","call_id":"c","name":"f"},{"role":"user","content":"x"}`
		}) + `]}`,
		"members": `{"model":"m","input":[` + many(30, func(int) string { return `{"role":"user","content":"x",` + members + `}` }) + `]}`,
		"text":    `{"model":"m","input":"x","text":{` + members + `},"reasoning":{` + members + `}}`,
		"choice": `{"model":"m","input":"x","tools":[{"type":"mcp","server_label":"` + label + `"}],"tool_choice":{"type":"allowed_tools","tools":[` +
			many(20_000, func(int) string { return `{"type":"mcp","server_label":"x"}` }) + `]}}`,
		"mcp": `{"model":"m","input":[` + many(20_000, func(int) string { return `{"type":"mcp_call"}` }) + `],"tools":[{"type":"x","y":"` + label + `"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := parseRequest(t, []byte(body))
			written(t, r, nil)
		})
	}
}

// TestW25_SchemasPassUnchanged: names of properties that are keywords elsewhere mean nothing.
func TestW25_SchemasPassUnchanged(t *testing.T) {
	const schema = `{"type":"object","properties":{"not":{"type":"string","enum":["allOf"]},"allOf":{"$ref":"#/$defs/x"}},"required":["not","allOf"],"additionalProperties":false,"$defs":{"x":{"type":"object","properties":{},"additionalProperties":false}}}`
	for _, w := range []lathe.Wire{"", lathe.WireMessages, lathe.WireResponses} {
		req := &lathe.Request{Model: "m", Tools: []*lathe.ToolSpec{{Name: "f", Schema: []byte(schema), Wire: w, Extra: []lathe.Member{{Name: "strict", Value: []byte("true")}}}}}
		body, dropped := Codec{}.AppendRequest(nil, req, nil)
		if want := `[{"type":"function","name":"f","parameters":` + schema + `,"strict":true}]`; string(get(body, "tools")) != want || len(dropped) > 0 {
			t.Errorf("%s %v", get(body, "tools"), dropped)
		}
	}
	for _, s := range []string{`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`, `{"type":"object","properties":{}}`,
		`{"type":"object","properties":{"a":{"oneOf":[]}},"required":["a"],"additionalProperties":false}`, `{"type":"string"}`} {
		req := &lathe.Request{Model: "m", Tools: []*lathe.ToolSpec{{Name: "f", Schema: []byte(s), Extra: []lathe.Member{{Name: "strict", Value: []byte("true")}}}}}
		body, dropped := Codec{}.AppendRequest(nil, req, nil)
		if want := `[{"type":"function","name":"f","parameters":` + s + `,"strict":false}]`; string(get(body, "tools")) != want || len(dropped) != 1 {
			t.Errorf("%s %v", get(body, "tools"), dropped)
		}
	}
}

// TestW15_IDsFitTheWire: whatever ids runs and calls have.
func TestW15_IDsFitTheWire(t *testing.T) {
	for _, id := range []string{"", "functions.get:0", strings.Repeat("x", 200), "é", "call_ok", "a\x00sig"} {
		head := &wire.AnswerHead{ID: id, Model: "m"}
		f := &lathe.Finish{Reason: lathe.FinishToolCalls, Message: lathe.Message{Parts: []lathe.Part{lathe.ToolCall{ID: id, Name: "f"}, lathe.Text{Text: "x"}}}}
		answer := wire.AppendAnswer(nil, Codec{}, &wire.Answer{AnswerHead: *head, Finish: f})
		_, g, err := Codec{}.NewAssembler(nil).Complete(nil, answer)
		if err != nil {
			t.Fatal(err)
		}
		got := g.Message.Calls()[0].ID
		for _, id := range []string{g.ResponseID, got} {
			if id == "" || len(id) > 64 || !wire.PlainName(id) {
				t.Errorf("id %q", id)
			}
		}
		if id != "" && got != CallID(id) || CallID(got) != got {
			t.Errorf("%q became %q", id, got)
		}
	}
}

// OpenAI's schema has approval_request_id as a property, and requires request_id.
func TestApprovalsHaveTheirIDUnderBothNames(t *testing.T) {
	t.Parallel()
	for members, want := range map[string]string{
		`"approval_request_id":"mcpr_a"`:                         "a",
		`"request_id":"mcpr_a"`:                                  "a",
		`"request_id":"mcpr_a","approval_request_id":null`:       "a",
		`"request_id":null,"approval_request_id":"mcpr_a"`:       "a",
		`"request_id":"mcpr_a","approval_request_id":"mcpr_a"`:   "a",
		`"request_id":"mcpr_b","approval_request_id":"mcpr_a"`:   "",
		`"request_id":"mcpr_a","approval_request_id":["mcpr_a"]`: "",
		`"Request_id":"mcpr_a"`:                                  "",
	} {
		r, err := Codec{}.ParseRequest([]byte(`{"model":"m","input":[{"type":"mcp_approval_response","approve":true,` + members + `}]}`))
		switch {
		case want == "" && err == nil:
			t.Errorf("%s was accepted", members)
		case want != "" && (err != nil || len(r.Approvals) != 1 || r.Approvals[0].ID != want):
			t.Errorf("%s: %v, want the approval %s", members, err, want)
		}
	}
}

// Clients repeat answers to approvals in the history of later requests.
func TestAnswersToApprovalsOfEarlierTurnsAreHistory(t *testing.T) {
	t.Parallel()
	answer := func(id string, approve bool) string {
		return fmt.Sprintf(`{"type":"mcp_approval_response","approval_request_id":"mcpr_%s","approve":%v}`, id, approve)
	}
	const user, call, said = `{"role":"user","content":"x"}`, `{"type":"mcp_call","id":"mcp_1","name":"f"}`, `{"role":"assistant","content":"y"}`
	for _, c := range []struct {
		input    []string
		ids      string
		answered bool
	}{
		{[]string{user, answer("a", true)}, "a", true},
		{[]string{user, answer("a", true), answer("a", true), answer("b", false)}, "a b", true},
		{[]string{user, answer("a", true), user}, "a", false},
		{[]string{user, answer("a", true), call, said, user}, "", false},
		{[]string{user, answer("a", true), said, user, answer("b", true)}, "b", true},
	} {
		r, err := Codec{}.ParseRequest([]byte(`{"model":"m","input":[` + strings.Join(c.input, ",") + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, a := range r.Approvals {
			ids = append(ids, a.ID)
		}
		if got := strings.Join(ids, " "); got != c.ids || r.Answered != c.answered {
			t.Errorf("%s: %q, %v", c.input, got, r.Answered)
		}
	}
	if _, err := (Codec{}).ParseRequest([]byte(`{"model":"m","input":[` + answer("a", true) + "," + answer("a", false) + `]}`)); err == nil {
		t.Error("two different answers are taken")
	}
	var many []string
	for i := range 300 {
		many = append(many, answer(fmt.Sprint(i), true))
	}
	if _, err := (Codec{}).ParseRequest([]byte(`{"model":"m","input":[` + strings.Join(many, ",") + `]}`)); err == nil {
		t.Error("any number of answers is taken")
	}
}
