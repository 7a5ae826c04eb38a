package dialect

import (
	"strings"

	"github.com/lathe-run/lathe"
)

// maxTurnBytes is the maximal length, in bytes, of the header of a message.
const maxTurnBytes = 256

// A turn is the message being read, in a dialect whose text is a sequence of messages: ` to=NAME`, a mark, and the content. The content
// is shown text for `user`, thinking for `self`, and calls for the name of a tool.
type turn struct {
	header bool   // the parser is in the header
	text   []byte // the text of the header so far
	to     string // the recipient of the message, from its header
	inked  bool   // the message has had text
	quiet  bool   // the recipient is the user: only the call of an offered tool counts as a call
	called bool   // the message has had a call
	junk   bool   // the unreadable attempt is a whole message, not a call
}

const (
	toUser = "user"
	toSelf = "self"
)

// inTurn reads a token between calls. It returns false if the token is text that the caller must emit, or opens a call.
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

// inHeader reads a token of the header of a message. Text that cannot be a header is emitted as text.
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

// isTurnHeader reports whether s may be the beginning of a message header.
func isTurnHeader(s string) bool {
	s = trimSpace(s)
	if len(s) < len("to=") {
		return strings.HasPrefix("to=", s)
	}
	return strings.HasPrefix(s, "to=") && !strings.ContainsAny(s, " \n<")
}

// called returns the name of the tool that an invocation calls, or "" if the recipient of the message is another tool. It corrects two
// errors of models: the name repeated as its own namespace (NAME.NAME), and a mark inside the name.
func (t *tagged) called(name string) string {
	name = strings.ReplaceAll(name, t.g.message[0], "")
	name = t.unrepeated(name)
	if to := t.unrepeated(t.turn.to); t.knows(to) && to != name {
		return ""
	}
	return name
}

// unrepeated returns NAME for NAME.NAME, if that is the name of an offered tool and NAME.NAME is not.
func (t *tagged) unrepeated(name string) string {
	if front, back, ok := strings.Cut(name, "."); ok && front == back && !t.knows(name) && t.knows(front) {
		return front
	}
	return name
}

// closeTurn ends the text inside a header. A header that begins with "to=" is markup and dropped; other text is emitted.
func (t *tagged) closeTurn() {
	if header := string(t.turn.text); t.turn.header && !strings.HasPrefix(trimSpace(header), "to=") {
		t.prose.text(header)
	}
}
