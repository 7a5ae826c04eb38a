package uistream

import (
	"strconv"

	"github.com/lathe-run/lathe/internal/wire"
)

func itoa(n int) string { return strconv.Itoa(n) }

// A transportWriter writes assistant-ui's AssistantTransport, in which parts are distinguished by their index:
//
//	data: {"type":"part-start","path":[],"part":{"type":"text"}}
//	data: {"type":"text-delta","path":[0],"textDelta":"It is "}
type transportWriter struct {
	*output
	parts int // number of parts begun
	open  int // index of the open block
}

func (*transportWriter) knowsOpen() bool { return false }

// message appends a frame about the message as a whole.
func (w *transportWriter) message(typ string, members ...any) {
	w.dst = w.opened(typ).Lit(`,"path":[]`).Fields(members...).EndEvent()
}

// at appends a frame about the part with an index.
func (w *transportWriter) at(part int, typ string, members ...any) {
	w.dst = w.opened(typ).Arr("path").Int(int64(part)).Lit("]").Fields(members...).EndEvent()
}

// part appends the beginning of the next part.
func (w *transportWriter) part(typ string, members ...any) {
	w.message("part-start", "part", wire.ObjectOf(append([]any{"type", typ}, members...)...))
	w.parts++
}

func (w *transportWriter) begin(h *head) {
	if h.runID != "" {
		w.message("data", "data", wire.ArrayOf(wire.ObjectOf("type", "run", "runId", h.runID)))
	}
}

func (w *transportWriter) stepStart(turn int) {
	w.message("step-start", "messageId", "step-"+itoa(turn))
}

func (w *transportWriter) blockStart(b block) {
	w.open = w.parts
	w.part(b.part())
}

func (w *transportWriter) blockDelta(_ block, s string) { w.at(w.open, "text-delta", "textDelta", s) }

func (w *transportWriter) blockEnd(block) { w.at(w.open, "part-finish") }

func (w *transportWriter) callStart(c *call) {
	c.index = w.parts
	w.part("tool-call", "toolCallId", c.shown, "toolName", c.name)
}

func (w *transportWriter) callArgs(c *call, s string) { w.at(c.index, "text-delta", "textDelta", s) }

func (w *transportWriter) callReady(c *call) {
	if c.sent == 0 {
		w.callArgs(c, "{}")
	}
	w.at(c.index, "tool-call-args-text-finish")
}

func (w *transportWriter) callBroken(c *call) { w.callReady(c) }

func (w *transportWriter) approval(c *call) {
	w.message("data", "data", wire.ArrayOf(wire.ObjectOf("type", "approval", "approval", approvalValue(c))))
}

func (w *transportWriter) result(c *call, o *outcome) {
	w.at(c.index, "result", "result", outputValue(o.content), "isError", o.failed)
	w.at(c.index, "part-finish")
}

func (w *transportWriter) file(mediaType, url string) {
	at := w.parts
	w.part("file", "data", url, "mimeType", mediaType)
	w.at(at, "part-finish")
}

func (w *transportWriter) stepEnd(_ int, s *step) {
	w.message("step-finish", "finishReason", stepFinish(s.finish), "usage", usage(s.usage), "isContinued", false)
}

func (w *transportWriter) end(e *ending) {
	for _, c := range e.pending {
		if c.begun {
			w.at(c.index, "part-finish")
		}
	}
	failure := e.failure
	if e.aborted {
		failure = "cancelled: the run was cancelled"
	}
	if failure != "" {
		w.message("error", "error", failure, "code", e.code)
	}
	w.message("message-finish", "finishReason", e.finish, "usage", usage(e.usage))
	w.dst = w.dst.Lit("data: [DONE]\n\n")
}
