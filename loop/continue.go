package loop

import (
	"slices"

	"github.com/lathe-run/lathe"
)

// TakeOver returns what a run that continues another one takes over of said: the messages of the other run after
// those that it started from. Each call in it is answered. A call that has no answer, or was cancelled, is
// answered `interrupted` where ran reports that its tool may have been called, and `cancelled` where not. An
// answer without calls at the end is left out: the model is asked again. said is not changed.
func TakeOver(said []lathe.Message, ran func(callID string) bool) []lathe.Message {
	end := len(said)
	for end > 0 && (said[end-1].Synthetic || said[end-1].Role == lathe.RoleAssistant && len(said[end-1].Calls()) == 0) {
		end--
	}
	out := make([]lathe.Message, 0, end)
	for i := 0; i < end; i++ {
		out = append(out, said[i])
		calls := said[i].Calls()
		first := i + 1
		for i+1 < end && said[i+1].Role == lathe.RoleTool {
			i++
		}
		results := said[first : i+1]
		for _, call := range calls {
			n := slices.IndexFunc(results, func(m lathe.Message) bool { id, _ := answered(&m); return id == call.ID })
			r := lathe.ToolResult{CallID: call.ID, Name: call.Name, IsError: true, Code: lathe.CodeCancelled}
			if n >= 0 {
				r = results[n].Parts[0].(lathe.ToolResult)
			}
			if n >= 0 && r.Code != lathe.CodeCancelled {
				out = append(out, results[n])
				continue
			}
			if ran(call.ID) {
				r.Code, r.Content = lathe.CodeInterrupted, refusal(lathe.CodeInterrupted)
			} else if n < 0 {
				r.Content = refusal(lathe.CodeCancelled)
			}
			out = append(out, lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{r}})
		}
	}
	return out
}

// taken returns the messages that the run took over from the run that it continues.
func (in *Input) taken() []lathe.Message {
	if in.Continues == "" {
		return nil
	}
	return in.Messages[len(in.Messages)-min(max(in.TakenOver, 0), len(in.Messages)):]
}

// takenCalls returns the calls that the messages answer, as the trace of a run has them.
func takenCalls(messages []lathe.Message) []lathe.CallTrace {
	var calls []lathe.CallTrace
	for i := range messages {
		for _, p := range messages[i].Parts {
			if r, ok := p.(lathe.ToolResult); ok {
				calls = append(calls, lathe.CallTrace{ID: r.CallID, Tool: r.Name, OK: !r.IsError, Code: r.Code, Executed: executed(r.Code)})
			}
		}
	}
	return calls
}

// executed reports whether a call that was answered with the code may have run.
func executed(code lathe.Code) bool {
	switch code {
	case "", lathe.CodeExecutionFailed, lathe.CodeTimeout, lathe.CodeCancelled, lathe.CodeInterrupted, lathe.CodeInvalidOutput,
		lathe.CodeRedactionFailed, lathe.CodeOutputTooLarge:
		return true
	default:
		return false
	}
}
