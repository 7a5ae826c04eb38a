package messages

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// with makes a request with further members.
func with(members string) string {
	return `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"}],` + members + `}`
}

// said makes a request of the messages.
func said(messages ...string) string {
	return `{"model":"m","max_tokens":9,"messages":[` + strings.Join(messages, ",") + `]}`
}

// TestParseRequestNamesTheMember: each mistake is an error that names the member at fault.
func TestParseRequestNamesTheMember(t *testing.T) {
	tool := `{"name":"f","input_schema":{"type":"object"}}`
	for _, tt := range []struct{ body, param string }{
		{``, ""},
		{`[]`, ""},
		{`{"model":"m"`, ""},
		{`{"model":"m","model":"n","max_tokens":1,"messages":[]}`, ""},
		{strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100), ""},
		{`{"max_tokens":9,"messages":[{"role":"user","content":"a"}]}`, "model"},
		{`{"model":7,"max_tokens":9,"messages":[{"role":"user","content":"a"}]}`, "model"},
		{`{"model":"m","messages":[{"role":"user","content":"a"}]}`, "max_tokens"},
		{`{"model":"m","max_tokens":0,"messages":[{"role":"user","content":"a"}]}`, "max_tokens"},
		{`{"model":"m","max_tokens":1.5,"messages":[{"role":"user","content":"a"}]}`, "max_tokens"},
		{`{"model":"m","max_tokens":9}`, "messages"},
		{said(), "messages"},
		{`{"model":"m","max_tokens":9,"messages":{}}`, "messages"},
		{said(`"a"`), "messages[0]"},
		{said(`{"content":"a"}`), "messages[0].role"},
		{said(`{"role":"tool","content":"a"}`), "messages[0].role"},
		{said(`{"role":"user"}`), "messages[0].content"},
		{said(`{"role":"user","content":""}`), "messages[0].content"},
		{said(`{"role":"user","content":[]}`), "messages[0].content"},
		{said(`{"role":"user","content":"a"}`, `{"role":"user","content":7}`), "messages[1].content"},
		{said(`{"role":"user","content":[1]}`), "messages[0].content[0]"},
		{said(`{"role":"user","content":[{"text":"a"}]}`), "messages[0].content[0].type"},
		{said(`{"role":"user","content":[{"type":"text"}]}`), "messages[0].content[0].text"},
		{said(`{"role":"user","content":[{"type":"image"}]}`), "messages[0].content[0].source"},
		{said(`{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"!"}}]}`), "messages[0].content[0].source.data"},
		{said(`{"role":"user","content":[{"type":"image","source":{"type":"base64","data":"AAAA"}}]}`), "messages[0].content[0].source.media_type"},
		{said(`{"role":"user","content":[{"type":"image","source":{"type":"url"}}]}`), "messages[0].content[0].source.url"},
		{said(`{"role":"user","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}`), "messages[0].content[0].type"},
		{said(`{"role":"user","content":[{"type":"thinking","thinking":"a"}]}`), "messages[0].content[0].type"},
		{said(`{"role":"user","content":[{"type":"tool_result"}]}`), "messages[0].content[0].tool_use_id"},
		{said(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":1}]}`), "messages[0].content[0].is_error"},
		{said(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":{}}]}`), "messages[0].content[0].content"},
		{said(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text"}]}]}`), "messages[0].content[0].content[0].text"},
		{said(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"},{"type":"tool_result","tool_use_id":"a"}]}`), "messages[0].content"},
		{said(`{"role":"assistant","content":[{"type":"tool_result","tool_use_id":"a"}]}`), "messages[0].content"},
		{said(`{"role":"assistant","content":[{"type":"tool_use","name":"f","input":{}}]}`), "messages[0].content[0].id"},
		{said(`{"role":"assistant","content":[{"type":"tool_use","id":"a","input":{}}]}`), "messages[0].content[0].name"},
		{said(`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":[]}]}`), "messages[0].content[0].input"},
		{said(`{"role":"assistant","content":[{"type":"thinking"}]}`), "messages[0].content[0].thinking"},
		{said(`{"role":"assistant","content":[{"type":"redacted_thinking"}]}`), "messages[0].content[0].data"},
		{with(`"system":1`), "system"},
		{with(`"system":[{"type":"tool_result","tool_use_id":"a"}]`), "system"},
		{with(`"tools":{}`), "tools"},
		{with(`"tools":[1]`), "tools[0]"},
		{with(`"tools":[{}]`), "tools[0].name"},
		{with(`"tools":[{"name":""}]`), "tools[0].name"},
		{with(`"tools":[{"type":1}]`), "tools[0].type"},
		{with(`"tools":[{"name":"f"}]`), "tools[0].input_schema"},
		{with(`"tools":[{"name":"f","description":1,"input_schema":{}}]`), "tools[0].description"},
		{with(`"tools":[` + tool + `,` + tool + `]`), "tools[1].name"},
		{with(`"tools":[` + tool + `,{"type":"bash_20250124","name":"f"}]`), "tools[1].name"},
		{with(`"tool_choice":"any"`), "tool_choice"},
		{with(`"tool_choice":{"type":"any"}`), "tool_choice"},
		{with(`"tool_choice":{"type":"required"}`), "tool_choice.type"},
		{with(`"tool_choice":{"type":"tool"}`), "tool_choice.name"},
		{with(`"tools":[` + tool + `],"tool_choice":{"type":"tool","name":"g"}`), "tool_choice.name"},
		{with(`"tool_choice":{"type":"auto","disable_parallel_tool_use":1}`), "tool_choice.disable_parallel_tool_use"},
		{with(`"stream":1`), "stream"},
		{with(`"temperature":"1"`), "temperature"},
		{with(`"top_p":[]`), "top_p"},
		{with(`"top_k":0.5`), "top_k"},
		{with(`"stop_sequences":"a"`), "stop_sequences"},
		{with(`"stop_sequences":["a",1]`), "stop_sequences[1]"},
		{with(`"thinking":true`), "thinking"},
		{with(`"thinking":{}`), "thinking.type"},
		{with(`"thinking":{"type":"on"}`), "thinking.type"},
		{with(`"thinking":{"type":"enabled"}`), "thinking.budget_tokens"},
		{with(`"output_config":1`), "output_config"},
		{with(`"output_config":{"effort":1}`), "output_config.effort"},
		{with(`"output_config":{"format":{"type":"json_object"}}`), "output_config.format.type"},
		{with(`"output_config":{"format":{"type":"json_schema"}}`), "output_config.format.schema"},
		{with(`"metadata":1`), "metadata"},
		{with(`"metadata":{"user_id":1}`), "metadata.user_id"},
		{with(`"Messages":[]`), "Messages"},
		{with(`"Max_Tokens":1`), "Max_Tokens"},
		{with(`"thinking":{"type":"adaptive","Budget_tokens":1}`), "thinking.Budget_tokens"},
		{with(`"tools":[{"name":"f","Input_Schema":{}}]`), "tools[0].Input_Schema"},
		{with(`"tool_choice":{"type":"auto","Name":"f"}`), "tool_choice.Name"},
		{said(`{"role":"user","Content":"a"}`), "messages[0].Content"},
		{said(`{"role":"user","content":[{"type":"text","text":"a","TEXT":"b"}]}`), "messages[0].content[0].TEXT"},
		{said(`{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://a/b","Url":"x"}}]}`), "messages[0].content[0].source.Url"},
		{said(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"a","Text":""}]}]}`), "messages[0].content[0].content[0].Text"},
	} {
		r, err := Codec{}.ParseRequest([]byte(tt.body))
		var e *wire.APIError
		if !errors.As(err, &e) || r != nil {
			t.Errorf("%s: no error", tt.body)
			continue
		}
		if e.Status != 400 || e.Type != "invalid_request_error" || e.Param != tt.param {
			t.Errorf("%s: %d %s at %q, want %q", tt.body, e.Status, e.Type, e.Param, tt.param)
		}
	}
}

// TestParseRequestMembers: each member has its place in the request.
func TestParseRequestMembers(t *testing.T) {
	r := parseRequest(t, []byte(`{"model":"m","max_tokens":100,"stream":true,"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],
		"temperature":0.5,"top_p":0.9,"top_k":40,"stop_sequences":["A","B"],"metadata":{"user_id":"u","team":"x"},
		"thinking":{"type":"enabled","budget_tokens":2000,"display":"summarized"},"output_config":{"effort":"low","format":{"type":"json_schema","schema":{"type":"object"}},"task_budget":1},
		"tools":[{"name":"f","description":"d","input_schema":{"type":"object"},"strict":true},{"type":"custom","name":"g","input_schema":{}},{"type":"web_search_20250305","name":"web_search"}],
		"tool_choice":{"type":"auto","disable_parallel_tool_use":true},"service_tier":"auto","container":null,"context_management":{"edits":[]},
		"messages":[{"role":"user","content":"a"}]}`))
	maxTokens, budget, topK, temperature, topP, off := 100, 2000, 40, 0.5, 0.9, false
	want := lathe.Request{Model: "m", User: "u", ParallelToolCalls: &off, ToolChoice: lathe.ToolChoice{Mode: lathe.ChoiceAuto},
		Messages: []lathe.Message{
			{Role: lathe.RoleSystem, Wire: lathe.WireMessages, Parts: []lathe.Part{lathe.Text{Text: "s", Extra: []lathe.Member{{Name: "cache_control", Value: []byte(`{"type":"ephemeral"}`)}}}}},
			{Role: lathe.RoleUser, Wire: lathe.WireMessages, Parts: []lathe.Part{lathe.Text{Text: "a"}}},
		},
		Tools: []*lathe.ToolSpec{
			{Name: "f", Description: "d", Schema: []byte(`{"type":"object"}`), Wire: lathe.WireMessages, Extra: []lathe.Member{{Name: "strict", Value: []byte("true")}}},
			{Name: "g", Schema: []byte(`{}`), Wire: lathe.WireMessages},
		},
		Sampling: lathe.Sampling{Temperature: &temperature, TopP: &topP, TopK: &topK, MaxTokens: &maxTokens, Stop: []string{"A", "B"},
			ReasoningEffort: "low", ReasoningBudget: &budget, ReasoningSummary: "auto",
			ResponseFormat: []byte(`{"type":"json_schema","json_schema":{"name":"output","strict":true,"schema":{"type":"object"}}}`)},
	}
	if d := cmp.Diff(want, r.Request); d != "" {
		t.Errorf("request (-want +got):\n%s", d)
	}
	unknown := []lathe.Member{{Name: "service_tier", Value: []byte(`"auto"`)}, {Name: "context_management", Value: []byte(`{"edits":[]}`)}}
	if d := cmp.Diff(unknown, r.Unknown); d != "" || !r.Stream || !r.IncludeUsage || r.N != 1 {
		t.Errorf("unknown (-want +got), stream %v:\n%s", r.Stream, d)
	}
	if d := cmp.Diff([]string{"metadata.team", "output_config.task_budget"}, r.Dropped); d != "" {
		t.Errorf("dropped (-want +got):\n%s", d)
	}
	if len(r.Hosted) != 1 || r.Hosted[0].Type != "web_search_20250305" || r.Hosted[0].Forced {
		t.Errorf("hosted: %+v", r.Hosted)
	}
}

// TestParseRequestReasoning: thinking and output_config together say effort and budget, and come back from them.
func TestParseRequestReasoning(t *testing.T) {
	n := func(n int) *int { return &n }
	for _, tt := range []struct {
		members string
		effort  string
		budget  *int
	}{
		{`"thinking":{"type":"adaptive"}`, "high", nil},
		{`"thinking":{"type":"adaptive"},"output_config":{"effort":"max"}`, "max", nil},
		{`"output_config":{"effort":"low"}`, "low", n(0)},
		{`"thinking":{"type":"disabled"}`, "none", nil},
		{`"thinking":{"type":"enabled","budget_tokens":3000}`, "", n(3000)},
		{`"thinking":{"type":"enabled","budget_tokens":3000},"output_config":{"effort":"low"}`, "low", n(3000)},
	} {
		body := strings.Replace(with(tt.members), `"max_tokens":9`, `"max_tokens":9000`, 1)
		s := parseRequest(t, []byte(body)).Sampling
		if s.ReasoningEffort != tt.effort || !cmp.Equal(s.ReasoningBudget, tt.budget) {
			t.Errorf("%s: effort %q, budget %v", tt.members, s.ReasoningEffort, s.ReasoningBudget)
		}
		checkRoundTrip(t, []byte(body))
	}
}

// roles describes messages in short.
func roles(msgs []lathe.Message) string {
	var b strings.Builder
	for _, m := range msgs {
		fmt.Fprintf(&b, "%s(", m.Role)
		for i, p := range m.Parts {
			if i > 0 {
				b.WriteByte(' ')
			}
			switch p := p.(type) {
			case lathe.Text:
				b.WriteString(p.Text)
			case lathe.ToolCall:
				b.WriteString("call " + p.ID)
			case lathe.ToolResult:
				b.WriteString(p.CallID + "=" + p.Content + " of " + p.Name)
			default:
				fmt.Fprintf(&b, "%T", p)
			}
		}
		b.WriteString(") ")
	}
	return strings.TrimSpace(b.String())
}

// TestParseRequestOrder: results stand directly behind their calls, in the order of the calls, and neighbours are one message.
// System messages keep their place (W17, W18, W27, W36).
func TestParseRequestOrder(t *testing.T) {
	calls := `{"role":"assistant","content":[{"type":"text","text":"t"},{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"b","name":"g","input":{}}]}`
	result := func(id string) string {
		return fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":"r%s"}`, id, id)
	}
	user := func(blocks ...string) string {
		return `{"role":"user","content":[` + strings.Join(blocks, ",") + `]}`
	}
	txt := func(s string) string { return fmt.Sprintf(`{"type":"text","text":%q}`, s) }
	for name, tt := range map[string]struct {
		messages []string
		want     string
	}{
		"results out of order, text first": {[]string{calls, user(txt("x"), result("b"), txt("y"), result("a"))},
			"assistant(t call a call b) tool(a=ra of f) tool(b=rb of g) user(x y)"},
		"results in two messages": {[]string{calls, user(result("b")), user(txt("x")), user(result("a"), txt("y"))},
			"assistant(t call a call b) tool(a=ra of f) tool(b=rb of g) user(x y)"},
		"one missing":     {[]string{calls, user(result("b"), txt("x"))}, "assistant(t call a call b) tool(b=rb of g) user(x)"},
		"a foreign one":   {[]string{calls, user(result("z"), result("a"), result("b"))}, "assistant(t call a call b) tool(a=ra of f) tool(b=rb of g) tool(z=rz of )"},
		"without a call":  {[]string{user(result("z"))}, "tool(z=rz of )"},
		"system between":  {[]string{user(txt("x")), `{"role":"system","content":"s"}`, user(txt("y"))}, "user(x) system(s) user(y)"},
		"neighbours":      {[]string{user(txt("x")), user(txt("y")), `{"role":"assistant","content":"1"}`, `{"role":"assistant","content":"2"}`}, "user(x y) assistant(1 2)"},
		"empty assistant": {[]string{user(txt("x")), `{"role":"assistant","content":[]}`, user(txt("y"))}, "user(x y)"},
		"results behind system": {[]string{calls, `{"role":"system","content":"s"}`, user(result("b"), result("a"))},
			"assistant(t call a call b) tool(a=ra of f) tool(b=rb of g) system(s)"},
	} {
		t.Run(name, func(t *testing.T) {
			r := parseRequest(t, []byte(said(tt.messages...)))
			if got := roles(r.Messages); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			checkRoundTrip(t, []byte(said(tt.messages...)))
		})
	}
}

// TestParseRequestMapsNames: a tool whose name the internal form does not have gets another one everywhere, and the client
// reads its own (W15, W41).
func TestParseRequestMapsNames(t *testing.T) {
	long := "mcp__" + strings.Repeat("server", 12) + "__tool.v1"
	body := fmt.Sprintf(`{"model":"m","max_tokens":9,"tools":[{"name":%[1]q,"input_schema":{"type":"object"}}],"tool_choice":{"type":"tool","name":%[1]q},
		"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":%[1]q,"input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]}`, long)
	r := parseRequest(t, []byte(body))
	short := r.Tools[0].Name
	if len(short) > 64 || !wire.PlainName(short) || r.ToolChoice.Name != short || r.Messages[0].Calls()[0].Name != short || r.Names[short].Name != long {
		t.Fatalf("names: %q, %+v, %q, %+v", short, r.ToolChoice, r.Messages[0].Calls()[0].Name, r.Names)
	}
	if res := r.Messages[1].Parts[0].(lathe.ToolResult); res.Name != short {
		t.Errorf("the result has the name %q", res.Name)
	}
	head := wire.AnswerHead{ID: "1", Request: r}
	f := &lathe.Finish{Reason: lathe.FinishToolCalls, Message: lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.ToolCall{ID: "b", Name: short}}}}
	for _, b := range [][]byte{Codec{}.NewWriter(&head).AppendFinish(nil, f, nil), wire.AppendAnswer(nil, Codec{}, &wire.Answer{AnswerHead: head, Finish: f})} {
		if !strings.Contains(string(b), fmt.Sprintf("%q", long)) || strings.Contains(string(b), short) {
			t.Errorf("the client reads another name:\n%s", b)
		}
	}
}

// TestParseRequestResults: content that is more than one text is kept, and its text is what others read.
func TestParseRequestResults(t *testing.T) {
	for _, tt := range []struct {
		content, text string
		blobs         int
		kept          bool
	}{
		{`"a"`, "a", 0, false},
		{`[]`, "", 0, false},
		{`[{"type":"text","text":"a"}]`, "a", 0, false},
		{`[{"type":"text","text":"a"},{"type":"text","text":"b"}]`, "a\nb", 0, true},
		{`[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]`, "a", 1, false},
		{`[{"type":"image","source":{"type":"url","url":"https://a/b.png"}},{"type":"text","text":"a"}]`, "a", 1, true},
		{`[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]`, "a", 0, true},
		{`[{"type":"tool_reference","tool_name":"Grep"},{"type":"tool_reference","tool_name":"Glob"}]`, "Loaded tool: Grep\nLoaded tool: Glob", 0, true},
		{`[{"type":"search_result","title":"T","source":"S","content":[{"type":"text","text":"c"}]}]`, "T\nS\nc", 0, true},
		{`[{"type":"image","source":{"type":"file","file_id":"file_1"}}]`, "", 0, true},
	} {
		body := said(`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":true,"cache_control":{"type":"ephemeral"},"content":`+tt.content+`}]}`)
		r := parseRequest(t, []byte(body))
		res := r.Messages[1].Parts[0].(lathe.ToolResult)
		if kept := wire.MemberValue(res.Extra, "content") != nil; res.Content != tt.text || len(res.Blobs) != tt.blobs || kept != tt.kept || !res.IsError || res.Code == "" {
			t.Errorf("%s: %+v", tt.content, res)
		}
		checkRoundTrip(t, []byte(body))
		// A result whose text was changed does not bring the old content back.
		res.Content = "redacted"
		r.Messages[1].Parts[0] = res
		sent, _ := Codec{}.AppendRequest(nil, &r.Request, nil)
		if !strings.Contains(string(sent), `"redacted"`) || tt.kept && strings.Contains(string(sent), tt.content) {
			t.Errorf("%s: the old content is sent: %s", tt.content, sent)
		}
	}
}

// TestParseRequestIsLinear: a request of many small parts takes time in proportion.
func TestParseRequestIsLinear(t *testing.T) {
	const n = 20000
	call := `{"type":"tool_use","id":"a%d","name":"f","input":{}}`
	var calls, results []string
	for i := range n {
		calls = append(calls, fmt.Sprintf(call, i))
		results = append(results, fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a%d"}]}`, n-1-i))
	}
	body := said(append([]string{`{"role":"assistant","content":[` + strings.Join(calls, ",") + `]}`}, results...)...)
	r := parseRequest(t, []byte(body))
	if got := len(r.Messages); got != n+1 {
		t.Fatalf("%d messages", got)
	}
	if id := r.Messages[1].Parts[0].(lathe.ToolResult).CallID; id != "a0" {
		t.Errorf("the first result is that of %s", id)
	}
}

// TestParseCount: a request to count tokens needs no max_tokens.
func TestParseCount(t *testing.T) {
	r, err := Codec{}.ParseCount([]byte(`{"model":"m","messages":[{"role":"user","content":"a"}]}`))
	if err != nil || len(r.Messages) != 1 {
		t.Errorf("%v, %+v", err, r)
	}
}
