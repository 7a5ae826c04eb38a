package dialect

import (
	"strings"

	"github.com/lathe-run/lathe"
)

const (
	maxHeadBytes = 512 // maximal length of a block's head
	maxGapBytes  = 256 // maximal length of white space after a call that is buffered until text follows
	maxCiteBytes = 256 // maximal length of the mark that ends a citation
)

// A jsonParser is the parser of a jsonFamily. Its input has the form
//
//	text { block text }      block = mark head JSON close      section = mark { block } mark
//
// Between blocks the scanner divides the text at marks. Inside a block the parser reads the structure byte by byte and passes the JSON to
// object; marks inside the JSON are data. The states in which the parts of a block are read, of which all but the mark and the JSON may be
// missing:
//
//	[TOOL_CALLS]  write[CALL_ID]123456789[ARGS]  {"path":"a.txt"}
//	blockNone     blockHead                      blockOpen, blockJSON
//
//	<TOOLCALL>    [          {"name":"write","arguments":{}}  ,          {…}]       </TOOLCALL>
//	blockNone     blockOpen  blockJSON                        blockNext  …          blockTail
//
// A call is confirmed, and its CallEnd emitted, when the text after its JSON shows that the block has no error. json_head.go reads heads,
// json_section.go sections, and json_fail.go all that is unreadable.
type jsonParser struct {
	reader
	family *jsonFamily // the family of the dialect
	prose  prose       // the text outside of calls
	state  jsonBlockState
	block  *jsonBlock // the block being read

	gap     []byte // white space after a call, which is emitted only if text follows
	swallow bool   // white space that follows is buffered in gap

	// The section.
	section       int  // number of the open section, from 1; 0 if none is open
	taken         int  // number of calls in the section
	sectionFailed bool // the section has had an unreadable call

	jsonAttempt

	// The block.
	part        int         // index of the part of the head
	partial     []byte      // the bytes of the head part or of the mark being read
	wordEnd     int         // offset in partial after the part's word and white space; 0: the word continues
	list        bool        // the objects are elements of a JSON array
	object      callObject  // reads the JSON of a call
	builtin     builtinCall // reads a call in the form NAME.call(…)
	late        bool        // the id of the open call may follow its arguments
	unconfirmed bool        // the open call is complete, unless the block ends with an error
	surplus     bool        // a second closing brace was read after the JSON
}

// A jsonAttempt is the text from the mark of a block or section on, until its call is confirmed or its error reported. openBlock and token
// begin it, keep adds to it, toText makes it unreadable, and forget ends it.
type jsonAttempt struct {
	raw          []byte     // the text so far, or only its beginning
	rawShortened bool       // raw is limited to maxExcerptBytes
	total        int        // the length of the text, in bytes
	errorCode    lathe.Code // why the attempt is unreadable; "" while it is readable
	begun        bool       // the JSON has begun
}

// shortenRaw shortens the text of the attempt to maxExcerptBytes; the rest is only counted.
func (a *jsonAttempt) shortenRaw() {
	a.rawShortened = true
	a.raw = a.raw[:min(len(a.raw), maxExcerptBytes)]
}

type jsonBlockState uint8

const (
	blockNone           jsonBlockState = iota // in the text between blocks
	blockHead                                 // before the JSON, in the head
	blockOpen                                 // before the JSON, after the head
	blockJSON                                 // in the JSON
	blockBuiltin                              // in a call in the form NAME.call(…)
	blockNext                                 // between two objects
	blockTail                                 // before the closing mark
	blockUnreadable                           // in an unreadable attempt
	blockUnreadableJSON                       // in JSON of an unreadable attempt
	blockSection                              // between the calls of a section
	blockCite                                 // in the mark that ends a citation
)

func (p *jsonParser) read() {
	for {
		switch p.state {
		case blockNone, blockUnreadable:
			text, mark, ok := p.next()
			switch {
			case !ok:
				return
			case p.state == blockUnreadable:
				p.badToken(text, mark)
			default:
				p.token(text, mark)
			}
		default:
			if p.in == "" {
				return
			}
			p.step()
		}
	}
}

// token handles a token of the scanner between blocks: a run of text (mark is negative) or a mark.
func (p *jsonParser) token(text string, mark int) {
	if mark < 0 {
		p.text(text)
		return
	}
	p.prose.settle(text)
	if mark >= p.prose.base {
		p.thinkMark(mark, text)
		return
	}
	thinking := p.prose.think > 0
	if !thinking && p.prose.mask.beginMark() {
		p.prose.mask.quotation.noteCall()
		p.spillGap()
		p.prose.text(text)
		return
	}
	m := p.family.kinds[mark]
	switch {
	case m.kind == markDrop:
		p.swallow = p.swallow || !thinking
	case m.kind == markCite:
		p.state = blockCite
		p.raw = append(p.raw[:0], text...)
	case thinking:
		p.prose.mention(text)
	case m.kind == markSection:
		p.section, p.taken, p.sectionFailed = m.n+1, 0, false
		p.raw, p.total, p.rawShortened = append(p.raw[:0], text...), len(text), false
		p.partial, p.state = p.partial[:0], blockSection
	case m.kind == markOpen:
		p.openBlock(m.n, text)
	case p.swallow: // a closing mark without an open block
	default:
		p.prose.text(text)
	}
}

