package uistream

// aguiWriter writes AG-UI's events.
type aguiWriter struct {
	mark func(int)
	head *head
	turn int
	said string // the id of the turn's first message: its calls belong to it
	open string // the id of the open message
}

// knowsOpen returns true: the client keeps its messages from run to run.
func (*aguiWriter) knowsOpen() bool { return true }

func (w *aguiWriter) frame(dst []byte, typ string) []byte {
	w.mark(len(dst))
	return append(append(append(dst, `data: {"type":"`...), typ...), '"')
}

func (w *aguiWriter) begin(dst []byte, h *head) []byte {
	w.head = h
	dst = str(w.frame(dst, "RUN_STARTED"), "threadId", h.threadID)
	dst = closeFrame(str(dst, "runId", h.agRunID))
	if h.runID == "" || h.runID == h.agRunID {
		return dst
	}
	dst = str(w.frame(dst, "CUSTOM"), "name", "lathe.run")
	return closeFrame(append(str(append(member(dst, "value"), '{'), "runId", h.runID), '}'))
}

func stepName(turn int) string { return "turn-" + itoa(turn) }

func (w *aguiWriter) stepStart(dst []byte, turn int) []byte {
	w.turn, w.said = turn, ""
	return closeFrame(str(w.frame(dst, "STEP_STARTED"), "stepName", stepName(turn)))
}

func (w *aguiWriter) blockStart(dst []byte, b block) []byte {
	w.open = w.head.messageID + "-" + b.id
	id := w.open
	if b.kind == reasoningBlock {
		dst = closeFrame(str(w.frame(dst, "REASONING_START"), "messageId", id))
		dst = str(w.frame(dst, "REASONING_MESSAGE_START"), "messageId", id)
		return closeFrame(str(dst, "role", "reasoning"))
	}
	if w.said == "" {
		w.said = id
	}
	dst = str(w.frame(dst, "TEXT_MESSAGE_START"), "messageId", id)
	return closeFrame(str(dst, "role", "assistant"))
}

func (w *aguiWriter) blockDelta(dst []byte, b block, s string) []byte {
	typ := "TEXT_MESSAGE_CONTENT"
	if b.kind == reasoningBlock {
		typ = "REASONING_MESSAGE_CONTENT"
	}
	dst = str(w.frame(dst, typ), "messageId", w.open)
	return closeFrame(str(dst, "delta", s))
}

func (w *aguiWriter) blockEnd(dst []byte, b block) []byte {
	id := w.open
	if b.kind == reasoningBlock {
		dst = closeFrame(str(w.frame(dst, "REASONING_MESSAGE_END"), "messageId", id))
		return closeFrame(str(w.frame(dst, "REASONING_END"), "messageId", id))
	}
	return closeFrame(str(w.frame(dst, "TEXT_MESSAGE_END"), "messageId", id))
}

func (w *aguiWriter) callStart(dst []byte, c *call) []byte {
	if w.said == "" {
		w.said = w.head.messageID + "-t" + itoa(w.turn)
	}
	dst = str(w.frame(dst, "TOOL_CALL_START"), "toolCallId", c.shown)
	dst = str(dst, "toolCallName", c.name)
	return closeFrame(str(dst, "parentMessageId", w.said))
}

func (w *aguiWriter) callArgs(dst []byte, c *call, s string) []byte {
	dst = str(w.frame(dst, "TOOL_CALL_ARGS"), "toolCallId", c.shown)
	return closeFrame(str(dst, "delta", s))
}

func (w *aguiWriter) callReady(dst []byte, c *call) []byte {
	if c.sent == 0 {
		dst = w.callArgs(dst, c, "{}")
	}
	return closeFrame(str(w.frame(dst, "TOOL_CALL_END"), "toolCallId", c.shown))
}

func (w *aguiWriter) callBroken(dst []byte, c *call) []byte {
	return closeFrame(str(w.frame(dst, "TOOL_CALL_END"), "toolCallId", c.shown))
}

// approval writes nothing: the end of the stream has the interrupt.
func (*aguiWriter) approval(dst []byte, _ *call) []byte { return dst }

func (w *aguiWriter) result(dst []byte, c *call, o *outcome) []byte {
	dst = str(w.frame(dst, "TOOL_CALL_RESULT"), "messageId", w.head.messageID+"-r-"+c.shown)
	dst = str(dst, "toolCallId", c.shown)
	dst = str(dst, "content", o.content)
	return closeFrame(str(dst, "role", "tool"))
}

func (w *aguiWriter) file(dst []byte, mediaType, url string) []byte {
	dst = str(w.frame(dst, "CUSTOM"), "name", "lathe.file")
	dst = str(append(member(dst, "value"), '{'), "mediaType", mediaType)
	return closeFrame(append(str(dst, "url", url), '}'))
}

func (w *aguiWriter) stepEnd(dst []byte, turn int, _ *step) []byte {
	return closeFrame(str(w.frame(dst, "STEP_FINISHED"), "stepName", stepName(turn)))
}

func (w *aguiWriter) end(dst []byte, e *ending) []byte {
	if e.failure != "" {
		dst = str(w.frame(dst, "RUN_ERROR"), "message", e.failure)
		return closeFrame(str(dst, "code", e.code))
	}
	dst = str(w.frame(dst, "RUN_FINISHED"), "threadId", w.head.threadID)
	dst = str(dst, "runId", w.head.agRunID)
	dst = append(member(dst, "outcome"), '{')
	switch {
	case e.aborted:
		dst = str(dst, "type", "cancelled")
	case asks(e.pending):
		dst = w.interrupts(str(dst, "type", "interrupt"), e.pending)
	default:
		dst = str(dst, "type", "success")
		if len(e.pending) > 0 {
			dst = append(member(dst, "pendingToolCallIds"), '[')
			for i, c := range e.pending {
				if i > 0 {
					dst = append(dst, ',')
				}
				dst = appendQuoted(dst, c.shown)
			}
			dst = append(dst, ']')
		}
	}
	return closeFrame(append(dst, '}'))
}

func asks(pending []*call) bool {
	for _, c := range pending {
		if c.approval != "" {
			return true
		}
	}
	return false
}

func (w *aguiWriter) interrupts(dst []byte, pending []*call) []byte {
	dst = append(member(dst, "interrupts"), '[')
	for _, c := range pending {
		if c.approval == "" {
			continue
		}
		if dst[len(dst)-1] != '[' {
			dst = append(dst, ',')
		}
		dst = str(append(dst, '{'), "id", c.approval)
		dst = str(dst, "reason", "tool_approval")
		dst = str(dst, "message", "Allow the call of "+c.name+"?")
		dst = str(dst, "toolCallId", c.shown)
		dst = append(optional(dst, "expiresAt", c.expires), '}')
	}
	return append(dst, ']')
}
