package dialect

import (
	"github.com/lathe-run/lathe"
)

// tagged reads the calls of a grammar. A value is closed by what follows its closing tag: only
// where another parameter, or the end of the call and of its wrapper, follows, is the tag one;
// else it is part of the value.
//
// Calls without their wrapper are taken when the tool was offered.
type tagged struct {
	attempt
	g     *grammar
	state taggedState

	wrapped bool
	lead    string // white space before a call that may not be one
	token   []byte // the name, key or tag being read
	quoted  byte   // the open quote in the tag
	params  parameters
	whole   bool // the arguments are whole: a value took their place

	value  rawValue
	fresh  bool   // nothing of the value was read, and a line break there is the tag's
	empty  bool   // the value is empty but for a line break of the tag's
	tail   string // the line break, or its beginning, at the value's end: buffered
	strips bool   // and is the closing tag's
	pend   []byte // what may close the value
	closed bool   // pend has closed the call too
	inner  int    // tags of parameters inside of the value that were not closed in it
	// Wrappers and calls inside of the value that were not closed in it.
	inWraps, inCalls int
	js               jsonScan
	payload          payload

	depth int  // wrappers open in an attempt that cannot be read
	turn  turn // the message being read
}

type taggedState uint8

const (
	taggedText    taggedState = iota
	taggedGap                 // after a call: white space is buffered
	taggedWrap                // inside of the wrapper, before the call
	taggedName                // the name behind the wrapper
	taggedHead                // the tag that opens a call
	taggedBody                // between parameters
	taggedParam               // the tag that opens a parameter
	taggedKey                 // the key behind it
	taggedEq                  // between key and value
	taggedValue               //
	taggedClose               // after a tag that may close the value
	taggedPeek                // in a tag that may open the next parameter though the value was not closed
	taggedPeekKey             // the same, in the key behind such a tag
	taggedPeekEq              // and after it
	taggedEnding              // after a tag that may end the call though the value was not closed
	taggedJSON                // JSON arguments
	taggedObject              // a JSON object with name and arguments
	taggedBad                 // inside of an attempt that cannot be read
)

func (t *tagged) read() {
	for {
		if t.state == taggedHead || t.state == taggedParam || t.state == taggedPeek {
			if t.in == "" {
				return
			}
			t.tag()
			continue
		}
		text, mark, ok := t.next()
		if !ok {
			return
		}
		t.scanned(text, mark)
	}
}

// scanned takes what the scanner found.
func (t *tagged) scanned(text string, mark int) {
	r := t.g.role(mark)
	switch t.state {
	case taggedText:
		t.outside(text, mark, r)
	case taggedGap:
		t.gap(text, mark, r)
	case taggedValue:
		t.inValue(text, r)
	case taggedClose:
		t.closing(text, mark, r)
	case taggedPeekKey, taggedPeekEq:
		t.peeking(text, mark, r)
	case taggedEnding:
		t.ending(text, mark, r)
	case taggedObject:
		t.object(text, r)
	case taggedBad:
		if t.turn.junk && (r == roleStart || r == roleEnd) {
			t.giveUp()
			t.turn = turn{header: true}
			return
		}
		t.keep(text)
		t.inBad(r)
	case taggedName, taggedKey:
		t.words(text, r)
	case taggedJSON:
		t.json(text, r)
	default:
		t.inside(text, r)
	}
}

// outside takes text between calls.
func (t *tagged) outside(text string, mark int, r role) {
	if t.g.messages && t.inTurn(text, mark, r) {
		return
	}
	switch {
	case mark < 0:
		t.prose.text(text)
	case t.prose.mark(mark, text):
	case r == roleWrap:
		t.begin(text)
		t.state, t.wrapped = taggedWrap, true
	case r == roleCall:
		t.begin(text)
		t.state, t.wrapped = taggedHead, false
	case r == roleDrop:
		t.raw = t.raw[:0]
		t.state = taggedGap
	default:
		t.prose.text(text)
	}
}

// begin begins an attempt at a call.
func (t *tagged) begin(text string) {
	t.attempt.begin(text)
	t.lead, t.token, t.quoted = "", t.token[:0], 0
}

