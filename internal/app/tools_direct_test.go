package app_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lathe-run/lathe/internal/app"
)

// A direct call of an agent is under the limits of the key, as a run of the key is. The agent's model asks for a tool in each of
// its first six turns. A run that reaches a limit has one more call of the model, for its answer.
func TestLimitsOfAKeyHoldForDirectCalls(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := calls.Add(1)
		delta, reason := fmt.Sprintf(`{"role":"assistant","tool_calls":[{"index":0,"id":"c%d","type":"function","function":{"name":"calculator","arguments":"{\"expression\":\"%d+1\"}"}}]}`, n, n), "tool_calls"
		if n > 6 {
			delta, reason = `{"role":"assistant","content":"end"}`, "stop"
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%q}]}\n\n", delta, reason)
		fmt.Fprint(w, `data: {"id":"1","object":"chat.completion.chunk","model":"m","choices":[],"usage":{"prompt_tokens":60,"completion_tokens":60,"total_tokens":120}}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(model.Close)
	yaml := `
models: {main: {base_url: "` + model.URL + `", model: m, price: {input: 100, output: 100}}}
tools: {builtin: [calculator], run: {agent: {description: Works., model: main, tools: ["*"], effect: read_only}}}
serve: {store: memory}
keys:
`
	limits := map[string]struct {
		limit string
		calls int64
	}{
		"free":       {"", 7},
		"iterations": {"max_iterations: 2", 3},
		"toolcalls":  {"max_total_tool_calls: 1", 0}, // that of the agent
		"fewcalls":   {"max_total_tool_calls: 3", 4}, // that of the agent, two of its own, and one too many
		"tokens":     {"max_tokens_total: 130", 3},
		"cost":       {"max_cost: 0.013", 3},
	}
	for name, l := range limits {
		file := t.TempDir() + "/key"
		if err := os.WriteFile(file, []byte(permissionKey(name)), 0o600); err != nil {
			t.Fatal(err)
		}
		yaml += fmt.Sprintf("  %s: {key: \"${file:%s}\", %s}\n", name, file, l.limit)
	}
	h := open(t, strings.ReplaceAll(yaml, ", }", "}"), &app.Options{}).Handler()
	for name, l := range limits {
		calls.Store(0)
		status, body := call(t, h, permissionKey(name), "POST", "/api/tools/agent/call", `{"arguments":{"task":"x"}}`)
		if n := calls.Load(); status != 200 || n != l.calls || strings.Contains(body, `"is_error":true`) != (l.limit != "") {
			t.Errorf("%s: status %d, %d calls of the model, want %d: %s", name, status, n, l.calls, body)
		}
	}
}
