package uistream

import (
	"strconv"

	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/wire"
)

// A uiWriter writes the UI message stream of the AI SDK.
type uiWriter struct {
	*output
	strict bool // for the first releases of version 5: without members that they do not support
}

func (w *uiWriter) knowsOpen() bool { return true }

func (w *uiWriter) begin(h *head) {
	w.frame("start", "messageId", h.messageID, "messageMetadata", runMetadata(h.runID, h.model))
}

func (w *uiWriter) stepStart(int) { w.frame("start-step") }

// part returns the name of the part that contains the block.
func (b block) part() string {
	if b.kind == reasoningBlock {
		return "reasoning"
	}
	return "text"
}

func (w *uiWriter) blockStart(b block) {
	var metadata wire.JSON
	if b.kind == commentaryBlock && !w.strict {
		metadata = wire.JSON(`{"lathe":{"commentary":true}}`)
	}
	w.frame(b.part()+"-start", "id", b.id, "providerMetadata", metadata)
}

func (w *uiWriter) blockDelta(b block, text string) {
	w.frame(b.part()+"-delta", "id", b.id, "delta", text)
}

func (w *uiWriter) blockEnd(b block) { w.frame(b.part()+"-end", "id", b.id) }

func (w *uiWriter) callStart(c *call) {
	w.frame("tool-input-start", "toolCallId", c.shown, "toolName", c.name)
}

func (w *uiWriter) callArgs(c *call, text string) {
	w.frame("tool-input-delta", "toolCallId", c.shown, "inputTextDelta", text)
}

func (w *uiWriter) callReady(c *call) {
	w.frame("tool-input-available", "toolCallId", c.shown, "toolName", c.name, "input", inputValue(c.args))
}

// callBroken writes nothing. tool-input-available would make a page execute its own tool, and tool-output-error is allowed for a call whose
// input is still streamed.
func (w *uiWriter) callBroken(*call) {}

// approval writes a pending approval, for clients whose protocol has no approvals as data.
func (w *uiWriter) approval(c *call) {
	if w.strict {
		w.frame("data-approval", "id", c.approval, "data", approvalValue(c))
		return
	}
	w.frame("tool-approval-request", "approvalId", c.approval, "toolCallId", c.shown)
}

// transient writes a data part that a page does not keep.
func (w *uiWriter) transient(typ string, members ...any) {
	w.frame(typ, "transient", true, "data", wire.ObjectOf(members...))
}

func (w *uiWriter) progress(c *call, d *event.ToolCallProgress) {
	var total wire.JSON
	if d.Total > 0 {
		total = number(d.Total)
	}
	w.transient("data-lathe-progress", "toolCallId", c.shown, "done", number(d.Done), "total", total, "message", wire.Optional(d.Message))
}

func number(f float64) wire.JSON { return strconv.AppendFloat(nil, f, 'g', -1, 64) }

func (w *uiWriter) executed(c *call, d *event.ToolCallExecuted) {
	w.transient("data-lathe-executed", "toolCallId", c.shown, "latencyMs", d.LatencyMS, "runId", wire.Optional(d.ChildRunID))
}

func (w *uiWriter) resultFile(c *call, mediaType, url string) {
	w.transient("data-lathe-file", "toolCallId", c.shown, "mediaType", mediaType, "url", url)
}

func (w *uiWriter) result(c *call, o *outcome) {
	switch {
	case o.denied && !w.strict:
		w.frame("tool-output-denied", "toolCallId", c.shown)
	case o.failed:
		w.frame("tool-output-error", "toolCallId", c.shown, "errorText", errorText(o))
	default:
		w.frame("tool-output-available", "toolCallId", c.shown, "output", outputValue(o.content))
	}
}

func (w *uiWriter) file(mediaType, url string) {
	w.frame("file", "url", url, "mediaType", mediaType)
}

func (w *uiWriter) stepEnd(int, *step) { w.frame("finish-step") }

func (w *uiWriter) end(e *ending) {
	reason, finish := wire.Optional("cancelled"), wire.Optional(e.finish)
	if w.strict {
		reason, finish = "", ""
	}
	switch {
	case e.aborted:
		w.frame("abort", "reason", reason)
	case e.failure != "":
		w.frame("error", "errorText", e.failure)
	}
	if !e.aborted {
		metadata := []any{"runId", wire.Optional(e.head.runID), "reason", string(e.reason)}
		if e.turns > 0 {
			metadata = append(metadata, "usage", usage(e.usage), "turns", e.turns, "toolCalls", e.calls)
		}
		w.frame("finish", "finishReason", finish, "messageMetadata", wire.ObjectOf(metadata...))
	}
	w.dst = w.dst.Lit("data: [DONE]\n\n")
}
