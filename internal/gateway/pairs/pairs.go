package pairs

import (
	"slices"

	"github.com/lathe-run/lathe"
)

// Join appends the messages own to dst, with the results of their last calls in call order: those at the end of own and those in answers,
// which are the client's. It returns false if a call has no result.
func Join(dst, own, answers []lathe.Message) ([]lathe.Message, bool) {
	if len(own) == 0 {
		return dst, false
	}
	last := len(own) - 1
	for last > 0 && own[last].Role == lathe.RoleTool {
		last--
	}
	dst = append(dst, own[:last+1]...)
	theirs := map[string]*lathe.Message{}
	for _, list := range [][]lathe.Message{answers, own[last+1:]} {
		for i := range list {
			theirs[Answered(&list[i])] = &list[i] // if both have a result for the call, that in own is used
		}
	}
	for _, call := range own[last].Calls() {
		m := theirs[call.ID]
		if m == nil {
			return dst, false
		}
		dst = append(dst, *m)
	}
	return dst, true
}

// Answered returns the id of the call whose result the message contains, or "" if it contains none.
func Answered(m *lathe.Message) string {
	r, _ := ResultOf(m)
	return r.CallID
}

// ResultOf returns the result in a tool message; false if m is no tool message with exactly one result.
func ResultOf(m *lathe.Message) (lathe.ToolResult, bool) {
	if m.Role != lathe.RoleTool || len(m.Parts) != 1 {
		return lathe.ToolResult{}, false
	}
	r, ok := m.Parts[0].(lathe.ToolResult)
	return r, ok
}

// AnyPart reports whether kind returns true for a part of the messages.
func AnyPart(messages []lathe.Message, kind func(lathe.Part) bool) bool {
	return slices.ContainsFunc(messages, func(m lathe.Message) bool { return slices.ContainsFunc(m.Parts, kind) })
}

// CallsOf returns the calls in messages by id.
func CallsOf(messages []lathe.Message) map[string]lathe.ToolCall {
	calls := map[string]lathe.ToolCall{}
	for _, m := range messages {
		for _, call := range m.Calls() {
			calls[call.ID] = call
		}
	}
	return calls
}

// OpenCalls returns the calls of the last assistant message in own that have no result in own. own must not be empty.
func OpenCalls(own []lathe.Message) []lathe.ToolCall {
	last := len(own) - 1
	answered := map[string]bool{}
	for ; last > 0 && own[last].Role == lathe.RoleTool; last-- {
		for _, p := range own[last].Parts {
			if r, ok := p.(lathe.ToolResult); ok {
				answered[r.CallID] = true
			}
		}
	}
	return slices.DeleteFunc(own[last].Calls(), func(c lathe.ToolCall) bool { return answered[c.ID] })
}

// pendingText is the result that the model receives for a call that waits for an approval while the conversation continues.
const pendingText = `{"ok":false,"error":{"code":"awaiting_approval","message":"A person has not decided about this call yet, so it was not made. Do not make it again. Say that it waits for an approval."}}`

// PendingResult returns a tool message with pendingText as the result of the call.
func PendingResult(call *lathe.ToolCall) lathe.Message {
	return lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: call.ID, Name: call.Name, Content: pendingText, IsError: true}}}
}
