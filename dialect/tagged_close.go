package dialect

import (
	"strings"

	"github.com/lathe-run/lathe"
)

// closing reads a token after a tag that may close the value.
func (t *tagged) closing(text string, mark int, r role) {
	wrapped := t.wrapped && t.g.call != nil
	switch {
	case r == roleText && trimSpace(text) == "" && mark < 0 && t.contains(text):
		t.pend = append(t.pend, text...)
	case r == roleParam && !t.closed:
		if t.endValue(false, false, roleText, ""); t.state == taggedBody {
			t.body(text, r)
		} else {
			t.keep(text)
		}
	case r == roleCallClose && !t.closed && wrapped:
		t.pend = append(t.pend, text...)
		t.closed = true
	case r == roleCallClose && !t.closed, r == roleWrapClose && t.wrapped:
		if t.endValue(true, false, r, text); t.state == taggedBody {
			t.endCall(r)
		}
	case r == roleCall && t.closed:
		if t.endValue(true, false, r, ""); t.state == taggedBody {
			t.endCall(roleCallClose)
		}
		t.scanned(text, mark)
	case t.last && mark < 0 && t.endsCall(text):
		t.closed = true
	default:
		t.notClosed()
		t.scanned(text, mark)
	}
}

// endsCall reports whether text is the beginning of a tag that ends a call.
func (t *tagged) endsCall(text string) bool {
	for i, r := range t.g.roles {
		if (r == roleWrapClose || r == roleCallClose) && len(text) > 2 && strings.HasPrefix(t.g.list[i], text) {
			return true
		}
	}
	return false
}

// peeking reads the tokens after a tag that may open the next parameter, in a grammar whose key follows the tag: the key, its end, and
// the tag of its value.
func (t *tagged) peeking(text string, mark int, r role) {
	switch {
	case t.state == taggedPeekKey && r == roleText && mark < 0 && len(t.token)+len(text) <= maxNameBytes:
		t.token = append(t.token, text...)
		t.pend = append(t.pend, text...)
	case t.state == taggedPeekKey && r == roleKeyClose:
		t.pend = append(t.pend, text...)
		t.state = taggedPeekEq
	case t.state == taggedPeekEq && r == roleText && mark < 0 && trimSpace(text) == "" && t.contains(text):
		t.pend = append(t.pend, text...)
	case t.state == taggedPeekEq && r == roleValue:
		t.pend = append(t.pend, text...)
		t.peeked(string(t.token), 0)
	default:
		t.notClosed()
		t.scanned(text, mark)
	}
}

// peeked handles a complete parameter tag inside a value whose closing tag may be missing. At the beginning of a line, and with the name
// of a declared parameter that has no value yet, the tag opens that parameter. Otherwise it is part of the value, and the call is
// unreadable unless a closing tag inside the value matches it.
func (t *tagged) peeked(key string, types valueTypes) {
	if !t.lines.atLine() || t.inner+t.inWraps+t.inCalls > 0 || t.params.has(key) || !declares(t.schema(t.name), key) {
		t.notClosed()
		t.inner++
		return
	}
	t.token = append(t.token[:0], key...)
	if t.endValue(false, true, roleText, ""); t.state == taggedBody && !t.param(types) {
		t.spoil(lathe.CodePayloadParseError)
	}
}

// ending reads a token after a tag that may end the call although no tag closed the value. The tag ends the call only if the end of the
// wrapper or the next call follows.
func (t *tagged) ending(text string, mark int, r role) {
	switch {
	case !t.contains(text):
		t.notClosed()
		t.scanned(text, mark)
	case r == roleText && mark < 0 && trimSpace(text) == "":
		t.pend = append(t.pend, text...)
	case r == roleWrapClose && !(t.closed && t.wrapped):
		t.pend = append(t.pend, text...)
		t.closed = true
	case t.closed && (r == roleWrap || r == roleDrop || r == roleCall && !t.wrapped):
		t.ended()
		t.scanned(text, mark)
	default:
		t.notClosed()
		t.scanned(text, mark)
	}
}

// ended closes the call whose last value has no closing tag.
func (t *tagged) ended() {
	r := roleCallClose
	if t.wrapped {
		r = roleWrapClose
	}
	if t.endValue(true, true, r, ""); t.state == taggedBody {
		t.endCall(r)
	}
}

// contains reports whether pend has room for text.
func (t *tagged) contains(text string) bool {
	return len(t.pend)+len(text) <= t.opts.MaxPayloadBytes+maxTagBytes
}

// notClosed makes the buffered text part of the value, because it does not close it.
func (t *tagged) notClosed() {
	if t.state == taggedClose && t.inner > 0 {
		t.inner--
	}
	t.state = taggedValue
	t.piece(string(t.pend))
}

// endValue ends the value. last says that the call ends with it, missing that it has no closing tag. text and r are the mark at which
// this was found.
func (t *tagged) endValue(last, missing bool, r role, text string) {
	t.keep(string(t.pend))
	t.keep(text)
	if t.lines.tail == "\r" || !t.lines.strips && !missing {
		t.addValue(t.lines.flush())
	}
	t.state = taggedBody
	if t.whole = t.value.end(last); t.inner > 0 {
		t.spoil(lathe.CodePayloadParseError)
		t.inBad(r)
	}
}

// closeValue ends a value that the end of the text may have closed.
func (t *tagged) closeValue() {
	switch {
	case t.closed && t.state == taggedEnding:
		t.ended()
	case t.closed:
		if t.endValue(true, false, roleCallClose, ""); t.state == taggedBody {
			t.endCall(roleCallClose)
		}
	default:
		t.cutValue()
	}
	if t.state == taggedBad {
		t.giveUp()
	}
}

// cutValue ends a call whose value the end of the text truncates.
func (t *tagged) cutValue() {
	closes := t.state == taggedClose
	if !t.lines.strips || closes && t.lines.tail == "\r" {
		t.addValue(t.lines.flush())
	}
	if closes {
		t.value.end(false)
	} else {
		t.value.cut()
	}
	t.end(true)
}
