package observe

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

func mcpCall(server bool) *event.MCPOperation {
	return &event.MCPOperation{Server: server, Method: "tools/call", Tool: "files__read", Protocol: "2025-11-25", Session: "s-1", RequestID: `"7"`,
		Transport: "tcp", Address: map[bool]string{false: "mcp.example.com:443"}[server], Code: -32602, Failure: "-32602", Began: time.Unix(10, 0), Ended: time.Unix(11, 5e8)}
}

// Requests of both roles are counted in seconds, and what clients and servers make up makes no series.
func TestMCPRequestsAreCounted(t *testing.T) {
	t.Parallel()
	m := NewMetrics(nil)
	m.MCPEnded(t.Context(), mcpCall(false))
	m.MCPEnded(t.Context(), mcpCall(true))
	m.MCPEnded(t.Context(), &event.MCPOperation{Method: "tools/list", Transport: "pipe", Began: time.Unix(10, 0), Ended: time.Unix(10, 25e7)})
	for i := range 2000 {
		m.MCPEnded(t.Context(), &event.MCPOperation{Server: true, Method: fmt.Sprintf("made/up%d", i), Failure: fmt.Sprint(-i), Transport: fmt.Sprint(i)})
		m.MCPEnded(t.Context(), &event.MCPOperation{Server: true, Method: "tools/call", Tool: fmt.Sprintf("tool%d", i)})
	}
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		`mcp_client_operation_duration_seconds_sum{error_type="-32602",gen_ai_tool_name="files__read",mcp_method_name="tools/call",network_transport="tcp"} 1.5`,
		`mcp_server_operation_duration_seconds_sum{error_type="-32602",gen_ai_tool_name="files__read",mcp_method_name="tools/call",network_transport="tcp"} 1.5`,
		`mcp_client_operation_duration_seconds_sum{error_type="",gen_ai_tool_name="",mcp_method_name="tools/list",network_transport="pipe"} 0.25`,
		`mcp_server_operation_duration_seconds_count{error_type="other",gen_ai_tool_name="",mcp_method_name="other",network_transport="tcp"} 2000`,
	} {
		if !strings.Contains(w.Body.String(), "\n"+want+"\n") {
			t.Errorf("no %s", want)
		}
	}
	if n := strings.Count(w.Body.String(), "mcp_server_operation_duration_seconds_count{"); n > maxModelSeries+len(mcpFailures) {
		t.Errorf("%d series", n)
	}
	if strings.Contains(w.Body.String(), "made/up") {
		t.Error("a method that a client made up is a label")
	}
}

// The span of a tool call has the attributes of the request to the MCP server; a request of a client has a span below the
// client's, above the run, and linked to the span of the transport.
func TestMCPAttributes(t *testing.T) {
	t.Parallel()
	s := collect(t)
	tr := newTraces(t, &TracesOptions{Endpoint: s.URL})
	emitted := func(ctx context.Context, run string, d event.Data) {
		tr.Emit(ctx, event.Event{RunID: run, Turn: 1, Time: time.Unix(1, 0), Data: d})
	}
	const client, transport = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-1af7651916cd43dd8448eb211c80319c-c7ad6b7169203331-01"
	op := mcpCall(true)
	op.Parent.Parent = client
	served := tr.MCPStarted(event.WithRemoteTrace(t.Context(), event.TraceContext{Parent: transport}), op)
	emitted(served, "run_1", &event.RunStarted{})
	emitted(served, "run_1", &event.ToolCallProposed{ToolCallID: "c1", ToolName: "files__read"})
	call := event.WithTracer(lathe.WithCallMeta(served, &lathe.CallMeta{RunID: "run_1", CallID: "c1"}), "run_1", []event.Sink{tr})
	tr.MCPEnded(tr.MCPStarted(call, mcpCall(false)), mcpCall(false))
	emitted(served, "run_1", &event.ToolCallResult{ToolCallID: "c1"})
	emitted(served, "run_1", &event.RunFinished{})
	tr.MCPEnded(served, op)
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	span, run := s.spans["tools/call files__read"], s.spans["invoke_agent"]
	if len(s.spans) != 3 || span["kind"] != 2.0 || span["parentSpanId"] != "b7ad6b7169203331" || run["parentSpanId"] != span["spanId"] || run["traceId"] != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("%v\n%v", span, run)
	}
	links, _ := span["links"].([]any)
	if len(links) != 1 || links[0].(map[string]any)["spanId"] != "c7ad6b7169203331" || span["status"].(map[string]any)["code"] != 2.0 {
		t.Errorf("links %v of %v", links, span)
	}
	for name, want := range map[string]map[string]any{
		"execute_tool files__read": {"mcp.method.name": "tools/call", "mcp.protocol.version": "2025-11-25", "mcp.session.id": "s-1", "jsonrpc.request.id": "7", "rpc.response.status_code": "-32602",
			"network.transport": "tcp", "server.address": "mcp.example.com", "server.port": "443"},
		"tools/call files__read": {"mcp.method.name": "tools/call", "mcp.protocol.version": "2025-11-25", "mcp.session.id": "s-1", "rpc.response.status_code": "-32602", "error.type": "-32602",
			"network.transport": "tcp", "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "files__read"},
	} {
		got := s.attrs(name)
		for k, v := range want {
			if got[k] != v {
				t.Errorf("%s: %s is %v, want %v", name, k, got[k], v)
			}
		}
	}
}
