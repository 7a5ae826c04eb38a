package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/provider"
)

// A call without a result, and a result without a call, are errors in the words of the client's wire, with the place and the id.
func TestUnpairedCallsAreNamedInTheClientsWords(t *testing.T) {
	t.Parallel()
	const chatUser, chatCalls = `{"role":"user","content":"a"}`, `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	for name, tt := range map[string]struct {
		client, body string
		words        []string
		not          string
	}{
		"chat, no result": {"chat", chatHead + `[` + chatUser + `,` + chatCalls + `,` + chatUser + `]}`, []string{"tool_calls", "messages[1]", "c1"}, "tool_use"},
		"chat, no call":   {"chat", chatHead + `[` + chatUser + `,{"role":"tool","tool_call_id":"c9","content":"x"}]}`, []string{"tool message", "messages[1]", "c9"}, "tool_use"},
		"Messages, no result": {"messages", msgHead + `[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"text","text":"b"},{"type":"tool_use","id":"t1","name":"f","input":{}},{"type":"tool_use","id":"t2","name":"f","input":{}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}]}`, []string{"tool_use", "tool_result", "messages[1].content[2]", "t2"}, "tool_calls"},
		"Messages, no call": {"messages", msgHead + `[{"role":"user","content":[{"type":"text","text":"b"},{"type":"tool_result","tool_use_id":"t9","content":"x"}]}]}`, []string{"tool_result", "messages[0].content[1]", "t9"}, "tool message"},
		"Responses, no result": {"responses", respHead + `[{"role":"user","content":"a"},{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},{"role":"user","content":"a"}]}`,
			[]string{"function_call", "function_call_output", "input[1]", "c1"}, "tool_calls"},
		"Responses, no call": {"responses", respHead + `[{"role":"user","content":"a"},{"type":"function_call_output","call_id":"c9","output":"x"}]}`,
			[]string{"call_id", "input[1]", "c9"}, "tool message"},
		"Gemini, no result": {"gemini", `{"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"text":"b"},{"functionCall":{"name":"f","args":{}}}]},{"role":"user","parts":[{"text":"c"}]}]}`,
			[]string{"functionCall", "functionResponse", "contents[1].parts[1]", "call of f"}, "tool_calls"},
		"Gemini, no call": {"gemini", `{"contents":[{"role":"user","parts":[{"functionResponse":{"id":"c9","name":"f","response":{}}}]}]}`, []string{"functionResponse", "contents[0].parts[0]", "c9"}, "tool message"},
	} {
		f, up := modelOn(t, lathe.WireOpenAIChat, provider.Options{})
		a := wireClients[tt.client].send(t.Context(), f, false, tt.body)
		if a.status != http.StatusBadRequest || up.sent.Load() != nil || strings.Contains(a.body, tt.not) {
			t.Errorf("%s: status %d:\n%s", name, a.status, a.body)
		}
		for _, word := range tt.words {
			if !strings.Contains(a.body, word) {
				t.Errorf("%s: there is no %s in\n%s", name, word, a.body)
			}
		}
	}
}
