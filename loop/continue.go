package loop

import (
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// TakeOver returns the messages that a run takes over from another run which it continues. messages are those that the other run has added
// to its input. Each call in the result is followed by a tool message. A call without a result, or with the result `cancelled`, gets the
// result `interrupted` if ran returns true for its id, which means that its tool may have been called; otherwise it gets `cancelled`.
// TakeOver omits messages at the end that are synthetic or are answers without calls, because the model will be called again. It does not
// change messages.
func TakeOver(messages []lathe.Message, ran func(callID string) bool) []lathe.Message {
	for len(messages) > 0 && comesAgain(&messages[len(messages)-1]) {
		messages = messages[:len(messages)-1]
	}
	out := make([]lathe.Message, 0, len(messages))
	for len(messages) > 0 {
		m := messages[0]
		messages = messages[1:]
		results := messages[:toolMessages(messages)]
		messages = messages[len(results):]
		out = append(out, m)
		for _, call := range m.Calls() {
			out = append(out, takenResult(call, results, ran))
		}
	}
	return out
}

// comesAgain reports whether m, the last message, is a request of the loop or an answer: the model is then called again.
func comesAgain(m *lathe.Message) bool {
	return m.Synthetic || m.Role == lathe.RoleAssistant && len(m.Calls()) == 0
}

// toolMessages returns the number of tool messages at the beginning of messages.
func toolMessages(messages []lathe.Message) int {
	if n := slices.IndexFunc(messages, func(m lathe.Message) bool { return m.Role != lathe.RoleTool }); n >= 0 {
		return n
	}
	return len(messages)
}

// takenResult returns the tool message for a call; results are the tool messages after the message with the call.
func takenResult(call lathe.ToolCall, results []lathe.Message, ran func(callID string) bool) lathe.Message {
	r := lathe.ToolResult{CallID: call.ID, Name: call.Name, IsError: true, Code: lathe.CodeCancelled, Content: refusal(lathe.CodeCancelled)}
	for _, m := range results {
		if id, ok := answered(&m); !ok || id != call.ID {
			continue
		}
		r = m.Parts[0].(lathe.ToolResult)
		if r.Code != lathe.CodeCancelled {
			return m
		}
		break
	}
	if ran(call.ID) {
		r.Code, r.Content = lathe.CodeInterrupted, refusal(lathe.CodeInterrupted)
	}
	return lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{r}}
}

// taken returns the last TakenOver messages of the input, or nil if the run continues no other run.
func (in *Input) taken() []lathe.Message {
	if in.extra.Continues == "" {
		return nil
	}
	n := min(max(in.extra.TakenOver, 0), len(in.Messages))
	return in.Messages[len(in.Messages)-n:]
}

// takenCalls returns a trace of each call that has a result in the messages.
func takenCalls(messages []lathe.Message) []event.CallTrace {
	var calls []event.CallTrace
	for i := range messages {
		for _, p := range messages[i].Parts {
			if r, ok := p.(lathe.ToolResult); ok {
				calls = append(calls, event.CallTrace{ID: r.CallID, Tool: r.Name, OK: !r.IsError, Code: r.Code, Executed: executed(r.Code)})
			}
		}
	}
	return calls
}

// executed reports whether the tool of a call that ended with this code may have been called.
func executed(code lathe.Code) bool {
	switch code {
	case "", lathe.CodeExecutionFailed, lathe.CodeTimeout, lathe.CodeCancelled, lathe.CodeInterrupted, lathe.CodeInvalidOutput,
		lathe.CodeRedactionFailed, lathe.CodeOutputTooLarge:
		return true
	default:
		return false
	}
}
