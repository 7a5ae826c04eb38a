package provider_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/provider"
)

// Mistral's templates and server refuse ids of calls that are not nine letters and digits. The request is repeated with
// short ones, even if one attempt alone is allowed; later runs send short ids at once; the history keeps the server's own.
func TestServerThatRefusesLongIDs(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]string{
		"llama.cpp": `{"error":{"code":400,"message":"While executing CallExpression: Jinja Exception: Tool call IDs should be alphanumeric strings with length 9!","type":"invalid_request_error"}}`,
		"Mistral":   `{"object":"error","message":"Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.","type":"invalid_request_error","code":3280}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requests := 0
			m := serve(t, func(w http.ResponseWriter, r *http.Request) {
				requests++
				body, _ := io.ReadAll(r.Body)
				var req struct {
					Messages []struct {
						ToolCallID string                `json:"tool_call_id"`
						ToolCalls  []struct{ ID string } `json:"tool_calls"`
					}
				}
				if err := json.Unmarshal(body, &req); err != nil {
					t.Error(err)
				}
				called := ""
				for _, msg := range req.Messages {
					for _, call := range msg.ToolCalls {
						called = call.ID
					}
					if id := msg.ToolCallID; id != "" && (id != called || len(id) != 9 || strings.Trim(id, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") != "") {
						w.WriteHeader(400)
						io.WriteString(w, refusal)
						return
					}
				}
				if called == "" {
					stream(w, data(chunk(`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"add_numbers","arguments":"{\"a\":7,\"b\":35}"}}]}`), finished("tool_calls"), done))
					return
				}
				stream(w, data(text("42"), finished("stop"), done))
			}, func(o *provider.Options) { o.Retry.Attempts = 1 })
			for i, want := range []int{3, 2} {
				requests = 0
				s := play(t, m, "x", lathe.Settings{}, lathe.Limits{})
				if s.result.Answer != "42" || requests != want || s.result.History[1].Calls()[0].ID != "call_1" {
					t.Errorf("run %d: %q after %d requests, want %d: %v", i, s.result.Answer, requests, want, s.result.Err)
				}
			}
		})
	}
}

// A server that refuses short ids, too, is not asked without end.
func TestServerThatRefusesAllIDs(t *testing.T) {
	t.Parallel()
	requests := 0
	m := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		requests++
		w.WriteHeader(400)
		io.WriteString(w, `{"error":{"message":"Tool call IDs should be alphanumeric strings with length 9!"}}`)
	}, nil)
	if s := play(t, m, "x", lathe.Settings{}, lathe.Limits{}); s.result.Reason != lathe.ReasonUpstreamError || requests != 2 {
		t.Errorf("ended %s after %d requests", s.result.Reason, requests)
	}
}
