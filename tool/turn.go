package tool

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// finishCall adds the result of a call to the outcome of the turn. Calls are finished in call order.
func (w *Work) finishCall(c *call, out *Outcome) {
	if c.parked != nil {
		w.ids.set(c.ID, idParked)
		out.Parked = true
		out.Pending = append(out.Pending, c.ToolCall)
		out.Waiting = append(out.Waiting, Call{ToolCall: c.ToolCall, Parked: c.parked})
		return
	}
	out.Calls = append(out.Calls, event.CallTrace{ID: c.ID, Tool: c.tool, Seq: c.seq, ArgsBytes: len(c.Arguments),
		OK: c.code == "" && (!c.client || c.Answer != nil), Code: c.code, Executed: c.ran, Repaired: c.repair != "", LatencyMS: c.latency.Milliseconds()})
	w.countUse(c)
	w.countChild(c, out)
	if c.client && c.code == "" && c.Answer == nil {
		w.ids.set(c.ID, idParked) // it may be refused later, in a run that does not wait for the client
		out.Pending = append(out.Pending, c.ToolCall)
		return
	}
	out.Messages = append(out.Messages, lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{
		lathe.ToolResult{CallID: c.ID, Name: c.Name, Content: c.content, Blobs: c.blobs, IsError: c.code != "", Code: c.code}}})
	w.failures.mark(failureKey{c.tool, c.target()}, c.code == "")
	w.judgeLoop(c, out)
}

// judgeLoop ends the run if this call exceeds a limit: on calls of the run, on unknown tools, or on repetitions.
func (w *Work) judgeLoop(c *call, out *Outcome) {
	if c.fault {
		w.stop(out, lathe.ReasonGuestFault, noLimit)
	}
	if c.seq >= w.limits.MaxToolCalls {
		w.stop(out, lathe.ReasonMaxToolCalls, keyMaxToolCalls)
	}
	if c.Refuse != "" || c.ParseError != "" {
		return
	}
	if c.code == lathe.CodeUnknownTool && c.entry == nil {
		w.unknown++
		if w.settings.StrictUnknownTool {
			w.stop(out, lathe.ReasonUnknownTool, noLimit)
		} else if w.unknown >= w.limits.MaxUnknownTools {
			w.stop(out, lathe.ReasonToolLoop, "max_unknown_tools")
		}
		return
	}
	w.unknown = 0
	if w.repeat.add(c) >= w.limits.MaxRepeatedCalls {
		w.stop(out, lathe.ReasonToolLoop, "max_repeated_calls")
	}
}

// noLimit is the config key of a reason that is not a limit.
const noLimit = ""

// haltCodes are the codes with which further calls end, by the reason of the end of the run. Calls after max_total_tool_calls end by that limit.
var haltCodes = map[lathe.Reason]lathe.Code{lathe.ReasonGuestFault: lathe.CodeCancelled, lathe.ReasonUnknownTool: lathe.CodeCancelled, lathe.ReasonToolLoop: lathe.CodeToolCallLimit}

// stop ends the run. The first reason counts. limit is the config key of the limit that caused it.
func (w *Work) stop(out *Outcome, reason lathe.Reason, limit string) {
	if out.Reason == "" {
		out.Reason, out.Limit = reason, limit
	}
	if w.halt == "" {
		w.halt = haltCodes[reason]
	}
}
