package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/server"
)

// A member that leaves a part of the conversation to the server is never ignored: each wire honours it or refuses it by name, on
// models of every wire, relayed or not, and where tokens are counted.
func TestMembersForTheRestOfTheConversationAreNotIgnored(t *testing.T) {
	t.Parallel()
	values := map[string]string{
		"cachedContent": `"cachedContents/1"`, "cached_content": `"cachedContents/1"`, "conversation": `"conv_1"`, "previous_interaction_id": `"i_1"`,
		"previous_response_id": `"resp_1"`, "prompt": `{"id":"pmpt_1"}`, "thread": `{"type":"continue","previous_message_id":"msg_1"}`,
	}
	counts := map[string]string{"responses": "/v1/responses/input_tokens", "messages": "/v1/messages/count_tokens", "gemini": "/v1beta/models/sim/demo:countTokens"}
	for _, upstream := range []lathe.Wire{lathe.WireOpenAIChat, lathe.WireResponses, lathe.WireMessages, lathe.WireGemini} {
		t.Run(string(upstream), func(t *testing.T) {
			t.Parallel()
			f, m := relaying(t, upstream, "")
			for client, c := range wireClients {
				for name, value := range values {
					body := strings.TrimSuffix(c.body(true, nil, lathe.User("and now?")), "}") + `,"` + name + `":` + value
					check := func(path, body string) {
						resp, answer := f.do("POST", path, body)
						if resp.StatusCode < 400 || resp.StatusCode >= 500 || !strings.Contains(answer, name) && !strings.Contains(answer, strings.Replace(name, "cached_c", "cachedC", 1)) || m.sent.Load() != nil {
							t.Errorf("%s of %s at %s: %d %s, ignored %q", name, client, path, resp.StatusCode, answer, resp.Header.Values("X-Lathe-Ignored"))
						}
						const details = `"details":{"error_code":"thread_unsupported_request","unsupported":["thread"]}}`
						if name == "thread" && client == "messages" && (resp.StatusCode != http.StatusBadRequest || !strings.Contains(answer, details)) {
							t.Errorf("at %s, whose clients send the whole conversation after %s: %d %s", path, details, resp.StatusCode, answer)
						}
					}
					check(c.path(true), body+"}")
					check(c.path(true), body+`,"lathe":{"tool_use_mode":"relaxed"}}`)
					if path := counts[client]; path != "" {
						check(path, body+"}")
					}
				}
			}
		})
	}
}

// A model's list passes such a member on if the client gets the model server's own bytes, and not where the server makes
// requests of its own.
func TestPassLeavesTheConversationToTheModelServer(t *testing.T) {
	t.Parallel()
	m := &modelServer{}
	f := serve(t, &setting{model: m.model(t, lathe.WireMessages), pass: []string{"thread"}, opts: func(o *server.Options) { o.Setup.Tools = nil }})
	const body = `{"model":"sim/demo","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"thread":{"type":"create"}%s}`
	if resp, answer := f.do("POST", "/v1/messages", fmt.Sprintf(body, `,"lathe":{"tool_use_mode":"relaxed"}`)); resp.StatusCode != http.StatusBadRequest || m.sent.Load() != nil {
		t.Errorf("written anew: %d %s", resp.StatusCode, answer)
	}
	f.do("POST", "/v1/messages", fmt.Sprintf(body, ""))
	if sent := m.sent.Load(); sent == nil || !strings.Contains(*sent, `"thread":{"type":"create"}`) {
		t.Errorf("the model server was sent %v", sent)
	}
	f.do("POST", "/v1/messages", fmt.Sprintf(strings.Replace(body, `{"type":"create"}`, "null", 1), ""))
	if sent := m.sent.Load(); !strings.Contains(*sent, "hi") {
		t.Errorf("null: %v", sent)
	}
}