// gap takes what follows a call. White space between calls is the format's own.
func (t *tagged) gap(text string, mark int, r role) {
	switch {
	case mark < 0 && t.blank(text):
	case r == roleCall && t.wrapped:
		t.begin(text)
		t.state = taggedHead
	case r == roleWrapClose: // after a call without its wrapper, too
		t.wrapped = false
		t.raw = t.raw[:0]
	default:
		t.state, t.wrapped = taggedText, false
		if r != roleWrap && r != roleCall && r < roleStart {
			t.spill()
		}
		lead := string(t.raw)
		t.outside(text, mark, r)
		t.lead = lead
	}
}

// inside takes what stands between the tags of an attempt.
func (t *tagged) inside(text string, r role) {
	if r == roleText {
		rest := trimSpace(text)
		if t.blanks(text[:len(text)-len(rest)]); rest == "" || t.state == taggedBad {
			return
		}
		text = rest
	}
	switch t.state {
	case taggedWrap:
		switch {
		case r == roleWrap:
			t.keep(text)
		case r == roleCall:
			t.keep(text)
			t.state = taggedHead
		case r != roleText:
			t.reject(text, r)
		case t.g.json && text[0] == '{' && len(t.raw) > t.opts.MaxPayloadBytes:
			t.spoil(lathe.CodePayloadTooLarge)
			t.keep(text)
		case t.g.json && text[0] == '{':
			t.state = taggedObject
			t.payload.reset()
			t.payload.keep(string(t.raw))
			t.payload.add(text)
		case t.g.call == nil:
			t.state = taggedName
			t.nameText(text)
		default:
			t.reject(text, r)
		}
	case taggedBody:
		t.body(text, r)
	case taggedEq:
		switch {
		case r == roleValue:
			if t.keep(text); !t.param(0) {
				t.spoil(lathe.CodePayloadParseError)
			}
		case r != roleText || !t.param(0):
			t.reject(text, r)
		default:
			t.scanned(text, -1)
		}
	}
}

// blanks takes white space between tags.
func (t *tagged) blanks(s string) {
	if t.full(s) {
		t.spoil(lathe.CodePayloadTooLarge)
	}
	t.keep(s)
}

// reject spoils an attempt at what cannot stand where it does.
func (t *tagged) reject(text string, r role) {
	t.spoil(lathe.CodePayloadParseError)
	t.keep(text)
	t.inBad(r)
}

// body takes what stands between parameters.
func (t *tagged) body(text string, r role) {
	switch {
	case r == roleParam:
		t.keep(text)
		t.token, t.quoted = t.token[:0], 0
		t.state = taggedParam
		if t.g.keyClose != nil {
			t.state = taggedKey
		}
	case r == roleCallClose, r == roleWrapClose && t.wrapped:
		t.endCall(r)
	case r == roleText && len(t.params.ends) == 0 && text[0] == '{':
		t.js = jsonScan{lax: true}
		t.state = taggedJSON
		t.json(text, r)
	default:
		t.reject(text, r)
	}
}

// spoil turns the attempt into text; the ParseError follows where it ends.
func (t *tagged) spoil(code lathe.Code) {
	t.ruin(code)
	t.depth, t.state = 1, taggedBad
}

// inBad follows the attempts inside of one that cannot be read: it ends where they all have ended.
func (t *tagged) inBad(r role) {
	if t.turn.junk {
		return
	}
	opens, closes := roleWrap, roleWrapClose
	if !t.wrapped {
		opens, closes = roleCall, roleCallClose
	}
	switch r {
	case opens:
		t.depth++
	case closes:
		t.depth--
	}
	if t.depth == 0 {
		t.giveUp()
	}
}

func (t *tagged) giveUp() {
	t.attempt.giveUp()
	t.state, t.wrapped = taggedText, false
}

// close ends the text.
func (t *tagged) finish() {
	switch t.state {
	case taggedText:
		t.closeTurn()
	case taggedWrap, taggedName:
		t.incomplete()
	case taggedHead:
		if !t.wrapped {
			t.notATag()
			return
		}
		t.incomplete()
	case taggedClose, taggedEnding:
		t.closeValue()
	case taggedValue, taggedPeek, taggedPeekKey, taggedPeekEq:
		t.cutValue()
	case taggedBody, taggedParam, taggedKey, taggedEq, taggedJSON:
		t.end(true)
	case taggedObject:
		t.payload.close(true)
	case taggedBad:
		t.giveUp()
	}
}

// incomplete gives an attempt as text that the text's end cut off before its name was known.
func (t *tagged) incomplete() {
	t.cut = true
	t.spoil(lathe.CodeIncompleteCall)
	t.giveUp()
}
