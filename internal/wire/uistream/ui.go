package uistream

// uiWriter writes the UI message stream of the AI SDK.
type uiWriter struct {
	mark   func(int)
	strict bool // for the first versions 5: without keys that they do not know
}

func (w *uiWriter) open(dst []byte, typ string) []byte {
	w.mark(len(dst))
	return append(append(append(dst, `data: {"type":"`...), typ...), '"')
}

func closeFrame(dst []byte) []byte { return append(dst, "}\n\n"...) }

func (w *uiWriter) knowsOpen() bool { return true }

func (w *uiWriter) begin(dst []byte, h *head) []byte {
	dst = str(w.open(dst, "start"), "messageId", h.messageID)
	if h.runID != "" {
		dst = append(member(dst, "messageMetadata"), '{')
		dst = str(dst, "runId", h.runID)
		dst = optional(dst, "model", h.model)
		dst = append(dst, '}')
	}
	return closeFrame(dst)
}

func (w *uiWriter) stepStart(dst []byte, _ int) []byte { return closeFrame(w.open(dst, "start-step")) }

func (b block) part() string {
	if b.kind == reasoningBlock {
		return "reasoning"
	}
	return "text"
}

func (w *uiWriter) blockStart(dst []byte, b block) []byte {
	dst = str(w.open(dst, b.part()+"-start"), "id", b.id)
	if b.kind == commentaryBlock && !w.strict {
		dst = append(dst, `,"providerMetadata":{"lathe":{"commentary":true}}`...)
	}
	return closeFrame(dst)
}

func (w *uiWriter) blockDelta(dst []byte, b block, text string) []byte {
	dst = str(w.open(dst, b.part()+"-delta"), "id", b.id)
	return closeFrame(str(dst, "delta", text))
}

func (w *uiWriter) blockEnd(dst []byte, b block) []byte {
	return closeFrame(str(w.open(dst, b.part()+"-end"), "id", b.id))
}

func (w *uiWriter) callStart(dst []byte, c *call) []byte {
	dst = str(w.open(dst, "tool-input-start"), "toolCallId", c.shown)
	return closeFrame(str(dst, "toolName", c.name))
}

func (w *uiWriter) callArgs(dst []byte, c *call, text string) []byte {
	dst = str(w.open(dst, "tool-input-delta"), "toolCallId", c.shown)
	return closeFrame(str(dst, "inputTextDelta", text))
}

func (w *uiWriter) callReady(dst []byte, c *call) []byte {
	dst = str(w.open(dst, "tool-input-available"), "toolCallId", c.shown)
	dst = str(dst, "toolName", c.name)
	return closeFrame(appendInput(member(dst, "input"), c.args))
}

// callBroken writes nothing: tool-input-available makes a page execute its own tool, and tool-output-error may follow
// a call whose input is still streamed.
func (w *uiWriter) callBroken(dst []byte, _ *call) []byte { return dst }

func (w *uiWriter) approval(dst []byte, c *call) []byte {
	if w.strict {
		return w.approvalData(dst, c)
	}
	dst = str(w.open(dst, "tool-approval-request"), "approvalId", c.approval)
	return closeFrame(str(dst, "toolCallId", c.shown))
}

// approvalData writes a pending approval for clients without approvals in their protocol.
func (w *uiWriter) approvalData(dst []byte, c *call) []byte {
	dst = str(w.open(dst, "data-approval"), "id", c.approval)
	dst = append(member(dst, "data"), approvalValue(nil, c)...)
	return closeFrame(dst)
}

func approvalValue(dst []byte, c *call) []byte {
	dst = str(append(dst, '{'), "approvalId", c.approval)
	dst = str(dst, "toolCallId", c.shown)
	dst = str(dst, "toolName", c.name)
	dst = optional(dst, "expiresAt", c.expires)
	return append(dst, '}')
}

func (w *uiWriter) result(dst []byte, c *call, o *outcome) []byte {
	switch {
	case o.denied && !w.strict:
		return closeFrame(str(w.open(dst, "tool-output-denied"), "toolCallId", c.shown))
	case o.failed:
		dst = str(w.open(dst, "tool-output-error"), "toolCallId", c.shown)
		return closeFrame(str(dst, "errorText", errorText(o)))
	}
	dst = str(w.open(dst, "tool-output-available"), "toolCallId", c.shown)
	return closeFrame(appendOutput(member(dst, "output"), o.content))
}

func (w *uiWriter) file(dst []byte, mediaType, url string) []byte {
	dst = str(w.open(dst, "file"), "url", url)
	return closeFrame(str(dst, "mediaType", mediaType))
}

func (w *uiWriter) stepEnd(dst []byte, _ int, _ *step) []byte {
	return closeFrame(w.open(dst, "finish-step"))
}

func (w *uiWriter) end(dst []byte, e *ending) []byte {
	switch {
	case e.aborted:
		dst = w.open(dst, "abort")
		if !w.strict {
			dst = str(dst, "reason", "cancelled")
		}
		dst = closeFrame(dst)
	case e.failure != "":
		dst = closeFrame(str(w.open(dst, "error"), "errorText", e.failure))
	}
	if !e.aborted {
		dst = w.open(dst, "finish")
		if !w.strict {
			dst = str(dst, "finishReason", e.finish)
		}
		dst = append(member(dst, "messageMetadata"), '{')
		dst = optional(dst, "runId", e.head.runID)
		dst = str(dst, "reason", string(e.reason))
		if e.turns > 0 {
			dst = usage(dst, e.usage)
			dst = num(dst, "turns", int64(e.turns))
			dst = num(dst, "toolCalls", int64(e.calls))
		}
		dst = closeFrame(append(dst, '}'))
	}
	return append(dst, "data: [DONE]\n\n"...)
}
