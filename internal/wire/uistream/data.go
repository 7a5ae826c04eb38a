package uistream

import (
	"github.com/lathe-run/lathe/internal/wire"
)

// A dataWriter writes the data stream protocol: lines that consist of a code, a colon and JSON. Its clients join consecutive texts, even of
// two steps, unless another part is between them.
type dataWriter struct {
	said kind // kind of the last part if it is a text; noBlock: it is not
	next bool // a step has begun since the last text
}

func (*dataWriter) knowsOpen() bool { return false }

func line(dst wire.JSON, code byte) wire.JSON { return append(dst, code, ':', '{') }

func closeLine(dst wire.JSON) wire.JSON { return dst.Lit("}\n") }

func textLine(dst wire.JSON, code byte, s string) wire.JSON {
	return wire.JSON(append(dst, code, ':')).Quote(s).Lit("\n")
}

func (*dataWriter) begin(dst wire.JSON, h *head) wire.JSON {
	if h.runID == "" {
		return dst
	}
	return dst.Lit("2:[{").Str("type", "run").Str("runId", h.runID).Lit("}]\n")
}

func (w *dataWriter) stepStart(dst wire.JSON, turn int) wire.JSON {
	w.next = true
	return closeLine(line(dst, 'f').Str("messageId", "step-"+itoa(turn)))
}

func (*dataWriter) blockStart(dst wire.JSON, _ block) wire.JSON { return dst }

func (w *dataWriter) blockDelta(dst wire.JSON, b block, s string) wire.JSON {
	if b.kind == reasoningBlock {
		w.said = noBlock
		return textLine(dst, 'g', s)
	}
	if w.said != noBlock && (w.next || w.said != b.kind) {
		dst = textLine(dst, '0', "\n\n")
	}
	w.said, w.next = b.kind, false
	return textLine(dst, '0', s)
}

func (*dataWriter) blockEnd(dst wire.JSON, _ block) wire.JSON { return dst }

func (w *dataWriter) callStart(dst wire.JSON, c *call) wire.JSON {
	w.said = noBlock
	dst = line(dst, 'b').Str("toolCallId", c.shown)
	return closeLine(dst.Str("toolName", c.name))
}

func (*dataWriter) callArgs(dst wire.JSON, c *call, s string) wire.JSON {
	dst = line(dst, 'c').Str("toolCallId", c.shown)
	return closeLine(dst.Str("argsTextDelta", s))
}

func (*dataWriter) callBroken(dst wire.JSON, _ *call) wire.JSON { return dst }

func (*dataWriter) callReady(dst wire.JSON, c *call) wire.JSON {
	if !isObject(c.args) || !finite(c.args) {
		return dst // the pieces of the arguments were already streamed
	}
	dst = line(dst, '9').Str("toolCallId", c.shown).Str("toolName", c.name)
	return closeLine(appendInput(dst.Key("args"), c.args))
}

func (*dataWriter) approval(dst wire.JSON, c *call) wire.JSON {
	return dst.Lit("2:[{").Str("type", "approval").Val("approval", approvalValue(nil, c)).Lit("}]\n")
}

func (*dataWriter) result(dst wire.JSON, c *call, o *outcome) wire.JSON {
	dst = line(dst, 'a').Str("toolCallId", c.shown).Val("result", appendOutput(nil, o.content))
	if o.failed {
		dst = dst.Bool("isError", true)
	}
	return closeLine(dst)
}

func (w *dataWriter) file(dst wire.JSON, mediaType, url string) wire.JSON {
	w.said = noBlock
	dst = line(dst, 'k').Str("data", url)
	return closeLine(dst.Str("mimeType", mediaType))
}

func (*dataWriter) stepEnd(dst wire.JSON, _ int, s *step) wire.JSON {
	dst = line(dst, 'e').Str("finishReason", stepFinish(s.finish))
	dst = usageBoth(dst, s.usage.InputTokens, s.usage.OutputTokens)
	return closeLine(dst.Bool("isContinued", false))
}

// usageBoth appends the usage under the member names of both generations of clients.
func usageBoth(dst wire.JSON, in, out int64) wire.JSON {
	dst = dst.Obj("usage")
	for _, name := range [][2]string{{"promptTokens", "completionTokens"}, {"inputTokens", "outputTokens"}} {
		dst = dst.Num(name[0], in).Num(name[1], out)
	}
	return dst.Lit("}")
}

func (*dataWriter) end(dst wire.JSON, e *ending) wire.JSON {
	if e.failure != "" {
		dst = textLine(dst, '3', e.failure)
	}
	if e.aborted {
		dst = textLine(dst, '3', "cancelled: the run was cancelled")
	}
	dst = line(dst, 'd').Str("finishReason", e.finish)
	return closeLine(usageBoth(dst, e.usage.InputTokens, e.usage.OutputTokens))
}