// thinkMark handles a mark that opens or closes a block of thinking.
func (p *jsonParser) thinkMark(mark int, text string) {
	thinking := p.prose.think > 0
	_, closes := p.prose.block(mark)
	isToken := p.family.special && (thinking || !p.prose.mask.beginMark())
	switch {
	case isToken && closes && !thinking && p.prose.hadMark: // it closes no block
		p.swallow = true
		return
	case isToken && !closes:
		p.spillGap()
		p.prose.mask.fresh()
	case !thinking:
		p.spillGap()
	}
	p.prose.mark(mark, text)
	p.swallow = p.swallow || closes && p.prose.think == 0
}

// text handles text between blocks. It buffers white space after a call.
func (p *jsonParser) text(s string) {
	if p.swallow && p.prose.think == 0 {
		n := len(s) - len(trimSpace(s))
		if n == len(s) && len(p.gap)+n <= maxGapBytes {
			p.gap = append(p.gap, s...)
			return
		}
		p.spillGap()
	}
	p.prose.text(s)
}

// spillGap emits the white space after a call, because text follows it.
func (p *jsonParser) spillGap() {
	p.swallow = false
	if len(p.gap) > 0 {
		p.prose.text(string(p.gap))
		p.gap = p.gap[:0]
	}
}

// openBlock begins an attempt at mark, which opens block n. The part of the mark that belongs to the JSON is read at once.
func (p *jsonParser) openBlock(n int, mark string) {
	p.block = &p.family.blocks[n]
	isFirst := p.section > 0 && p.taken == 0 && !p.sectionFailed // the attempt began with the mark of the section
	if !isFirst {
		p.raw, p.total = p.raw[:0], 0
	}
	p.rawShortened, p.begun = false, false
	p.list, p.unconfirmed, p.surplus = false, false, false
	p.partial, p.part, p.wordEnd = p.partial[:0], 0, 0
	p.object.clear()
	jsonAt := len(mark) - p.block.keep
	p.keep(mark[:jsonAt])
	p.state = blockHead
	if len(p.block.head) == 0 {
		p.state = blockOpen
	}
	afterMark := p.in
	p.in = mark[jsonAt:] // the input for as long as it lasts
	for p.in != "" && p.state != blockNone && p.state != blockUnreadable {
		p.step()
	}
	p.prose.text(p.in)
	p.in = afterMark
}

// step reads the next part of a block.
func (p *jsonParser) step() {
	c := p.in[0]
	switch p.state {
	case blockHead:
		p.headByte(c)
	case blockOpen:
		p.openByte(c)
	case blockJSON:
		p.json()
	case blockBuiltin:
		p.builtin.read()
	case blockNext:
		p.nextByte(c)
	case blockTail:
		p.tailByte(c)
	case blockSection:
		p.sectionByte(c)
	case blockUnreadableJSON:
		p.readUnreadableJSON()
	case blockCite:
		p.citeByte(c)
	}
}

// consume consumes one byte of structure and records it as text of the attempt.
func (p *jsonParser) consume() { p.keep(p.take(1)) }

// keep appends s to the text of the attempt and counts it. Once raw is shortened, it stores only the excerpt.
func (p *jsonParser) keep(s string) {
	p.total += len(s)
	if p.reader.open && !p.rawShortened && len(p.raw)+len(s) > p.opts.MaxPayloadBytes {
		p.shortenRaw()
	}
	if p.rawShortened {
		s = s[:min(len(s), max(0, maxExcerptBytes-len(p.raw)))]
	}
	p.raw = append(p.raw, s...)
}

// openByte reads one byte between the head and the JSON.
func (p *jsonParser) openByte(c byte) {
	switch {
	case len(p.raw) > p.opts.MaxPayloadBytes+maxHeadBytes:
		p.markUnreadable(lathe.CodePayloadTooLarge)
	case len(p.partial) > 0 || c == '`' && p.block.fence:
		p.fenceByte(c)
	case space(c):
		p.consume()
	case c == '{':
		p.begun = true
		form := p.block.object
		if len(p.object.name) > 0 {
			form = nil
		}
		p.object.reset(form)
		p.object.js.lax = !p.block.quiet
		p.state = blockJSON
	case c == '[' && !p.list && len(p.object.name) == 0 && p.block.object != nil:
		p.list = true
		p.consume()
	case len(p.object.name) > 0 && p.block.close != "" && c == p.block.close[0]: // a call without arguments
		p.opens()
		p.unconfirmed = true
		p.state = blockTail
	case isLetter(c) && p.block.builtin && !p.list:
		p.state = blockBuiltin
		p.builtin.begin()
	default:
		p.reject()
	}
}

const fence = "```"

