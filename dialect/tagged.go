package dialect

import (
	"github.com/lathe-run/lathe"
)

// tagged is the parser of a grammar. It divides the text into runs of text and marks, and state selects the method that reads the next of
// them. On the left the states in which the call on the right is read:
//
//	taggedText               I write the file.
//	taggedWrap, taggedHead   <tool_call><function=write>
//	taggedBody, taggedParam  <parameter=path>
//	taggedValue              a.txt
//	taggedClose              </parameter></function></tool_call>
//	taggedGap                (after the call)
//
// Values are not escaped and may contain tags. A closing tag therefore ends a value only if another parameter, or the end of the call and of
// its wrapper, follows; otherwise the tag is part of the value. Models also forget closing tags: the tag of a declared parameter, or the
// end of the call, at the beginning of a line may end the value, too. In both cases the text from the tag on is buffered until the text
// after it decides; see tagged_close.go. Names and tags are read in tagged_head.go, values and JSON in tagged_value.go.
//
// A call without its wrapper counts only if it names an offered tool.
type tagged struct {
	attempt
	grammar *grammar
	state   taggedState
	message message // the message being read, in the dialect glimmer

	// The call.
	wrapped  bool       // the call is inside a wrapper
	lead     string     // white space before a possible call; text if it is not one
	token    []byte     // the name, key or tag being read
	quoted   byte       // the quote that is open in the tag; 0 if none is
	params   parameters // the parameters so far
	js       jsonScan   // scanner of arguments that are JSON
	payload  payload    // reads a JSON object with name and arguments
	complete bool       // the arguments are complete: one JSON value replaced all parameters

	// The value, in the states taggedValue to taggedEnding.
	value   rawValue
	lines   valueLines
	pending []byte // buffered text that may end the value
	closed  bool   // pending also ends the call
	nested  nestedTags
}

type taggedState uint8

const (
	taggedText    taggedState = iota
	taggedGap                 // after a call: white space is buffered
	taggedWrap                // in the wrapper, before the call
	taggedName                // in the name that follows the wrapper
	taggedHead                // in the tag that opens a call
	taggedBody                // between parameters
	taggedParam               // in the tag that opens a parameter
	taggedKey                 // in the key that follows that tag
	taggedEq                  // between key and value
	taggedValue               // in a value
	taggedClose               // after a tag that may close the value
	taggedNextTag             // in a tag that may open the next parameter, although no tag closed the value
	taggedNextKey             // in the key that follows such a tag
	taggedNextEq              // after that key
	taggedEnding              // after a tag that may end the call, although no tag closed the value
	taggedJSON                // in arguments that are JSON
	taggedObject              // in a JSON object with name and arguments
	taggedBad                 // in an unreadable attempt
)

func (t *tagged) read() {
	for {
		if t.state == taggedHead || t.state == taggedParam || t.state == taggedNextTag {
			if t.in == "" {
				return
			}
			t.openingTag()
			continue
		}
		text, mark, ok := t.next()
		if !ok {
			return
		}
		t.scanned(text, mark)
	}
}

// scanned reads one token of the scanner: a run of text (mark is negative) or a mark.
func (t *tagged) scanned(text string, mark int) {
	r := t.grammar.role(mark)
	switch t.state {
	case taggedText:
		t.outside(text, mark, r)
	case taggedGap:
		t.gap(text, mark, r)
	case taggedValue:
		t.inValue(text, r)
	case taggedClose:
		t.afterClose(text, mark, r)
	case taggedNextKey, taggedNextEq:
		t.nextKey(text, mark, r)
	case taggedEnding:
		t.afterEnd(text, mark, r)
	case taggedObject:
		t.object(text, r)
	case taggedBad:
		if t.message.phase == messageUnreadable {
			t.readUnreadableMessage(text, r)
			return
		}
		t.keep(text)
		t.inBad(r)
	case taggedName:
		t.inName(text, r)
	case taggedKey:
		t.inParamKey(text, r)
	case taggedJSON:
		t.json(text, r)
	default:
		t.inside(text, r)
	}
}

