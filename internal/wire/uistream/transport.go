package uistream

import (
	"strconv"
)

func itoa(n int) string { return strconv.Itoa(n) }

// transportWriter writes assistant-ui's AssistantTransport. The index distinguishes parts.
type transportWriter struct {
	mark  func(int)
	parts int
	open  int // index of the open block
}

func (*transportWriter) knowsOpen() bool { return false }

func (w *transportWriter) frame(dst []byte, typ string, path int) []byte {
	w.mark(len(dst))
	dst = append(append(append(dst, `data: {"type":"`...), typ...), `","path":[`...)
	if path >= 0 {
		dst = strconv.AppendInt(dst, int64(path), 10)
	}
	return append(dst, ']')
}

// part opens the next part and leaves its object open.
func (w *transportWriter) part(dst []byte, typ string) []byte {
	dst = append(member(w.frame(dst, "part-start", -1), "part"), '{')
	w.parts++
	return str(dst, "type", typ)
}

func closePart(dst []byte) []byte { return closeFrame(append(dst, '}')) }

func (w *transportWriter) begin(dst []byte, h *head) []byte {
	if h.runID == "" {
		return dst
	}
	return w.data(dst, str(str([]byte{'{'}, "type", "run"), "runId", h.runID))
}

// data writes one open object.
func (w *transportWriter) data(dst, object []byte) []byte {
	dst = append(member(w.frame(dst, "data", -1), "data"), '[')
	return closeFrame(append(append(dst, object...), "}]"...))
}

func (w *transportWriter) stepStart(dst []byte, turn int) []byte {
	return closeFrame(str(w.frame(dst, "step-start", -1), "messageId", "step-"+itoa(turn)))
}

func (w *transportWriter) blockStart(dst []byte, b block) []byte {
	w.open = w.parts
	return closePart(w.part(dst, b.part()))
}

func (w *transportWriter) blockDelta(dst []byte, _ block, s string) []byte {
	return closeFrame(str(w.frame(dst, "text-delta", w.open), "textDelta", s))
}

func (w *transportWriter) blockEnd(dst []byte, _ block) []byte {
	return closeFrame(w.frame(dst, "part-finish", w.open))
}

func (w *transportWriter) callStart(dst []byte, c *call) []byte {
	c.index = w.parts
	dst = str(w.part(dst, "tool-call"), "toolCallId", c.shown)
	return closePart(str(dst, "toolName", c.name))
}

func (w *transportWriter) callArgs(dst []byte, c *call, s string) []byte {
	return closeFrame(str(w.frame(dst, "text-delta", c.index), "textDelta", s))
}

func (w *transportWriter) callReady(dst []byte, c *call) []byte {
	if c.sent == 0 {
		dst = w.callArgs(dst, c, "{}")
	}
	return closeFrame(w.frame(dst, "tool-call-args-text-finish", c.index))
}

func (w *transportWriter) callBroken(dst []byte, c *call) []byte { return w.callReady(dst, c) }

func (w *transportWriter) approval(dst []byte, c *call) []byte {
	object := str([]byte{'{'}, "type", "approval")
	return w.data(dst, append(member(object, "approval"), approvalValue(nil, c)...))
}

func (w *transportWriter) result(dst []byte, c *call, o *outcome) []byte {
	dst = w.frame(dst, "result", c.index)
	dst = appendOutput(member(dst, "result"), o.content)
	dst = strconv.AppendBool(member(dst, "isError"), o.failed)
	dst = closeFrame(dst)
	return closeFrame(w.frame(dst, "part-finish", c.index))
}

func (w *transportWriter) file(dst []byte, mediaType, url string) []byte {
	at := w.parts
	dst = str(w.part(dst, "file"), "data", url)
	dst = closePart(str(dst, "mimeType", mediaType))
	return closeFrame(w.frame(dst, "part-finish", at))
}

func (w *transportWriter) stepEnd(dst []byte, _ int, s *step) []byte {
	dst = str(w.frame(dst, "step-finish", -1), "finishReason", stepFinish(s.finish))
	dst = usage(dst, s.usage)
	return closeFrame(append(member(dst, "isContinued"), "false"...))
}

func (w *transportWriter) end(dst []byte, e *ending) []byte {
	for _, c := range e.pending {
		if c.begun {
			dst = closeFrame(w.frame(dst, "part-finish", c.index))
		}
	}
	failure := e.failure
	if e.aborted {
		failure = "cancelled: the run was cancelled"
	}
	if failure != "" {
		dst = str(w.frame(dst, "error", -1), "error", failure)
		dst = closeFrame(str(dst, "code", e.code))
	}
	dst = str(w.frame(dst, "message-finish", -1), "finishReason", e.finish)
	dst = closeFrame(usage(dst, e.usage))
	return append(dst, "data: [DONE]\n\n"...)
}
