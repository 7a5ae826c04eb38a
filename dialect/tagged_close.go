package dialect

import (
	"strings"

	"github.com/lathe-run/lathe"
)

// closing takes what follows a tag that may close the value.
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

// endsCall reports whether the text ends inside of a tag that ends a call.
func (t *tagged) endsCall(text string) bool {
	for i, r := range t.g.roles {
		if (r == roleWrapClose || r == roleCallClose) && len(text) > 2 && strings.HasPrefix(t.g.list[i], text) {
			return true
		}
	}
	return false
}

// peeking takes what follows a tag that may open the next parameter where the key stands behind it:
// the key, its end, and the tag of its value.
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

// peeked takes a whole tag of a parameter inside of a value whose closing tag may be missing. At
// the beginning of a line, and with the name of a parameter that has no value yet, the tag opens
// that one. Else the value cannot be read, unless the tag turns out to be closed inside of it.
func (t *tagged) peeked(key string, types valueTypes) {
	if !t.atLine() || t.inner+t.inWraps+t.inCalls > 0 || t.params.has(key) || !declares(t.schema(t.name), key) {
		t.notClosed()
		t.inner++
		return
	}
	t.token = append(t.token[:0], key...)
	if t.endValue(false, true, roleText, ""); t.state == taggedBody && !t.param(types) {
		t.spoil(lathe.CodePayloadParseError)
	}
}

// ending takes what follows a tag that ends the call though the value was not closed. It counts
// where nothing but the next call comes after it.
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

// ended ends the call whose last value was not closed.
func (t *tagged) ended() {
	r := roleCallClose
	if t.wrapped {
		r = roleWrapClose
	}
	if t.endValue(true, true, r, ""); t.state == taggedBody {
		t.endCall(r)
	}
}

// contains reports whether text may still be buffered.
func (t *tagged) contains(text string) bool {
	return len(t.pend)+len(text) <= t.opts.MaxPayloadBytes+maxTagBytes
}

// notClosed makes what seemed to close the value part of it.
func (t *tagged) notClosed() {
	if t.state == taggedClose && t.inner > 0 {
		t.inner--
	}
	t.state = taggedValue
	t.piece(string(t.pend))
}

// endValue ends the value; last says that the call ends with it, missing that its closing tag did
// not come. text is the mark that decided it.
func (t *tagged) endValue(last, missing bool, r role, text string) {
	t.keep(string(t.pend))
	t.keep(text)
	if t.tail == "\r" || !t.strips && !missing {
		t.addTail()
	}
	t.state = taggedBody
	if t.whole = t.value.end(last); t.inner > 0 {
		t.spoil(lathe.CodePayloadParseError)
		t.inBad(r)
	}
}

// closeValue ends a value that the text's end may have closed.
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

// cutValue ends a call whose value the text's end cut off.
func (t *tagged) cutValue() {
	if t.state == taggedClose {
		if t.tail == "\r" || !t.strips {
			t.addTail()
		}
		t.value.end(false)
	} else {
		if !t.strips {
			t.addTail()
		}
		t.value.cut()
	}
	t.end(true)
}
