package server_test

import (
	"fmt"
	"runtime"
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
			if refused := resp.StatusCode == 413; refused != (c.limit != "") || refused && (!strings.Contains(body, c.limit) || !strings.Contains(body, "request_too_large")) {
				t.Errorf("%s: %.60s…: status %d: %s, want %q", path, c.body, resp.StatusCode, body, c.limit)
			}
		}
	}
}

// The memory that a request costs before its run grows with the request, not with its square.
func TestWorkBeforeARunIsLinear(t *testing.T) {
	f := serve(t, &setting{patient: true, opts: func(o *server.Options) {
		o.Limits.MaxMessages, o.Limits.MaxParts, o.Limits.MaxCalls = 1e6, 1e6, 1e6
	}})
	for name, body := range map[string]func(int) string{"calls": withCalls, "parts": withParts, "parts of a result": withResultParts, "messages": withMessages} {
		cost := func(n int) uint64 {
			text := `{"model":"sim/demo",` + body(n) + `}`
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if resp, answer := f.do("POST", "/v1/chat/completions", text); resp.StatusCode != 200 {
				t.Fatalf("%s: status %d: %s", name, resp.StatusCode, answer)
			}
			runtime.ReadMemStats(&after)
			return after.TotalAlloc - before.TotalAlloc
		}
		cost(100)
		small, large := cost(8_000), cost(32_000)
		if large > 7*small {
			t.Errorf("%s: 8000 cost %d bytes and 32000 cost %d", name, small, large)
		}
	}
}
