package uistream

import (
	"slices"

	"github.com/lathe-run/lathe/internal/wire"
)

// An aguiWriter writes the events of AG-UI, such as
//
//	data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"msg_1-t1-1","delta":"It is "}
type aguiWriter struct {
	*output
	head   *head
	turn   int
	parent string // id of the first message of the turn, to which its calls belong
	open   string // id of the open message
}

// knowsOpen returns true: the client keeps its messages from run to run.
func (*aguiWriter) knowsOpen() bool { return true }

func (w *aguiWriter) begin(h *head) {
	w.head = h
	w.frame("RUN_STARTED", "threadId", h.threadID, "runId", h.agRunID)
	if h.runID != "" && h.runID != h.agRunID {
		w.frame("CUSTOM", "name", "lathe.run", "value", wire.ObjectOf("runId", h.runID))
	}
}

func stepName(turn int) string { return "turn-" + itoa(turn) }

func (w *aguiWriter) stepStart(turn int) {
	w.turn, w.parent = turn, ""
	w.frame("STEP_STARTED", "stepName", stepName(turn))
}

func (w *aguiWriter) blockStart(b block) {
	w.open = w.head.messageID + "-" + b.id
	if b.kind == reasoningBlock {
		w.frame("REASONING_START", "messageId", w.open)
		w.frame("REASONING_MESSAGE_START", "messageId", w.open, "role", "reasoning")
		return
	}
	if w.parent == "" {
		w.parent = w.open
	}
	w.frame("TEXT_MESSAGE_START", "messageId", w.open, "role", "assistant")
}

func (w *aguiWriter) blockDelta(b block, s string) {
	typ := "TEXT_MESSAGE_CONTENT"
	if b.kind == reasoningBlock {
		typ = "REASONING_MESSAGE_CONTENT"
	}
	w.frame(typ, "messageId", w.open, "delta", s)
}

func (w *aguiWriter) blockEnd(b block) {
	if b.kind == reasoningBlock {
		w.frame("REASONING_MESSAGE_END", "messageId", w.open)
		w.frame("REASONING_END", "messageId", w.open)
		return
	}
	w.frame("TEXT_MESSAGE_END", "messageId", w.open)
}

func (w *aguiWriter) callStart(c *call) {
	if w.parent == "" {
		w.parent = w.head.messageID + "-t" + itoa(w.turn)
	}
	w.frame("TOOL_CALL_START", "toolCallId", c.shown, "toolCallName", c.name, "parentMessageId", w.parent)
}

func (w *aguiWriter) callArgs(c *call, s string) {
	w.frame("TOOL_CALL_ARGS", "toolCallId", c.shown, "delta", s)
}

func (w *aguiWriter) callReady(c *call) {
	if c.sent == 0 {
		w.callArgs(c, "{}")
	}
	w.callBroken(c)
}

func (w *aguiWriter) callBroken(c *call) { w.frame("TOOL_CALL_END", "toolCallId", c.shown) }

// approval writes nothing, since the end of the stream contains the interrupt.
func (*aguiWriter) approval(*call) {}

func (w *aguiWriter) result(c *call, o *outcome) {
	w.frame("TOOL_CALL_RESULT", "messageId", w.head.messageID+"-r-"+c.shown, "toolCallId", c.shown, "content", o.content, "role", "tool")
}

func (w *aguiWriter) file(mediaType, url string) {
	w.frame("CUSTOM", "name", "lathe.file", "value", wire.ObjectOf("mediaType", mediaType, "url", url))
}

func (w *aguiWriter) stepEnd(turn int, _ *step) { w.frame("STEP_FINISHED", "stepName", stepName(turn)) }

func (w *aguiWriter) end(e *ending) {
	if e.failure != "" {
		w.frame("RUN_ERROR", "message", e.failure, "code", e.code)
		return
	}
	var outcome wire.JSON
	switch {
	case e.aborted:
		outcome = wire.ObjectOf("type", "cancelled")
	case slices.ContainsFunc(e.pending, func(c *call) bool { return c.approval != "" }):
		outcome = wire.ObjectOf("type", "interrupt", "interrupts", interrupts(e.pending))
	case len(e.pending) == 0:
		outcome = wire.ObjectOf("type", "success")
	default:
		var ids []wire.JSON
		for _, c := range e.pending {
			ids = append(ids, wire.Quoted(c.shown))
		}
		outcome = wire.ObjectOf("type", "success", "pendingToolCallIds", wire.ArrayOf(ids...))
	}
	w.frame("RUN_FINISHED", "threadId", w.head.threadID, "runId", w.head.agRunID, "outcome", outcome)
}

func interrupts(pending []*call) wire.JSON {
	var all []wire.JSON
	for _, c := range pending {
		if c.approval != "" {
			all = append(all, wire.ObjectOf("id", c.approval, "reason", "tool_approval", "message", "Allow the call of "+c.name+"?",
				"toolCallId", c.shown, "expiresAt", wire.Optional(c.expires)))
		}
	}
	return wire.ArrayOf(all...)
}