// outside reads a token between calls.
func (t *tagged) outside(text string, mark int, r role) {
	if t.grammar.messages && t.readMessage(text, mark, r) {
		return
	}
	switch {
	case mark < 0:
		t.prose.text(text)
	case t.prose.mark(mark, text): // the mark belongs to the prose, which has read it
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

// begin starts an attempt at a call, whose text begins with text.
func (t *tagged) begin(text string) {
	t.attempt.begin(text)
	t.lead, t.token, t.quoted = "", t.token[:0], 0
}

// gap reads a token after a call. White space between calls is dropped.
func (t *tagged) gap(text string, mark int, r role) {
	if mark < 0 && t.bufferBlank(text) {
		return
	}
	switch {
	case r == roleCall && t.wrapped:
		t.begin(text)
		t.state = taggedHead
	case r == roleWrapClose: // also after a call without a wrapper
		t.wrapped = false
		t.raw = t.raw[:0]
	default:
		t.state, t.wrapped = taggedText, false
		opens := r == roleWrap || r == roleCall
		if !opens && r < roleStart { // neither a call nor a message follows
			t.spill()
		}
		lead := string(t.raw)
		t.outside(text, mark, r)
		t.lead = lead // outside has reset it
	}
}

// inside reads a token between the tags of an attempt.
func (t *tagged) inside(text string, r role) {
	if r == roleText {
		word := trimSpace(text)
		blank := text[:len(text)-len(word)]
		if t.full(blank) {
			t.becomeUnreadable(lathe.CodePayloadTooLarge)
		}
		t.keep(blank)
		if word == "" || t.state == taggedBad {
			return
		}
		text = word
	}
	switch t.state {
	case taggedWrap:
		t.inWrapper(text, r)
	case taggedBody:
		t.body(text, r)
	case taggedEq:
		t.beforeParamValue(text, r)
	}
}

// inWrapper reads a token between the tag of the wrapper and the call.
func (t *tagged) inWrapper(text string, r role) {
	isJSON := t.grammar.json && r == roleText && text[0] == '{'
	switch {
	case r == roleWrap:
		t.keep(text)
	case r == roleCall:
		t.keep(text)
		t.state = taggedHead
	case isJSON && len(t.raw) > t.opts.MaxPayloadBytes:
		t.becomeUnreadable(lathe.CodePayloadTooLarge)
		t.keep(text)
	case isJSON:
		t.state = taggedObject
		t.payload.reset()
		t.payload.keep(string(t.raw))
		t.payload.add(text)
	case r == roleText && t.grammar.call == nil:
		t.state = taggedName
		t.inName(text, r)
	default:
		t.reject(text, r)
	}
}

// beforeParamValue reads a token between the key of a parameter and its value: the tag of the value, or the value if the tag is missing.
func (t *tagged) beforeParamValue(text string, r role) {
	switch r {
	case roleValue:
		t.keep(text)
		if !t.param(0) {
			t.becomeUnreadable(lathe.CodePayloadParseError)
		}
	case roleText:
		if t.param(0) {
			t.scanned(text, -1)
		} else {
			t.reject(text, r)
		}
	default:
		t.reject(text, r)
	}
}

// reject marks the attempt as unreadable because of text or a mark of role r, which the syntax does not allow here.
func (t *tagged) reject(text string, r role) {
	t.becomeUnreadable(lathe.CodePayloadParseError)
	t.keep(text)
	t.inBad(r)
}

// body reads a token between parameters.
func (t *tagged) body(text string, r role) {
	switch {
	case r == roleParam:
		t.keep(text)
		t.token, t.quoted = t.token[:0], 0
		t.state = taggedParam
		if t.grammar.keyClose != nil {
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

// becomeUnreadable marks the attempt as unreadable and emits its text as text. The ParseError follows at the end of the attempt.
func (t *tagged) becomeUnreadable(code lathe.Code) {
	t.markUnreadable(code)
	t.depth, t.state = 1, taggedBad
}

// inBad counts the nested wrappers or calls in an unreadable attempt, and ends the attempt at the closing mark that matches its first.
func (t *tagged) inBad(r role) {
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
		t.endUnreadable()
	}
}

func (t *tagged) endUnreadable() {
	t.attempt.endUnreadable()
	t.state, t.wrapped = taggedText, false
}

// finish ends the text: it closes or reports the call that is open.
func (t *tagged) finish() {
	switch t.state {
	case taggedText:
		t.endHeader()
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
	case taggedValue, taggedNextTag, taggedNextKey, taggedNextEq:
		t.cutValue()
	case taggedBody, taggedParam, taggedKey, taggedEq, taggedJSON:
		t.end(truncated)
	case taggedObject:
		t.payload.close(truncated)
	case taggedBad:
		t.endUnreadable()
	}
}

// incomplete emits an attempt as text, with a ParseError, if the text ended before the name was known.
func (t *tagged) incomplete() {
	t.cut = true
	t.becomeUnreadable(lathe.CodeIncompleteCall)
	t.endUnreadable()
}
