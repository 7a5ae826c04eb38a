package loop

import (
	"errors"
	"fmt"

	"github.com/lathe-run/lathe"
)

// checkHistory returns an error for a history that no model server accepts: one without messages; a call without exactly one tool message
// among those right behind its message; or a tool message without a call. Its time is linear in the number of messages and calls.
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
		open := make(map[string]int, len(calls)) // number of calls without a tool message, by id
		for _, c := range calls {
			open[c.ID]++
		}
		for i+1 < len(messages) && messages[i+1].Role == lathe.RoleTool {
			i++
			id, ok := answered(&messages[i])
			if !ok || open[id] == 0 {
				return fmt.Errorf("message %d is a tool result without a call", i)
			}
			open[id]--
			if open[id] == 0 {
				delete(open, id)
			}
		}
		if len(open) > 0 {
			return fmt.Errorf("message %d has tool calls that are not answered", first)
		}
	}
	return nil
}

// answered returns the call id of the tool message m. ok is false if m is not exactly one tool result.
func answered(m *lathe.Message) (id string, ok bool) {
	if len(m.Parts) != 1 {
		return "", false
	}
	result, ok := m.Parts[0].(lathe.ToolResult)
	return result.CallID, ok
}
