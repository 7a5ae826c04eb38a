package uistream

import (
	"github.com/lathe-run/lathe/internal/wire"
	"strconv"
)

func itoa(n int) string { return strconv.Itoa(n) }

// A transportWriter writes assistant-ui's AssistantTransport, in which parts are distinguished by their index.
type transportWriter struct {
	mark  func(int)
	parts int
	open  int // index of the open block
}

func (*transportWriter) knowsOpen() bool { return false }

func (w *transportWriter) frame(dst wire.JSON, typ string, path int) wire.JSON {
	w.mark(len(dst))
	dst = dst.Lit(`data: {"type":"`).Lit(typ).Lit(`","path":[`)
	if path >= 0 {
		dst = dst.Int(int64(path))
	}
	return dst.Lit("]")
}

// part appends the beginning of the next part. closePart appends its end.
func (w *transportWriter) part(dst wire.JSON, typ string) wire.JSON {
	dst = w.frame(dst, "part-start", -1).Obj("part")
	w.parts++
	return dst.Str("type", typ)
}

func closePart(dst wire.JSON) wire.JSON { return dst.Lit("}").EndEvent() }

func (w *transportWriter) begin(dst wire.JSON, h *head) wire.JSON {
	if h.runID == "" {
		return dst
	}
	return w.data(dst, wire.JSON("{").Str("type", "run").Str("runId", h.runID))
}

// data appends a data frame with object, which lacks its closing brace.
func (w *transportWriter) data(dst wire.JSON, object []byte) wire.JSON {
	return w.frame(dst, "data", -1).Arr("data").Raw(object).Lit("}]").EndEvent()
}

func (w *transportWriter) stepStart(dst wire.JSON, turn int) wire.JSON {
	return w.frame(dst, "step-start", -1).Str("messageId", "step-"+itoa(turn)).EndEvent()
}

func (w *transportWriter) blockStart(dst wire.JSON, b block) wire.JSON {
	w.open = w.parts
	return closePart(w.part(dst, b.part()))
}

func (w *transportWriter) blockDelta(dst wire.JSON, _ block, s string) wire.JSON {
	return w.frame(dst, "text-delta", w.open).Str("textDelta", s).EndEvent()
}

func (w *transportWriter) blockEnd(dst wire.JSON, _ block) wire.JSON {
	return w.frame(dst, "part-finish", w.open).EndEvent()
}

func (w *transportWriter) callStart(dst wire.JSON, c *call) wire.JSON {
	c.index = w.parts
	dst = w.part(dst, "tool-call").Str("toolCallId", c.shown)
	return closePart(dst.Str("toolName", c.name))
}

func (w *transportWriter) callArgs(dst wire.JSON, c *call, s string) wire.JSON {
	return w.frame(dst, "text-delta", c.index).Str("textDelta", s).EndEvent()
}

func (w *transportWriter) callReady(dst wire.JSON, c *call) wire.JSON {
	if c.sent == 0 {
		dst = w.callArgs(dst, c, "{}")
	}
	return w.frame(dst, "tool-call-args-text-finish", c.index).EndEvent()
}

func (w *transportWriter) callBroken(dst wire.JSON, c *call) wire.JSON { return w.callReady(dst, c) }

func (w *transportWriter) approval(dst wire.JSON, c *call) wire.JSON {
	object := wire.JSON("{").Str("type", "approval")
	return w.data(dst, object.Val("approval", approvalValue(nil, c)))
}

func (w *transportWriter) result(dst wire.JSON, c *call, o *outcome) wire.JSON {
	dst = w.frame(dst, "result", c.index)
	dst = appendOutput(dst.Key("result"), o.content)
	dst = dst.Bool("isError", o.failed).EndEvent()
	return w.frame(dst, "part-finish", c.index).EndEvent()
}

func (w *transportWriter) file(dst wire.JSON, mediaType, url string) wire.JSON {
	at := w.parts
	dst = w.part(dst, "file").Str("data", url)
	dst = closePart(dst.Str("mimeType", mediaType))
	return w.frame(dst, "part-finish", at).EndEvent()
}

func (w *transportWriter) stepEnd(dst wire.JSON, _ int, s *step) wire.JSON {
	dst = w.frame(dst, "step-finish", -1).Str("finishReason", stepFinish(s.finish))
	dst = usage(dst, s.usage)
	return dst.Bool("isContinued", false).EndEvent()
}

func (w *transportWriter) end(dst wire.JSON, e *ending) wire.JSON {
	for _, c := range e.pending {
		if c.begun {
			dst = w.frame(dst, "part-finish", c.index).EndEvent()
		}
	}
	failure := e.failure
	if e.aborted {
		failure = "cancelled: the run was cancelled"
	}
	if failure != "" {
		dst = w.frame(dst, "error", -1).Str("error", failure).Str("code", e.code).EndEvent()
	}
	dst = w.frame(dst, "message-finish", -1).Str("finishReason", e.finish)
	return usage(dst, e.usage).EndEvent().Lit("data: [DONE]\n\n")
}
