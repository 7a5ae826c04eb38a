package uistream

import (
	"github.com/lathe-run/lathe/internal/rawjson"
)

// dataWriter writes the data stream: lines of a code, a colon and JSON. Its clients join texts, also of two steps, if no other part
// stands between them.
type dataWriter struct {
	said kind // of the text that the last part is; noBlock: it is no text
	next bool // a step has begun since
}

func (*dataWriter) knowsOpen() bool { return false }

func line(dst []byte, code byte) []byte { return append(dst, code, ':', '{') }

func closeLine(dst []byte) []byte { return append(dst, "}\n"...) }

func text(dst []byte, code byte, s string) []byte {
	return append(rawjson.AppendQuote(append(dst, code, ':'), s), '\n')
}

func (*dataWriter) begin(dst []byte, h *head) []byte {
	if h.runID == "" {
		return dst
	}
	dst = str(append(dst, "2:[{"...), "type", "run")
	dst = str(dst, "runId", h.runID)
	return append(dst, "}]\n"...)
}

func (w *dataWriter) stepStart(dst []byte, turn int) []byte {
	w.next = true
	return closeLine(str(line(dst, 'f'), "messageId", "step-"+itoa(turn)))
}

func (*dataWriter) blockStart(dst []byte, _ block) []byte { return dst }

func (w *dataWriter) blockDelta(dst []byte, b block, s string) []byte {
	if b.kind == reasoningBlock {
		w.said = noBlock
		return text(dst, 'g', s)
	}
	if w.said != noBlock && (w.next || w.said != b.kind) {
		dst = text(dst, '0', "\n\n")
	}
	w.said, w.next = b.kind, false
	return text(dst, '0', s)
}

func (*dataWriter) blockEnd(dst []byte, _ block) []byte { return dst }

func (w *dataWriter) callStart(dst []byte, c *call) []byte {
	w.said = noBlock
	dst = str(line(dst, 'b'), "toolCallId", c.shown)
	return closeLine(str(dst, "toolName", c.name))
}

func (*dataWriter) callArgs(dst []byte, c *call, s string) []byte {
	dst = str(line(dst, 'c'), "toolCallId", c.shown)
	return closeLine(str(dst, "argsTextDelta", s))
}

func (*dataWriter) callBroken(dst []byte, _ *call) []byte { return dst }

func (*dataWriter) callReady(dst []byte, c *call) []byte {
	if !isObject(c.args) || !finite(c.args) {
		return dst // the readable part was streamed in pieces
	}
	dst = str(line(dst, '9'), "toolCallId", c.shown)
	dst = str(dst, "toolName", c.name)
	return closeLine(appendInput(member(dst, "args"), c.args))
}

func (*dataWriter) approval(dst []byte, c *call) []byte {
	dst = str(append(dst, "2:[{"...), "type", "approval")
	dst = append(member(dst, "approval"), approvalValue(nil, c)...)
	return append(dst, "}]\n"...)
}

func (*dataWriter) result(dst []byte, c *call, o *outcome) []byte {
	dst = str(line(dst, 'a'), "toolCallId", c.shown)
	dst = append(member(dst, "result"), appendOutput(nil, o.content)...)
	if o.failed {
		dst = append(member(dst, "isError"), "true"...)
	}
	return closeLine(dst)
}

func (w *dataWriter) file(dst []byte, mediaType, url string) []byte {
	w.said = noBlock
	dst = str(line(dst, 'k'), "data", url)
	return closeLine(str(dst, "mimeType", mediaType))
}

func (*dataWriter) stepEnd(dst []byte, _ int, s *step) []byte {
	dst = str(line(dst, 'e'), "finishReason", stepFinish(s.finish))
	dst = usageBoth(dst, s.usage.InputTokens, s.usage.OutputTokens)
	return closeLine(append(member(dst, "isContinued"), "false"...))
}

// usageBoth writes the usage under the names of both generations of clients.
func usageBoth(dst []byte, in, out int64) []byte {
	dst = append(member(dst, "usage"), '{')
	for _, name := range [][2]string{{"promptTokens", "completionTokens"}, {"inputTokens", "outputTokens"}} {
		dst = num(num(dst, name[0], in), name[1], out)
	}
	return append(dst, '}')
}

func (*dataWriter) end(dst []byte, e *ending) []byte {
	if e.failure != "" {
		dst = text(dst, '3', e.failure)
	}
	if e.aborted {
		dst = text(dst, '3', "cancelled: the run was cancelled")
	}
	dst = str(line(dst, 'd'), "finishReason", e.finish)
	return closeLine(usageBoth(dst, e.usage.InputTokens, e.usage.OutputTokens))
}
