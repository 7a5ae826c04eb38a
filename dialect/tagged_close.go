package dialect

import (
	"strings"

	"github.com/lathe-run/lathe"
)

// This file decides where a value ends. A tag that may end it is buffered in pending, and the tokens after it are read in one of the states
// taggedClose, taggedNextTag, taggedNextKey, taggedNextEq and taggedEnding, until they confirm the end (endValue, endLastValue) or refute it
// (notClosed). Each refuted text becomes part of the value:
//
//	a </parameter> b</parameter></function></tool_call>
//	  refuted       confirmed: the value is "a </parameter> b"

// afterClose reads a token after a tag that may close the value.
func (t *tagged) afterClose(text string, mark int, r role) {
	switch {
	case mark < 0 && trimSpace(text) == "" && t.hasRoom(text):
		t.pending = append(t.pending, text...)
	case r == roleParam && !t.closed:
		t.endValue()
		if t.state == taggedBody {
			t.body(text, r)
		} else {
			t.keep(text)
		}
	case r == roleCallClose && !t.closed && t.wrapped:
		t.pending = append(t.pending, text...)
		t.closed = true
	case r == roleCallClose && !t.closed, r == roleWrapClose && t.wrapped:
		t.endLastValue(text, r)
	case r == roleCall && t.closed: // pending has the mark that ends the call
		t.endLastValue("", roleCallClose)
		t.scanned(text, mark)
	case t.last && mark < 0 && t.grammar.beginsEnd(text):
		t.closed = true
	default:
		t.notClosed()
		t.scanned(text, mark)
	}
}

// beginsEnd reports whether text is the beginning of a tag that ends a call.
func (g *grammar) beginsEnd(text string) bool {
	for i, r := range g.roles {
		endsCall := r == roleWrapClose || r == roleCallClose
		if endsCall && strings.HasPrefix(g.list[i], text) {
			return len(text) > len("</")
		}
	}
	return false
}

// nextKey reads the tokens after a tag that may open the next parameter, in a grammar whose key follows the tag: the key, its end, and
// the tag of its value.
func (t *tagged) nextKey(text string, mark int, r role) {
	switch {
	case t.state == taggedNextKey && mark < 0 && len(t.token)+len(text) <= maxNameBytes:
		t.token = append(t.token, text...)
		t.pending = append(t.pending, text...)
	case t.state == taggedNextKey && r == roleKeyClose:
		t.pending = append(t.pending, text...)
		t.state = taggedNextEq
	case t.state == taggedNextEq && mark < 0 && trimSpace(text) == "" && t.hasRoom(text):
		t.pending = append(t.pending, text...)
	case t.state == taggedNextEq && r == roleValue:
		t.pending = append(t.pending, text...)
		t.nextParam(string(t.token), 0)
	default:
		t.notClosed()
		t.scanned(text, mark)
	}
}

// nextParam handles a complete parameter tag inside a value whose closing tag may be missing. At the beginning of a line, and with the name
// of a declared parameter that has no value yet, the tag opens that parameter. Otherwise it is part of the value, and the call is
// unreadable unless a closing tag inside the value matches it.
func (t *tagged) nextParam(key string, types valueTypes) {
	isNested := t.nested != nestedTags{}
	isNew := declares(t.schema(t.name), key) && !t.params.has(key)
	if isNested || !isNew || !t.lines.atLine() {
		t.notClosed()
		t.nested.params++
		return
	}
	t.token = append(t.token[:0], key...)
	t.endValue()
	if t.state == taggedBody && !t.param(types) {
		t.becomeUnreadable(lathe.CodePayloadParseError)
	}
}

// afterEnd reads a token after a tag that may end the call although no tag closed the value. The tag ends the call only if the end of the
// wrapper or the next call follows.
func (t *tagged) afterEnd(text string, mark int, r role) {
	beginsNext := r == roleWrap || r == roleDrop || r == roleCall && !t.wrapped
	switch {
	case !t.hasRoom(text):
		t.notClosed()
		t.scanned(text, mark)
	case mark < 0 && trimSpace(text) == "":
		t.pending = append(t.pending, text...)
	case r == roleWrapClose && !(t.closed && t.wrapped):
		t.pending = append(t.pending, text...)
		t.closed = true
	case t.closed && beginsNext:
		t.endUnclosed()
		t.scanned(text, mark)
	default:
		t.notClosed()
		t.scanned(text, mark)
	}
}

// endUnclosed closes the call whose last value has no closing tag.
func (t *tagged) endUnclosed() {
	r := roleCallClose
	if t.wrapped {
		r = roleWrapClose
	}
	t.endLastValue("", r)
}

// hasRoom reports whether pending has room for text.
func (t *tagged) hasRoom(text string) bool {
	return len(t.pending)+len(text) <= t.opts.MaxPayloadBytes+maxTagBytes
}

// notClosed makes the buffered text part of the value, because it does not close it.
func (t *tagged) notClosed() {
	if t.state == taggedClose && t.nested.params > 0 {
		t.nested.params--
	}
	t.state = taggedValue
	t.addPiece(string(t.pending))
}

// endValue ends the value, after which another parameter follows. The state is then taggedBody, or taggedBad if the value has a parameter tag
// without a closing one.
func (t *tagged) endValue() {
	t.endValueText("")
	t.value.end()
	if t.nested.params > 0 {
		t.becomeUnreadable(lathe.CodePayloadParseError)
	}
}

// endLastValue ends the value as endValue does, and the call. r is the role of the mark that ends the call; text is that mark if it was not
// passed to keep yet.
func (t *tagged) endLastValue(text string, r role) {
	t.endValueText(text)
	t.complete = t.value.endLast()
	if t.nested.params == 0 {
		t.endCall(r)
		return
	}
	t.becomeUnreadable(lathe.CodePayloadParseError)
	t.inBad(r)
}

// endCall closes the call at a mark of role r.
func (t *tagged) endCall(r role) {
	if !t.complete {
		t.args(t.params.end())
	}
	t.end(whole)
	t.state = taggedGap
	t.wrapped = t.wrapped && r != roleWrapClose
	t.leave()
}

// endValueText adds the line break that ends the value, unless it belongs to the tag after the value.
func (t *tagged) endValueText(text string) {
	t.keep(string(t.pending))
	t.keep(text)
	hasTag := t.state == taggedClose
	if t.lines.tail == "\r" || hasTag && !t.lines.strips {
		t.value.add(t.lines.flush())
	}
	t.state = taggedBody
}

// closeValue ends a value that the end of the text may have closed.
func (t *tagged) closeValue() {
	switch {
	case t.closed && t.state == taggedEnding:
		t.endUnclosed()
	case t.closed:
		t.endLastValue("", roleCallClose)
	default:
		t.cutValue()
	}
	if t.state == taggedBad {
		t.endUnreadable()
	}
}

// cutValue ends a call whose value the end of the text truncates.
func (t *tagged) cutValue() {
	closes := t.state == taggedClose
	if !t.lines.strips || closes && t.lines.tail == "\r" {
		t.value.add(t.lines.flush())
	}
	if closes {
		t.value.end()
	} else {
		t.value.cut()
	}
	t.end(truncated)
}
