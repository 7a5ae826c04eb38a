package loop

import (
	"encoding/json"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/tool"
)

// Abandon returns the events that end a run which no process will resume. The caller must store them after the events of the log. Each open
// call gets a result: `interrupted` if its tool may have been called, `cancelled` if not. The run ends `interrupted`. For a run that has
// ended, and for the zero State, Abandon returns nil. It does not change s.
func (s *State) Abandon() []event.Data {
	if s.Finished != nil || s.LastID == 0 {
		return nil
	}
	var out []event.Data
	planned := s.Planned
	for _, o := range s.Open {
		if !o.Planned {
			o.Seq, o.Tool = planned, "unknown"
			planned++
			out = append(out, &event.ToolCallPlanned{ToolCallID: o.ID, Tool: o.Tool, Seq: o.Seq})
		}
		if o.Asked {
			out = append(out, &event.ApprovalResolved{ToolCallID: o.ID, Tool: o.Tool, Seq: o.Seq, Decision: "denied", ReasonCode: "cancelled"})
		}
		code := lathe.CodeCancelled
		if o.Begun {
			code = lathe.CodeInterrupted
		}
		out = append(out, &event.ToolCallResult{ToolCallID: o.ID, Tool: o.Tool, Seq: o.Seq, Status: "error", ErrorType: code, Message: tool.Text(code), Result: refusal(code)})
	}
	return append(out, &event.RunFinished{Reason: lathe.ReasonInterrupted, Status: lathe.ReasonInterrupted.Status(), Turns: s.Turn, ToolCalls: planned,
		Usage: s.Usage, ErrorCode: string(lathe.CodeInterrupted)})
}

// refusal returns the content of the tool message for a call that ended with the code.
func refusal(code lathe.Code) string {
	var content struct {
		OK    bool `json:"ok"`
		Error struct {
			Code    lathe.Code `json:"code"`
			Message string     `json:"message"`
		} `json:"error"`
	}
	content.Error.Code, content.Error.Message = code, tool.Text(code)
	b, _ := json.Marshal(&content) // cannot fail for these types
	return string(b)
}
