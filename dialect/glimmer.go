package dialect

import (
	"strings"

	"github.com/lathe-run/lathe"
)

// maxTurnBytes bounds the header of a message.
const maxTurnBytes = 256

// A turn is the message being read where the text is a row of messages: ` to=NAME`, a mark, and
// the content, which is shown text for `user`, thinking for `self`, and calls for a tool.
type turn struct {
	header bool   // the header is being read
	text   []byte // of the header
	to     string // whom the message is for
	inked  bool   // there was text in it
	quiet  bool   // it is for the user: only the call of a tool that was offered is one
	called bool   // there was a call in it
	junk   bool   // the attempt that cannot be read is a whole message
}

const (
	toUser = "user"
	toSelf = "self"
)

// inTurn takes what stands between calls; false: it is text, or opens a call.
func (t *tagged) inTurn(text string, mark int, r role) bool {
	if t.turn.header {
		return t.inHeader(text, mark, r)
	}
	switch {
	case r == roleStart || r == roleEnd:
		t.turn = turn{header: true, text: t.turn.text[:0]}
		t.prose.mask.fresh()
		return true
	case t.turn.to == toSelf:
		t.emit(lathe.DeltaReasoning, text)
		return true
	case r == roleWrap:
		t.turn.called = true
		if t.turn.quiet = t.turn.to == toUser; t.turn.quiet && t.turn.inked {
			t.prose.text(text)
			return true
		}
		return false
	case r == roleCall, r == roleMessage:
		t.turn.inked = true
		t.prose.text(text)
		return true
	}
	blank := mark < 0 && trimSpace(text) == ""
	if !blank && !t.turn.inked && t.turn.to != "" && t.turn.to != toUser && t.prose.think == 0 && t.knows(t.turn.to) && !t.turn.called {
		t.begin("")
		t.name = t.toolName([]byte(t.turn.to))
		t.turn.junk = true
		t.spoil(lathe.CodePayloadParseError)
		t.keep(text)
		return true
	}
	t.turn.inked = t.turn.inked || !blank
	return false
}

// inHeader reads the header of a message. What is none is text.
func (t *tagged) inHeader(text string, mark int, r role) bool {
	switch {
	case r == roleMessage:
		t.turn = turn{to: strings.TrimPrefix(trimSpace(string(t.turn.text)), "to="), text: t.turn.text[:0]}
		return true
	case r == roleStart || r == roleEnd:
		t.turn.text = t.turn.text[:0]
		return true
	}
	if mark < 0 && len(t.turn.text)+len(text) <= maxTurnBytes {
		if t.turn.text = append(t.turn.text, text...); isTurnHeader(string(t.turn.text)) {
			return true
		}
		text = ""
	}
	header := string(t.turn.text) + text
	if mark >= 0 {
		header = string(t.turn.text)
	}
	t.turn = turn{text: t.turn.text[:0], inked: trimSpace(header) != ""}
	t.prose.text(header)
	return mark < 0 || t.inTurn(text, mark, r)
}

// isTurnHeader reports whether s may be the beginning of a header.
func isTurnHeader(s string) bool {
	s = trimSpace(s)
	if len(s) < len("to=") {
		return strings.HasPrefix("to=", s)
	}
	return strings.HasPrefix(s, "to=") && !strings.ContainsAny(s, " \n<")
}

// called returns the name of the tool that an invocation calls; "" where the message is for
// another tool. Models repeat the name as a name space of itself, and put marks into it.
func (t *tagged) called(name string) string {
	name = strings.ReplaceAll(name, t.g.message[0], "")
	name = t.unrepeated(name)
	if to := t.unrepeated(t.turn.to); t.knows(to) && to != name {
		return ""
	}
	return name
}

func (t *tagged) unrepeated(name string) string {
	if front, back, ok := strings.Cut(name, "."); ok && front == back && !t.knows(name) && t.knows(front) {
		return front
	}
	return name
}

// closeTurn ends the text in a header, which is markup as far as it was read.
func (t *tagged) closeTurn() {
	if header := string(t.turn.text); t.turn.header && !strings.HasPrefix(trimSpace(header), "to=") {
		t.prose.text(header)
	}
}
