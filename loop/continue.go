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
	end := len(messages)
	for end > 0 && (messages[end-1].Synthetic || messages[end-1].Role == lathe.RoleAssistant && len(messages[end-1].Calls()) == 0) {
		end--
	}
	out := make([]lathe.Message, 0, end)
	for i := 0; i < end; {
		m := &messages[i]
		out = append(out, *m)
		i++
		first := i
		for i < end && messages[i].Role == lathe.RoleTool {
			i++
		}
		for _, call := range m.Calls() {
			out = append(out, takenResult(call, messages[first:i], ran))
		}
	}
	return out
}

// takenResult returns the tool message for a call; results are the tool messages after the message with the call.
func takenResult(call lathe.ToolCall, results []lathe.Message, ran func(callID string) bool) lathe.Message {
	n := slices.IndexFunc(results, func(m lathe.Message) bool { id, _ := answered(&m); return id == call.ID })
	r := lathe.ToolResult{CallID: call.ID, Name: call.Name, IsError: true, Code: lathe.CodeCancelled}
	if n >= 0 {
		r = results[n].Parts[0].(lathe.ToolResult)
		if r.Code != lathe.CodeCancelled {
			return results[n]
		}
	}
	if ran(call.ID) {
		r.Code, r.Content = lathe.CodeInterrupted, refusal(lathe.CodeInterrupted)
	} else if n < 0 {
		r.Content = refusal(lathe.CodeCancelled)
	}
	return lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{r}}
}

// taken returns the last TakenOver messages of the input, or nil if the run continues no other run.
func (in *Input) taken() []lathe.Message {
	if in.extra.Continues == "" {
		return nil
	}
	return in.Messages[len(in.Messages)-min(max(in.extra.TakenOver, 0), len(in.Messages)):]
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
