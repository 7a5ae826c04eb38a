package uistream

import (
	"strconv"

	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/wire"
)

// A uiWriter writes the UI message stream of the AI SDK.
type uiWriter struct {
	mark   func(int)
	strict bool // for the first releases of version 5: without members that they do not support
}

func (w *uiWriter) open(dst wire.JSON, typ string) wire.JSON {
	w.mark(len(dst))
	return dst.Lit(`data: {"type":"`).Lit(typ).Lit(`"`)
}

func (w *uiWriter) knowsOpen() bool { return true }

func (w *uiWriter) begin(dst wire.JSON, h *head) wire.JSON {
	dst = w.open(dst, "start").Str("messageId", h.messageID)
	if h.runID != "" {
		dst = dst.Obj("messageMetadata").Str("runId", h.runID).OptStr("model", h.model).Lit("}")
	}
	return dst.EndEvent()
}

func (w *uiWriter) stepStart(dst wire.JSON, _ int) wire.JSON {
	return w.open(dst, "start-step").EndEvent()
}

func (b block) part() string {
	if b.kind == reasoningBlock {
		return "reasoning"
	}
	return "text"
}

func (w *uiWriter) blockStart(dst wire.JSON, b block) wire.JSON {
	return w.open(dst, b.part()+"-start").Str("id", b.id).
		If(b.kind == commentaryBlock && !w.strict, `,"providerMetadata":{"lathe":{"commentary":true}}`).EndEvent()
}

func (w *uiWriter) blockDelta(dst wire.JSON, b block, text string) wire.JSON {
	return w.open(dst, b.part()+"-delta").Str("id", b.id).Str("delta", text).EndEvent()
}

func (w *uiWriter) blockEnd(dst wire.JSON, b block) wire.JSON {
	return w.open(dst, b.part()+"-end").Str("id", b.id).EndEvent()
}

func (w *uiWriter) callStart(dst wire.JSON, c *call) wire.JSON {
	return w.open(dst, "tool-input-start").Str("toolCallId", c.shown).Str("toolName", c.name).EndEvent()
}

func (w *uiWriter) callArgs(dst wire.JSON, c *call, text string) wire.JSON {
	return w.open(dst, "tool-input-delta").Str("toolCallId", c.shown).Str("inputTextDelta", text).EndEvent()
}

func (w *uiWriter) callReady(dst wire.JSON, c *call) wire.JSON {
	dst = w.open(dst, "tool-input-available").Str("toolCallId", c.shown).Str("toolName", c.name)
	return appendInput(dst.Key("input"), c.args).EndEvent()
}

// callBroken writes nothing. tool-input-available would make a page execute its own tool, and tool-output-error is allowed for a call whose
// input is still streamed.
func (w *uiWriter) callBroken(dst wire.JSON, _ *call) wire.JSON { return dst }

func (w *uiWriter) approval(dst wire.JSON, c *call) wire.JSON {
	if w.strict {
		return w.approvalData(dst, c)
	}
	return w.open(dst, "tool-approval-request").Str("approvalId", c.approval).Str("toolCallId", c.shown).EndEvent()
}

// approvalData writes a pending approval for clients whose protocol has no approvals.
func (w *uiWriter) approvalData(dst wire.JSON, c *call) wire.JSON {
	return w.open(dst, "data-approval").Str("id", c.approval).Val("data", approvalValue(nil, c)).EndEvent()
}

func approvalValue(dst wire.JSON, c *call) wire.JSON {
	return dst.Lit("{").Str("approvalId", c.approval).Str("toolCallId", c.shown).Str("toolName", c.name).OptStr("expiresAt", c.expires).Lit("}")
}

func (w *uiWriter) progress(dst wire.JSON, c *call, d *event.ToolCallProgress) wire.JSON {
	dst = w.open(dst, "data-lathe-progress").Lit(`,"transient":true`).Obj("data").Str("toolCallId", c.shown).Key("done").Lit(number(d.Done))
	if d.Total > 0 {
		dst = dst.Key("total").Lit(number(d.Total))
	}
	return dst.OptStr("message", d.Message).Lit("}").EndEvent()
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

func (w *uiWriter) executed(dst wire.JSON, c *call, d *event.ToolCallExecuted) wire.JSON {
	return w.open(dst, "data-lathe-executed").Lit(`,"transient":true`).Obj("data").Str("toolCallId", c.shown).Num("latencyMs", d.LatencyMS).
		OptStr("runId", d.ChildRunID).Lit("}").EndEvent()
}

func (w *uiWriter) resultFile(dst wire.JSON, c *call, mediaType, url string) wire.JSON {
	return w.open(dst, "data-lathe-file").Lit(`,"transient":true`).Obj("data").Str("toolCallId", c.shown).Str("mediaType", mediaType).Str("url", url).Lit("}").EndEvent()
}

func (w *uiWriter) result(dst wire.JSON, c *call, o *outcome) wire.JSON {
	switch {
	case o.denied && !w.strict:
		return w.open(dst, "tool-output-denied").Str("toolCallId", c.shown).EndEvent()
	case o.failed:
		return w.open(dst, "tool-output-error").Str("toolCallId", c.shown).Str("errorText", errorText(o)).EndEvent()
	}
	dst = w.open(dst, "tool-output-available").Str("toolCallId", c.shown)
	return appendOutput(dst.Key("output"), o.content).EndEvent()
}

func (w *uiWriter) file(dst wire.JSON, mediaType, url string) wire.JSON {
	return w.open(dst, "file").Str("url", url).Str("mediaType", mediaType).EndEvent()
}

func (w *uiWriter) stepEnd(dst wire.JSON, _ int, _ *step) wire.JSON {
	return w.open(dst, "finish-step").EndEvent()
}

func (w *uiWriter) end(dst wire.JSON, e *ending) wire.JSON {
	switch {
	case e.aborted:
		dst = w.open(dst, "abort")
		if !w.strict {
			dst = dst.Str("reason", "cancelled")
		}
		dst = dst.EndEvent()
	case e.failure != "":
		dst = w.open(dst, "error").Str("errorText", e.failure).EndEvent()
	}
	if !e.aborted {
		dst = w.open(dst, "finish")
		if !w.strict {
			dst = dst.Str("finishReason", e.finish)
		}
		dst = dst.Obj("messageMetadata").OptStr("runId", e.head.runID).Str("reason", string(e.reason))
		if e.turns > 0 {
			dst = usage(dst, e.usage)
			dst = dst.Num("turns", int64(e.turns)).Num("toolCalls", int64(e.calls))
		}
		dst = dst.Lit("}").EndEvent()
	}
	return dst.Lit("data: [DONE]\n\n")
}
