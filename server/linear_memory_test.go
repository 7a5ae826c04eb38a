//go:build !race

package server_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/server"
)

// The results of calls of this server that come back as blocks are read in linear memory.
func TestResultBlocksAreReadInLinearMemory(t *testing.T) {
	f := serve(t, &setting{policy: policy.AllowAll()})
	cost := func(n int) uint64 {
		body := `{"model":"sim/demo","max_tokens":9,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[` +
			`{"type":"mcp_tool_use","id":"mcptoolu_1","name":"calculator","server_name":"lathe","input":{}},{"type":"mcp_tool_result","tool_use_id":"mcptoolu_1","content":[` +
			strings.TrimSuffix(strings.Repeat(`{"type":"text","text":"xxxxxxxx"},`, n), ",") + `]}]},{"role":"user","content":"y"}]}`
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if resp, answer := f.do("POST", "/v1/messages", body); resp.StatusCode != 200 {
			t.Fatalf("%d %s", resp.StatusCode, answer)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	cost(100)
	if small, large := cost(2_000), cost(8_000); large > 8*small {
		t.Errorf("%d bytes for 2,000 texts, %d for 8,000", small, large)
	}
}

// The memory that a request costs before its run grows with the request, not with its square.
func TestWorkBeforeARunIsLinear(t *testing.T) {
	f := serve(t, &setting{opts: func(o *server.Options) {
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
		small, large := cost(3_000), cost(12_000)
		if large > 7*small {
			t.Errorf("%s: 3,000 cost %d bytes and 12,000 cost %d", name, small, large)
		}
	}
}

// manyTools are requests of each wire that declare n tools, by the path.
func manyTools(n int) map[string]string {
	list := func(form string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, ","+form, i)
		}
		return "[" + strings.TrimPrefix(b.String(), ",") + "]"
	}
	const ask = `"messages":[{"role":"user","content":"x"}]`
	return map[string]string{
		"/v1/chat/completions":                    `{"model":"sim/demo",` + ask + `,"tools":` + list(`{"type":"function","function":{"name":"f%d"}}`) + `}`,
		"/v1/responses":                           `{"model":"sim/demo","input":"x","tools":` + list(`{"type":"function","name":"f%d"}`) + `}`,
		"/v1/responses/input_tokens":              `{"model":"sim/demo","input":"x","tools":[{"type":"namespace","name":"n","tools":` + list(`{"type":"function","name":"f%d"}`) + `}]}`,
		"/v1/messages":                            `{"model":"sim/demo","max_tokens":9,` + ask + `,"tools":` + list(`{"name":"f%d","input_schema":{"type":"object"}}`) + `}`,
		"/v1beta/models/sim/demo:generateContent": `{"contents":[{"role":"user","parts":[{"text":"x"}]}],"tools":[{"functionDeclarations":` + list(`{"name":"f%d"}`) + `}]}`,
		"/api/runs":                               `{"model":"sim/demo",` + ask + `,"client_tools":` + list(`{"type":"function","function":{"name":"f%d"}}`) + `}`,
	}
}

// The tools that a request declares are counted before they are read: refusing 100 000 of them takes no more memory than the
// body and its limit do, on each wire. Below that limit, max_tools of the run refuses them before their schemas are compiled.
func TestTooManyToolsAreRefusedBeforeTheyAreRead(t *testing.T) {
	f := serve(t, &setting{opts: func(o *server.Options) { o.Limits.MaxTools = 1000 }})
	small, large := manyTools(20_000), manyTools(100_000)
	for path, body := range manyTools(1001) {
		refused := func(body string) uint64 {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			resp, answer := f.do("POST", path, body)
			runtime.ReadMemStats(&after)
			if resp.StatusCode != 413 || !strings.Contains(answer, "serve.max_tools") {
				t.Errorf("%s: status %d: %.300s", path, resp.StatusCode, answer)
			}
			return after.Mallocs - before.Mallocs
		}
		refused(body)
		if few, many := refused(small[path]), refused(large[path]); many > 2*few+1000 {
			t.Errorf("%s: 20 000 tools take %d allocations, 100 000 take %d", path, few, many)
		}
	}
	for path, body := range manyTools(1000) {
		resp, answer := f.do("POST", path, body)
		if path == "/v1/responses/input_tokens" {
			continue // counts them
		}
		if resp.StatusCode != 400 || !strings.Contains(answer, "max_tools is 128") {
			t.Errorf("%s: status %d: %.300s", path, resp.StatusCode, answer)
		}
	}
}
