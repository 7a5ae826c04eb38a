package callid

import (
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
)

// Each call has an id of its own, results keep to their calls, and a conversation that grows keeps its ids.
func TestUniqueIDs(t *testing.T) {
	t.Parallel()
	call := func(id string) lathe.Message {
		return lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.ToolCall{ID: id}}}
	}
	result := func(id string) lathe.Message {
		return lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: id}}}
	}
	both := lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.ToolCall{ID: "a"}, lathe.ToolCall{ID: "b"}}}
	conversation := []lathe.Message{call("a"), result("a"), call("a_2"), result("a_2"), call("a"), result("a"), both, result("b"), result("a"), call("a_2"), result("a_2"), result("nobody")}
	const want = "a a a_2 a_2 a_3 a_3 a_4 b b a_4 a_2_2 a_2_2 nobody"
	for n := range len(conversation) + 1 {
		var u Unique
		var ids []string
		for _, m := range conversation[:n] {
			for _, p := range u.Apply(m).Parts {
				switch p := p.(type) {
				case lathe.ToolCall:
					ids = append(ids, p.ID)
				case lathe.ToolResult:
					ids = append(ids, p.CallID)
				default:
				}
			}
		}
		if !slices.Equal(ids, strings.Fields(want)[:len(ids)]) {
			t.Errorf("%d messages have the ids %q, want the beginning of %q", n, ids, want)
		}
	}
	if conversation[4].Parts[0].(lathe.ToolCall).ID != "a" {
		t.Error("Apply has changed its message")
	}
}
