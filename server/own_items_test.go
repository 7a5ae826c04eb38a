package server

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gateway/splice"
	"github.com/lathe-run/lathe/internal/wire/messages"
)

// TestBlocksOfOtherServersStay: blocks of MCP servers that the model's vendor called are no calls of this server.
func TestBlocksOfOtherServersStay(t *testing.T) {
	vendor := lathe.Message{Role: lathe.RoleAssistant, Wire: lathe.WireMessages, Parts: []lathe.Part{
		lathe.Opaque{JSON: []byte(`{"type":"mcp_tool_use","id":"mcptoolu_01","name":"f","server_name":"theirs","input":{}}`)},
		lathe.Opaque{JSON: []byte(`{"type":"mcp_tool_result","tool_use_id":"mcptoolu_01","content":[]}`)},
		lathe.Opaque{JSON: []byte(`{"type":"server_tool_use","id":"srvtoolu_01","name":"web_search","input":{}}`)},
	}}
	if out, changed := (&caller{}).resolveItems([]lathe.Message{vendor}); changed {
		t.Errorf("changed to %+v", out)
	}
	id := messages.ServerCallID("call_1")
	block := []byte(`{"type":"mcp_tool_use","id":"` + id + `","name":"f","input":{"a":1}}`)
	if !splice.IsOwn(block) {
		t.Fatalf("%s is not taken for a call of this server", block)
	}
	call, result, ok := readCall(block, map[string][]byte{id: []byte(`{"type":"mcp_tool_result","tool_use_id":"` + id + `","is_error":true,"content":[{"type":"text","text":"x"}]}`)})
	wantCall := lathe.ToolCall{ID: "call_1", Name: "f", Arguments: `{"a":1}`}
	wantResult := lathe.ToolResult{CallID: "call_1", Name: "f", Content: "x", IsError: true}
	if d := cmp.Diff(wantCall, call) + cmp.Diff(wantResult, result); d != "" || !ok {
		t.Errorf("(-want +got) %v:\n%s", ok, d)
	}
}
