package splice

import (
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
)

// The places of a request find a message by its parts, so that a message without ids of this server keeps them.
func TestOnlyMessagesWithIDsGetOtherParts(t *testing.T) {
	t.Parallel()
	id := "call_" + strings.Repeat("0", 26) + "_" + strings.Repeat("A", 24)
	other := func(string) string { return "call_1" }
	said := lathe.User("hi")
	if got := withIDs(said, other); &got.Parts[0] != &said.Parts[0] {
		t.Error("a message without ids has other parts")
	}
	called := lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Text{Text: "t"}, lathe.ToolCall{ID: id}, lathe.ToolCall{ID: id}}}
	got := withIDs(called, other)
	for i := 1; i < 3; i++ {
		if got.Parts[i].(lathe.ToolCall).ID != "call_1" || called.Parts[i].(lathe.ToolCall).ID != id {
			t.Errorf("part %d: got %v, and the message given has %v", i, got.Parts[i], called.Parts[i])
		}
	}
}
