package pairs

import (
	"slices"

	"github.com/lathe-run/lathe"
)

// Join appends the messages own, and the answers of the client among those of this server, in call order. It
// is false where they do not answer the calls of own.
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
			theirs[Answered(&list[i])] = &list[i] // this server's own answer comes first
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

// Answered returns the id of the call that the message answers.
func Answered(m *lathe.Message) string {
	r, _ := ResultOf(m)
	return r.CallID
}

// ResultOf returns the result in a message of a tool.
func ResultOf(m *lathe.Message) (lathe.ToolResult, bool) {
	if m.Role != lathe.RoleTool || len(m.Parts) != 1 {
		return lathe.ToolResult{}, false
	}
	r, ok := m.Parts[0].(lathe.ToolResult)
	return r, ok
}

// AnyPart reports whether a part of the messages is of the kind.
func AnyPart(messages []lathe.Message, kind func(lathe.Part) bool) bool {
	return slices.ContainsFunc(messages, func(m lathe.Message) bool { return slices.ContainsFunc(m.Parts, kind) })
}

// CallsOf returns the calls of messages by their ids.
func CallsOf(messages []lathe.Message) map[string]lathe.ToolCall {
	calls := map[string]lathe.ToolCall{}
	for i := range messages {
		for _, call := range messages[i].Calls() {
			calls[call.ID] = call
		}
	}
	return calls
}

// OpenCalls returns the calls of the last assistant message in own that have no result in own.
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

// pendingText is the result for the model of a call that waits for an approval while the conversation continues.
const pendingText = `{"ok":false,"error":{"code":"awaiting_approval","message":"A person has not decided about this call yet, so it was not made. Do not make it again. Say that it waits for an approval."}}`

// PendingResult answers a call that waits.
func PendingResult(call *lathe.ToolCall) lathe.Message {
	return lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: call.ID, Name: call.Name, Content: pendingText, IsError: true}}}
}