// fenceByte reads one byte of the opening of a code fence around the JSON.
func (p *jsonParser) fenceByte(c byte) {
	opening := string(p.partial)
	if space(c) && (opening == fence || opening == fence+"json") {
		p.partial = p.partial[:0]
		p.consume()
		return
	}
	p.partial = append(p.partial, c)
	if !strings.HasPrefix(fence+"json", string(p.partial)) {
		p.reject()
		return
	}
	p.consume()
}

// json reads the next part of the JSON of a call.
func (p *jsonParser) json() {
	room := p.opts.MaxPayloadBytes - p.total
	if room <= 0 {
		p.markUnreadable(lathe.CodePayloadTooLarge)
		return
	}
	n := p.object.read(p.in[:min(len(p.in), room)])
	p.keep(p.take(n))
	switch p.object.status {
	case objectDone:
		p.afterObject()
	case objectBroken:
		p.reject()
	case objectForeign:
		p.toText(notACall)
	}
}

// afterObject sets the state after the JSON of a call. Without a closing mark, nothing after the JSON can show an error.
func (p *jsonParser) afterObject() {
	p.unconfirmed = true
	hasClose, isArguments := p.block.close != "", p.object.form == nil
	if !hasClose {
		p.confirm()
	}
	switch {
	case !isArguments:
		p.state = blockNext
	case hasClose:
		p.state = blockTail
	default:
		p.leave()
	}
}

// opens starts the call, whose name is known, with its id.
func (p *jsonParser) opens() {
	id := string(p.object.id)
	switch p.family.id {
	case idPosition:
		if strings.Trim(id, "0123456789") == "" {
			id = ""
		}
	case idLate:
		p.late = id == "" && p.object.form != nil
		if p.late {
			p.startWithID("", p.toolName(p.object.name))
			return
		}
		id = nineLetters(id, p.opts.Rand)
	}
	p.start(id, p.toolName(p.object.name))
}

// confirm closes the open call if it is complete.
func (p *jsonParser) confirm() {
	if !p.unconfirmed {
		return
	}
	p.unconfirmed = false
	p.taken++
	p.gap = p.gap[:0]
	p.endCall(whole)
	p.forget()
}

// forget prepares p for the text of the next attempt.
func (p *jsonParser) forget() {
	p.raw, p.total, p.rawShortened = p.raw[:0], 0, false
	p.object.clear()
}

// endCall closes the open call. If its id may follow the arguments, CallEnd contains the id.
func (p *jsonParser) endCall(incomplete bool) {
	p.end(incomplete)
	if p.late {
		callEnd := &p.out[len(p.out)-1]
		callEnd.ID = nineLetters(string(p.object.id), p.opts.Rand)
	}
}

// nineLetters returns id, or a generated id of nine letters and digits if id is "" and rand is set.
func nineLetters(id string, rand func() uint64) string {
	if id == "" && rand != nil {
		return randomLetters(rand, 9)
	}
	return id
}

// leave ends a block after its last call and returns to the section or the text.
func (p *jsonParser) leave() {
	p.partial = p.partial[:0]
	p.state = blockNone
	p.swallow = true
	p.prose.mask.fresh()
	if p.section > 0 {
		p.state = blockSection
		p.raw, p.total = p.raw[:0], 0
	}
}

// nextByte reads one byte between two objects of a block.
func (p *jsonParser) nextByte(c byte) {
	hasClose, separates := p.block.close != "", c == ',' || c == ';'
	isFull := !p.reader.open && len(p.raw) >= maxHeadBytes && (separates || space(c))
	switch {
	case isFull && hasClose:
		p.markUnreadable(lathe.CodePayloadTooLarge)
	case isFull:
		p.leaveAt()
	case space(c):
		p.consume()
	case separates:
		p.confirm()
		p.consume()
	case c == '{':
		p.confirm()
		p.object.clear()
		p.state = blockOpen
	case c == ']' && p.list:
		p.confirm()
		p.consume()
		p.state = blockTail
		if !hasClose {
			p.leave()
		}
	case hasClose:
		p.state = blockTail
	default:
		p.leaveAt()
	}
}

// leaveAt ends a block without a closing mark; the white space after its JSON is buffered.
func (p *jsonParser) leaveAt() {
	p.gap = append(p.gap[:0], p.raw...)
	p.leave()
}

// tailByte reads one byte between the JSON and the closing mark. Another mark of the structure also ends the block.
func (p *jsonParser) tailByte(c byte) {
	surplus := c == '}' && !p.surplus
	if len(p.partial) == 0 && (space(c) || surplus) {
		p.surplus = p.surplus || surplus
		p.consume()
		return
	}
	p.partial = append(p.partial, c)
	text := string(p.partial)
	if p.block.fence && p.block.close != fence && strings.HasPrefix(fence, text) {
		if text == fence {
			p.partial = p.partial[:0]
		}
		p.consume()
		return
	}
	mark, begins := p.family.findMark(text)
	switch {
	case text == p.block.close:
		p.take(1)
		p.confirm()
		p.leave()
	case mark >= 0:
		p.take(1)
		p.confirm()
		p.leave()
		p.inSection(mark)
	case begins || strings.HasPrefix(p.block.close, text):
		p.consume()
	default:
		p.reject()
	}
}
