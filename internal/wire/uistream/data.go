package uistream

import "github.com/lathe-run/lathe/internal/wire"

// A dataWriter writes the data stream protocol: lines that consist of a code, a colon and JSON. Its clients join consecutive texts, even of
// two steps, unless another part is between them. An answer with a call begins like this:
//
//	f:{"messageId":"step-1"}
//	0:"It is "
//	b:{"toolCallId":"call_1","toolName":"weather"}
type dataWriter struct {
	*output
	last    kind // kind of the last part if it is a text; noBlock: it is not
	newStep bool // a step has begun since the last text
}

func (*dataWriter) knowsOpen() bool { return false }

func (w *dataWriter) line(code byte, value wire.JSON) {
	w.dst = append(w.dst, code, ':')
	w.dst = w.dst.Raw(value).Lit("\n")
}

func (w *dataWriter) begin(h *head) {
	if h.runID != "" {
		w.line('2', wire.ArrayOf(wire.ObjectOf("type", "run", "runId", h.runID)))
	}
}

func (w *dataWriter) stepStart(turn int) {
	w.newStep = true
	w.line('f', wire.ObjectOf("messageId", "step-"+itoa(turn)))
}

func (*dataWriter) blockStart(block) {}

func (w *dataWriter) blockDelta(b block, s string) {
	if b.kind == reasoningBlock {
		w.last = noBlock
		w.line('g', wire.Quoted(s))
		return
	}
	if w.last != noBlock && (w.newStep || w.last != b.kind) {
		w.line('0', wire.Quoted("\n\n"))
	}
	w.last, w.newStep = b.kind, false
	w.line('0', wire.Quoted(s))
}

func (*dataWriter) blockEnd(block) {}

func (w *dataWriter) callStart(c *call) {
	w.last = noBlock
	w.line('b', wire.ObjectOf("toolCallId", c.shown, "toolName", c.name))
}

func (w *dataWriter) callArgs(c *call, s string) {
	w.line('c', wire.ObjectOf("toolCallId", c.shown, "argsTextDelta", s))
}

func (*dataWriter) callBroken(*call) {}

func (w *dataWriter) callReady(c *call) {
	if isObject(c.args) && finite(c.args) {
		w.line('9', wire.ObjectOf("toolCallId", c.shown, "toolName", c.name, "args", inputValue(c.args)))
	}
}

func (w *dataWriter) approval(c *call) {
	w.line('2', wire.ArrayOf(wire.ObjectOf("type", "approval", "approval", approvalValue(c))))
}

func (w *dataWriter) result(c *call, o *outcome) {
	members := []any{"toolCallId", c.shown, "result", outputValue(o.content)}
	if o.failed {
		members = append(members, "isError", true)
	}
	w.line('a', wire.ObjectOf(members...))
}

func (w *dataWriter) file(mediaType, url string) {
	w.last = noBlock
	w.line('k', wire.ObjectOf("data", url, "mimeType", mediaType))
}

func (w *dataWriter) stepEnd(_ int, s *step) {
	w.line('e', wire.ObjectOf("finishReason", stepFinish(s.finish), "usage", usageBoth(s.usage.InputTokens, s.usage.OutputTokens), "isContinued", false))
}

// usageBoth returns the usage under the member names of both generations of clients.
func usageBoth(in, out int64) wire.JSON {
	return wire.ObjectOf("promptTokens", in, "completionTokens", out, "inputTokens", in, "outputTokens", out)
}

func (w *dataWriter) end(e *ending) {
	if e.failure != "" {
		w.line('3', wire.Quoted(e.failure))
	}
	if e.aborted {
		w.line('3', wire.Quoted("cancelled: the run was cancelled"))
	}
	w.line('d', wire.ObjectOf("finishReason", e.finish, "usage", usageBoth(e.usage.InputTokens, e.usage.OutputTokens)))
}
