package loop

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lathe-run/lathe"
)

// checkHistory refuses a history that no model server takes: one without messages, or in which a call is not answered by
// exactly one of the tool messages right after its message, or a tool message answers no call.
func checkHistory(messages []lathe.Message) error {
	if len(messages) == 0 {
		return errors.New("there are no messages: a run starts from one at least")
	}
	for i := 0; i < len(messages); i++ {
		m := &messages[i]
		if m.Role == lathe.RoleTool {
			return fmt.Errorf("message %d is a tool result without a call", i)
		}
		calls := m.Calls()
		if len(calls) == 0 {
			continue
		}
		if m.Role != lathe.RoleAssistant {
			return fmt.Errorf("message %d is of role %s and has tool calls", i, m.Role)
		}
		first := i
		for i+1 < len(messages) && messages[i+1].Role == lathe.RoleTool {
			i++
			n := slices.IndexFunc(calls, func(c lathe.ToolCall) bool { return answers(&messages[i], c.ID) })
			if n < 0 {
				return fmt.Errorf("message %d is a tool result without a call", i)
			}
			calls = slices.Delete(calls, n, n+1)
		}
		if len(calls) > 0 {
			return fmt.Errorf("message %d has tool calls that are not answered", first)
		}
	}
	return nil
}

// answers reports whether m is the answer to the call with that id, and nothing else.
func answers(m *lathe.Message, id string) bool {
	if len(m.Parts) != 1 {
		return false
	}
	result, ok := m.Parts[0].(lathe.ToolResult)
	return ok && result.CallID == id
}
