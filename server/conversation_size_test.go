package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/server"
)

// withCalls is a conversation in which one message has n calls, answered in reverse.
func withCalls(n int) string {
	var b strings.Builder
	b.WriteString(`"messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[`)
	for i := range n {
		fmt.Fprintf(&b, `,{"id":"c%d","type":"function","function":{"name":"f","arguments":"{}"}}`, i)
	}
	b.WriteString(`]}`)
	for i := n - 1; i >= 0; i-- {
		fmt.Fprintf(&b, `,{"role":"tool","tool_call_id":"c%d","content":"x"}`, i)
	}
	return strings.Replace(b.String(), "[,", "[", 1) + `]`
}

// withParts is a conversation in which one message has n texts.
func withParts(n int) string {
	return `"messages":[{"role":"user","content":[` + strings.TrimSuffix(strings.Repeat(`{"type":"text","text":"xxxxxxxx"},`, n), ",") + `]}]`
}

// withResultParts is a conversation in which one tool result has n texts.
func withResultParts(n int) string {
	return `"messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},` +
		`{"role":"tool","tool_call_id":"c","content":[` + strings.TrimSuffix(strings.Repeat(`{"type":"text","text":"xxxxxxxx"},`, n), ",") + `]}]`
}

// withMessages is a conversation of n messages.
func withMessages(n int) string {
	return `"messages":[` + strings.TrimSuffix(strings.Repeat(`{"role":"user","content":"x"},`, n), ",") + `]`
}

// What a request may hold is bounded by limits that its refusal names.
func TestConversationsAreBounded(t *testing.T) {
	t.Parallel()
	f := serve(t, &setting{opts: func(o *server.Options) {
		o.Limits.MaxMessages, o.Limits.MaxParts, o.Limits.MaxCalls = 20, 15, 8
	}})
	for _, c := range []struct{ body, limit string }{
		{withMessages(15), ""}, {withMessages(21), "serve.max_messages"},
		{withParts(15), ""}, {withParts(16), "serve.max_parts"},
		{withCalls(8), ""}, {withCalls(9), "serve.max_calls"},
		{withResultParts(100), ""},
	} {
		for _, path := range []string{"/v1/chat/completions", "/api/runs"} {
			resp, body := f.do("POST", path, `{"model":"sim/demo",`+c.body+`}`)
			if refused := resp.StatusCode == 413; refused != (c.limit != "") || refused && (!strings.Contains(body, c.limit) || !strings.Contains(body, "request_too_large") || !strings.Contains(body, "Send a shorter conversation")) {
				t.Errorf("%s: %.60s…: status %d: %s, want %q", path, c.body, resp.StatusCode, body, c.limit)
			}
		}
	}
}

// A conversation of more elements than all limits together allow is refused before it is read, on each wire; one within them is
// judged by what it has.
func TestTooManyElementsAreRefusedBeforeTheyAreRead(t *testing.T) {
	t.Parallel()
	f := serve(t, &setting{opts: func(o *server.Options) {
		o.Limits.MaxMessages, o.Limits.MaxParts, o.Limits.MaxCalls = 20, 20, 20
	}})
	list := func(n int, form string) string { return strings.TrimSuffix(strings.Repeat(form+",", n), ",") }
	for _, c := range []struct {
		path, body string // with %s in place of the elements
		element    string
	}{
		{"/v1/chat/completions", `{"model":"sim/demo","messages":[{"role":"user","content":[%s]}]}`, `{"type":"text","text":"x"}`},
		{"/v1/chat/completions", `{"model":"sim/demo","messages":[%s]}`, `{"role":"user","content":"x"}`},
		{"/v1/chat/completions", `{"model":"sim/demo","messages":[{"role":"assistant","tool_calls":[%s]}]}`, `{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}`},
		{"/v1/responses", `{"model":"sim/demo","input":[%s]}`, `{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}`},
		{"/v1/responses", `{"model":"sim/demo","input":[{"role":"user","content":[%s]}]}`, `{"type":"input_text","text":"x"}`},
		{"/v1/messages", `{"model":"sim/demo","max_tokens":9,"messages":[{"role":"user","content":[%s]}]}`, `{"type":"text","text":"x"}`},
		{"/v1/messages/count_tokens", `{"model":"sim/demo","messages":[{"role":"user","content":[%s]}]}`, `{"type":"text","text":"x"}`},
		{"/v1beta/models/sim/demo:generateContent", `{"contents":[{"role":"user","parts":[%s]}]}`, `{"text":"x"}`},
		{"/api/runs", `{"model":"sim/demo","messages":[%s]}`, `{"role":"user","content":"x"}`},
	} {
		for n, together := range map[int]bool{61: true, 60: false} {
			resp, body := f.do("POST", c.path, fmt.Sprintf(c.body, list(n, c.element)))
			if got := strings.Contains(body, "more than 60 messages, parts and tool calls together"); got != together || resp.StatusCode < 400 || together && resp.StatusCode != 413 {
				t.Errorf("%s with %d of %s: status %d: %s", c.path, n, c.element, resp.StatusCode, body)
			}
		}
	}
	result := `{"role":"tool","content":[` + list(100, `{"type":"text","text":"x"}`) + `],"tool_call_id":"c"}`
	calls := `{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	if resp, body := f.do("POST", "/v1/chat/completions", `{"model":"sim/demo","messages":[{"role":"user","content":"x"},`+calls+`,`+result+`]}`); resp.StatusCode != 200 {
		t.Errorf("the parts of a result: status %d: %s", resp.StatusCode, body)
	}
}
