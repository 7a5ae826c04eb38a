package uistream

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// An output is what an [Encoder] and its writer append to.
type output struct {
	dst  wire.JSON
	last int // index in dst at which the last frame begins; -1: none
}

// frame appends a server-sent event whose data is an object with a type and members; see [wire.ObjectOf].
func (o *output) frame(typ string, members ...any) {
	o.dst = o.opened(typ).Fields(members...).EndEvent()
}

// opened returns the output with the beginning of an event.
func (o *output) opened(typ string) wire.JSON {
	o.last = len(o.dst)
	return o.dst.Lit(`data: {"type":`).Quote(typ)
}

func usage(u lathe.Usage) wire.JSON {
	return wire.ObjectOf("inputTokens", u.InputTokens, "outputTokens", u.OutputTokens)
}

func approvalValue(c *call) wire.JSON {
	return wire.ObjectOf("approvalId", c.approval, "toolCallId", c.shown, "toolName", c.name, "expiresAt", wire.Optional(c.expires))
}

// runMetadata returns the metadata of a message, or nothing if the run has no id.
func runMetadata(runID, model string) wire.JSON {
	if runID == "" {
		return nil
	}
	return wire.ObjectOf("runId", runID, "model", wire.Optional(model))
}

// stepFinish returns the finish reason of one turn in the terms of the AI SDK.
func stepFinish(r lathe.FinishReason) string {
	switch r {
	case lathe.FinishStop:
		return finishStop
	case lathe.FinishToolCalls:
		return finishToolCalls
	case lathe.FinishLength:
		return finishLength
	case lathe.FinishContentFilter:
		return finishFilter
	case lathe.FinishUnknown:
	}
	return "unknown"
}
