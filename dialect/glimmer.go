package dialect

import (
	"strings"

	"github.com/lathe-run/lathe"
)

// The dialect glimmer, whose turn is a sequence of messages. A header names the recipient of each message: `self` for thinking, `user` for
// the answer, or a tool. After `<|start|>assistant` of the prompt the model writes
//
//	 to=self<|message|>Hm.<|eom|><|start|>assistant to=write<|message|><atem:function_calls>
//	<atem:invoke name="write">
//	…
//	</atem:function_calls><|eot|>
//
// This file reads the headers, and the content of messages outside of calls. The other methods of tagged read the calls.

// maxTurnBytes is the maximal length, in bytes, of the header of a message.
const maxTurnBytes = 256

// A message is the message being read. Only the methods in this file change it. A parser of another dialect retains the zero value.
type message struct {
	phase  messagePhase
	header string // the text of the header so far
	to     string // the recipient, once the header has ended; "" for content without a header
}

type messagePhase uint8

const (
	messageEmpty      messagePhase = iota // in the content, which is only white space so far
	messageHeader                         // in the header
	messageCalls                          // in the content, which has had calls and no text
	messageText                           // in the content, which has had text
	messageUnreadable                     // the content is text for an offered tool: the whole message is one unreadable call
)

const (
	toUser = "user"
	toSelf = "self"
)

// readMessage reads a token between calls. It returns false if the token is text or opens a call: the caller then reads it, and readMessage
// has only set the phase.
func (t *tagged) readMessage(text string, mark int, r role) bool {
	m := &t.message
	if m.phase == messageHeader {
		return t.readHeader(text, mark, r)
	}
	isAnswer := m.to == toUser && m.phase == messageText // the marks of calls are text there
	beginsForTool := m.phase == messageEmpty && m.toTool() && t.prose.think == 0
	switch {
	case r == roleStart || r == roleEnd:
		*m = message{phase: messageHeader}
		t.prose.mask.fresh()
		return true
	case m.to == toSelf:
		t.emit(lathe.DeltaReasoning, text)
		return true
	case r == roleWrap && !isAnswer: // a call
		if m.phase == messageEmpty {
			m.phase = messageCalls
		}
		return false
	case r == roleWrap || r == roleCall || r == roleMessage:
		m.phase = messageText
		t.prose.text(text)
		return true
	case mark < 0 && trimSpace(text) == "":
		return false
	case beginsForTool && t.knows(m.to): // text in place of a call
		t.begin("")
		t.name = t.toolName([]byte(m.to))
		t.becomeUnreadable(lathe.CodePayloadParseError)
		t.keep(text)
		m.phase = messageUnreadable
		return true
	}
	m.phase = messageText
	return false
}

// toTool reports whether the recipient of a message may be a tool.
func (m *message) toTool() bool { return m.to != "" && m.to != toUser }

// readHeader reads a token of the header of a message. Text that cannot be a header is emitted as text, and the mark after it is read as in
// content without a header, with the result of readMessage.
func (t *tagged) readHeader(text string, mark int, r role) bool {
	m := &t.message
	switch r {
	case roleMessage:
		*m = message{to: strings.TrimPrefix(trimSpace(m.header), "to=")}
		return true
	case roleStart, roleEnd:
		m.header = ""
		return true
	}
	header := m.header
	if mark < 0 {
		header += text
		if len(header) <= maxTurnBytes && isTurnHeader(header) {
			m.header = header
			return true
		}
	}
	*m = message{}
	if trimSpace(header) != "" {
		m.phase = messageText
	}
	t.prose.text(header)
	return mark < 0 || t.readMessage(text, mark, r)
}

// isTurnHeader reports whether s may be the beginning of a message header.
func isTurnHeader(s string) bool {
	s = trimSpace(s)
	if len(s) < len("to=") {
		return strings.HasPrefix("to=", s)
	}
	return strings.HasPrefix(s, "to=") && !strings.ContainsAny(s, " \n<")
}

// readUnreadableMessage reads a token of a message in the phase messageUnreadable, which ends with the message.
func (t *tagged) readUnreadableMessage(text string, r role) {
	if r != roleStart && r != roleEnd {
		t.keep(text)
		return
	}
	t.endUnreadable()
	t.message = message{phase: messageHeader}
}

// invokedName returns the name of the tool that an invocation calls, or "" if the recipient of the message is another tool. It corrects two
// errors of models: the name repeated as its own namespace (NAME.NAME), and a mark inside the name.
func (t *tagged) invokedName(name string) string {
	name = strings.ReplaceAll(name, t.grammar.message[0], "")
	name = t.unrepeated(name)
	if to := t.unrepeated(t.message.to); t.knows(to) && to != name {
		return ""
	}
	return name
}

// unrepeated returns NAME for NAME.NAME, if that is the name of an offered tool and NAME.NAME is not.
func (r *reader) unrepeated(name string) string {
	front, back, ok := strings.Cut(name, ".")
	if ok && front == back && !r.knows(name) && r.knows(front) {
		return front
	}
	return name
}

// endHeader ends the text inside a header. A header that begins with "to=" is markup and dropped; other text is emitted.
func (t *tagged) endHeader() {
	m := &t.message
	if m.phase == messageHeader && !strings.HasPrefix(trimSpace(m.header), "to=") {
		t.prose.text(m.header)
	}
}
