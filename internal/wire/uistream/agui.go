package uistream

import (
	"github.com/lathe-run/lathe/internal/wire"
)

// An aguiWriter writes the events of AG-UI.
type aguiWriter struct {
	mark func(int)
	head *head
	turn int
	said string // id of the first message of the turn, to which its calls belong
	open string // id of the open message
}

// knowsOpen returns true: the client keeps its messages from run to run.
func (*aguiWriter) knowsOpen() bool { return true }

func (w *aguiWriter) frame(dst wire.JSON, typ string) wire.JSON {
	w.mark(len(dst))
	return dst.Lit(`data: {"type":"`).Lit(typ).Lit(`"`)
}

func (w *aguiWriter) begin(dst wire.JSON, h *head) wire.JSON {
	w.head = h
	dst = w.frame(dst, "RUN_STARTED").Str("threadId", h.threadID).Str("runId", h.agRunID).EndEvent()
	if h.runID == "" || h.runID == h.agRunID {
		return dst
	}
	return w.frame(dst, "CUSTOM").Str("name", "lathe.run").Obj("value").Str("runId", h.runID).Lit("}").EndEvent()
}

func stepName(turn int) string { return "turn-" + itoa(turn) }

func (w *aguiWriter) stepStart(dst wire.JSON, turn int) wire.JSON {
	w.turn, w.said = turn, ""
	return w.frame(dst, "STEP_STARTED").Str("stepName", stepName(turn)).EndEvent()
}

func (w *aguiWriter) blockStart(dst wire.JSON, b block) wire.JSON {
	w.open = w.head.messageID + "-" + b.id
	id := w.open
	if b.kind == reasoningBlock {
		dst = w.frame(dst, "REASONING_START").Str("messageId", id).EndEvent()
		return w.frame(dst, "REASONING_MESSAGE_START").Str("messageId", id).Str("role", "reasoning").EndEvent()
	}
	if w.said == "" {
		w.said = id
	}
	return w.frame(dst, "TEXT_MESSAGE_START").Str("messageId", id).Str("role", "assistant").EndEvent()
}

func (w *aguiWriter) blockDelta(dst wire.JSON, b block, s string) wire.JSON {
	typ := "TEXT_MESSAGE_CONTENT"
	if b.kind == reasoningBlock {
		typ = "REASONING_MESSAGE_CONTENT"
	}
	return w.frame(dst, typ).Str("messageId", w.open).Str("delta", s).EndEvent()
}

func (w *aguiWriter) blockEnd(dst wire.JSON, b block) wire.JSON {
	id := w.open
	if b.kind == reasoningBlock {
		dst = w.frame(dst, "REASONING_MESSAGE_END").Str("messageId", id).EndEvent()
		return w.frame(dst, "REASONING_END").Str("messageId", id).EndEvent()
	}
	return w.frame(dst, "TEXT_MESSAGE_END").Str("messageId", id).EndEvent()
}

func (w *aguiWriter) callStart(dst wire.JSON, c *call) wire.JSON {
	if w.said == "" {
		w.said = w.head.messageID + "-t" + itoa(w.turn)
	}
	return w.frame(dst, "TOOL_CALL_START").Str("toolCallId", c.shown).Str("toolCallName", c.name).Str("parentMessageId", w.said).EndEvent()
}

func (w *aguiWriter) callArgs(dst wire.JSON, c *call, s string) wire.JSON {
	return w.frame(dst, "TOOL_CALL_ARGS").Str("toolCallId", c.shown).Str("delta", s).EndEvent()
}

func (w *aguiWriter) callReady(dst wire.JSON, c *call) wire.JSON {
	if c.sent == 0 {
		dst = w.callArgs(dst, c, "{}")
	}
	return w.frame(dst, "TOOL_CALL_END").Str("toolCallId", c.shown).EndEvent()
}

func (w *aguiWriter) callBroken(dst wire.JSON, c *call) wire.JSON {
	return w.frame(dst, "TOOL_CALL_END").Str("toolCallId", c.shown).EndEvent()
}

// approval writes nothing, since the end of the stream contains the interrupt.
func (*aguiWriter) approval(dst wire.JSON, _ *call) wire.JSON { return dst }

func (w *aguiWriter) result(dst wire.JSON, c *call, o *outcome) wire.JSON {
	return w.frame(dst, "TOOL_CALL_RESULT").Str("messageId", w.head.messageID+"-r-"+c.shown).Str("toolCallId", c.shown).Str("content", o.content).
		Str("role", "tool").EndEvent()
}

func (w *aguiWriter) file(dst wire.JSON, mediaType, url string) wire.JSON {
	return w.frame(dst, "CUSTOM").Str("name", "lathe.file").Obj("value").Str("mediaType", mediaType).Str("url", url).Lit("}").EndEvent()
}

func (w *aguiWriter) stepEnd(dst wire.JSON, turn int, _ *step) wire.JSON {
	return w.frame(dst, "STEP_FINISHED").Str("stepName", stepName(turn)).EndEvent()
}

func (w *aguiWriter) end(dst wire.JSON, e *ending) wire.JSON {
	if e.failure != "" {
		return w.frame(dst, "RUN_ERROR").Str("message", e.failure).Str("code", e.code).EndEvent()
	}
	dst = w.frame(dst, "RUN_FINISHED").Str("threadId", w.head.threadID).Str("runId", w.head.agRunID).Obj("outcome")
	switch {
	case e.aborted:
		dst = dst.Str("type", "cancelled")
	case asks(e.pending):
		dst = w.interrupts(dst.Str("type", "interrupt"), e.pending)
	default:
		dst = dst.Str("type", "success")
		if len(e.pending) > 0 {
			dst = dst.Arr("pendingToolCallIds")
			for i, c := range e.pending {
				dst = dst.If(i > 0, ",").Quote(c.shown)
			}
			dst = dst.Lit("]")
		}
	}
	return dst.Lit("}").EndEvent()
}

func asks(pending []*call) bool {
	for _, c := range pending {
		if c.approval != "" {
			return true
		}
	}
	return false
}

func (w *aguiWriter) interrupts(dst wire.JSON, pending []*call) wire.JSON {
	dst = dst.Arr("interrupts")
	for _, c := range pending {
		if c.approval == "" {
			continue
		}
		dst = dst.If(dst[len(dst)-1] != '[', ",")
		dst = dst.Lit("{").Str("id", c.approval).Str("reason", "tool_approval").Str("message", "Allow the call of "+c.name+"?").
			Str("toolCallId", c.shown).OptStr("expiresAt", c.expires).Lit("}")
	}
	return dst.Lit("]")
}
