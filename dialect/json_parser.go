package dialect

import (
	"strings"

	"github.com/lathe-run/lathe"
)

const (
	maxHeadBytes = 512 // of a block's head
	maxGapBytes  = 256 // of white space after a call that waits for what follows
	maxCiteBytes = 256 // of the mark that ends a citation
)

// A jsonParser reads the dialects of a jsonFamily. Between calls the scanner cuts the text at
// marks. Inside of a block it reads the structure byte by byte, and the JSON as it is: marks in it
// are data.
type jsonParser struct {
	reader
	f     *jsonFamily
	prose prose
	state jsonBlockState
	block *jsonBlock

	gap     []byte // white space after a call: it is text only if text follows
	swallow bool

	section int  // the open section, from 1
	taken   int  // calls in it
	spoiled bool // there was a call in it that cannot be read

	raw   []byte // the attempt so far; past the limit, or after a failure, its beginning only
	lost  bool
	total int // its length
	bad   lathe.Code
	begun bool // its JSON had begun

	part    int    // of the head
	seg     []byte // what was read of the part, or of a mark
	wordEnd int    // where the part's word ends, 0: it goes on
	list    bool   // the objects stand in brackets
	object  callObject
	builtin builtinCall
	late    bool // the open call has no id yet
	pending bool // the open call is whole, if the block ends as it should
	surplus bool // a closing brace more than there are was read after the JSON
}

type jsonBlockState uint8

const (
	blockNone    jsonBlockState = iota // in the text between blocks
	blockHead                          // before the JSON, in a head of parts
	blockOpen                          // before the JSON
	blockJSON                          // in it
	blockBuiltin                       // in what stands in its place
	blockNext                          // between two objects
	blockTail                          // before the closing mark
	blockBad                           // inside an attempt that cannot be read
	blockOver                          // in JSON that is text
	blockSection                       // between the calls of a section
	blockCite                          // in the mark that ends a citation
)

func (p *jsonParser) read() {
	for {
		switch p.state {
		case blockNone, blockBad:
			text, mark, ok := p.next()
			switch {
			case !ok:
				return
			case p.state == blockBad:
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

// token takes what the scanner found between blocks.
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
	if !thinking && p.prose.mask.code() {
		p.prose.mask.quotation.noteCall()
		p.spillGap()
		p.prose.text(text)
		return
	}
	m := p.f.kinds[mark]
	switch {
	case m.kind == markDrop:
		p.swallow = p.swallow || !thinking
	case m.kind == markCite:
		p.state = blockCite
		p.raw = append(p.raw[:0], text...)
	case thinking:
		p.prose.mention(text)
	case m.kind == markSection:
		p.section, p.taken, p.spoiled = m.n+1, 0, false
		p.raw, p.total, p.lost = append(p.raw[:0], text...), len(text), false
		p.seg, p.state = p.seg[:0], blockSection
	case m.kind == markOpen:
		p.openBlock(m.n, text, p.f.blocks[m.n].keep)
	case p.swallow: // a closing mark more than there are
	default:
		p.prose.text(text)
	}
}

// thinkMark takes a mark of the block of thinking.
func (p *jsonParser) thinkMark(mark int, text string) {
	closes := (mark-p.prose.base)%2 == 1
	if p.f.special && (p.prose.think > 0 || !p.prose.mask.code()) {
		if closes && p.prose.think == 0 && p.prose.seen {
			p.swallow = true
			return
		}
		if !closes {
			p.spillGap()
			p.prose.mask.fresh()
		}
	}
	if p.prose.think == 0 {
		p.spillGap()
	}
	p.prose.mark(mark, text)
	p.swallow = p.swallow || closes && p.prose.think == 0
}

// text takes text between blocks.
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

// spillGap gives white space as text after all.
func (p *jsonParser) spillGap() {
	p.swallow = false
	if len(p.gap) > 0 {
		p.prose.text(string(p.gap))
		p.gap = p.gap[:0]
	}
}

// openBlock begins an attempt. The last keep bytes of the mark belong to its JSON.
func (p *jsonParser) openBlock(n int, mark string, keep int) {
	p.block = &p.f.blocks[n]
	if p.section == 0 || p.taken > 0 || p.spoiled {
		p.raw, p.total = p.raw[:0], 0
	}
	p.lost, p.begun, p.list, p.pending, p.surplus = false, false, false, false, false
	p.object.name, p.object.id, p.seg, p.part = p.object.name[:0], p.object.id[:0], p.seg[:0], 0
	p.wordEnd, p.object.named = 0, false
	p.keep(mark[:len(mark)-keep])
	p.state = blockHead
	if len(p.block.head) == 0 {
		p.state = blockOpen
	}
	in := p.in
	for p.in = mark[len(mark)-keep:]; p.in != "" && p.state != blockNone && p.state != blockBad; {
		p.step()
	}
	p.prose.text(p.in)
	p.in = in
}

// step reads on inside of a block.
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
	case blockOver:
		p.over()
	case blockCite:
		p.citeByte(c)
	}
}

// eat takes one byte of structure.
func (p *jsonParser) eat() { p.keep(p.take(1)) }

// keep counts s as a part of the attempt, and keeps it as far as it is wanted.
func (p *jsonParser) keep(s string) {
	p.total += len(s)
	if p.reader.open && !p.lost && len(p.raw)+len(s) > p.opts.MaxPayloadBytes {
		p.lose()
	}
	if p.lost {
		s = s[:min(len(s), max(0, maxExcerptBytes-len(p.raw)))]
	}
	p.raw = appendKept(p.raw, s)
}

// lose gives up to keep the attempt: it is too long.
func (p *jsonParser) lose() {
	p.lost = true
	p.raw = p.raw[:min(len(p.raw), maxExcerptBytes)]
}

// openByte reads before the JSON.
func (p *jsonParser) openByte(c byte) {
	switch {
	case len(p.raw) > p.opts.MaxPayloadBytes+maxHeadBytes:
		p.spoil(lathe.CodePayloadTooLarge)
	case len(p.seg) > 0 || c == '`' && p.block.fence:
		p.fenceByte(c)
	case space(c):
		p.eat()
	case c == '{':
		p.begun = true
		form := p.block.object
		if len(p.object.name) > 0 {
			form = nil
		}
		p.object.reset(form, !p.block.quiet)
		p.state = blockJSON
	case c == '[' && !p.list && len(p.object.name) == 0 && p.block.object != nil:
		p.list = true
		p.eat()
	case len(p.object.name) > 0 && p.block.close != "" && c == p.block.close[0]: // no arguments at all
		p.opens()
		p.pending = true
		p.state = blockTail
	case isLetter(c) && p.block.builtin && !p.list:
		p.state = blockBuiltin
		p.builtin.begin()
	default:
		p.spoil(lathe.CodePayloadParseError)
	}
}

const fence = "```"

// fenceByte reads the beginning of a code fence.
func (p *jsonParser) fenceByte(c byte) {
	if seg := string(p.seg); space(c) && (seg == fence || seg == fence+"json") {
		p.seg = p.seg[:0]
		p.eat()
		return
	}
	p.seg = append(p.seg, c)
	if !strings.HasPrefix(fence+"json", string(p.seg)) {
		p.spoil(lathe.CodePayloadParseError)
		return
	}
	p.eat()
}

// json reads on in the JSON of a call.
func (p *jsonParser) json() {
	room := p.opts.MaxPayloadBytes - p.total
	if room <= 0 {
		p.spoil(lathe.CodePayloadTooLarge)
		return
	}
	n := p.object.read(p.in[:min(len(p.in), room)])
	p.keep(p.take(n))
	switch p.object.status {
	case objectDone:
		p.pending = true
		switch {
		case p.block.close != "":
			p.state = blockTail
			if p.object.form != nil {
				p.state = blockNext
			}
		case p.object.form == nil:
			p.confirm()
			p.leave()
		default:
			p.confirm()
			p.state = blockNext
		}
	case objectBroken:
		p.spoil(lathe.CodePayloadParseError)
	case objectForeign:
		p.spoil("")
	}
}

// opens starts the call, whose name is known.
func (p *jsonParser) opens() {
	id := string(p.object.id)
	switch p.f.id {
	case idPosition:
		if strings.Trim(id, "0123456789") == "" {
			id = ""
		}
	case idLate:
		if p.late = id == "" && p.object.form != nil; p.late {
			p.start(lateID, p.toolName(p.object.name), false)
			p.out[len(p.out)-1].ID = ""
			return
		}
		id = p.nineLetters(id)
	}
	p.start(id, p.toolName(p.object.name), false)
}

// lateID stands for an id that may still come, so that none is made yet.
const lateID = "?"

// confirm ends the call that is whole.
func (p *jsonParser) confirm() {
	if !p.pending {
		return
	}
	p.pending = false
	p.taken++
	p.gap = p.gap[:0]
	p.endCall(false)
	p.raw, p.total, p.lost = p.raw[:0], 0, false
	p.object.name, p.object.id = p.object.name[:0], p.object.id[:0]
}

// endCall closes the open call, with its id where that could come late.
func (p *jsonParser) endCall(incomplete bool) {
	p.end(incomplete)
	if !p.late {
		return
	}
	p.out[len(p.out)-1].ID = p.nineLetters(string(p.object.id))
}

// nineLetters returns id, or a generated one if id is empty.
func (p *jsonParser) nineLetters(id string) string {
	if id == "" && p.opts.Rand != nil {
		return randomLetters(p.opts.Rand, 9)
	}
	return id
}

// leave ends a block that was read.
func (p *jsonParser) leave() {
	p.seg = p.seg[:0]
	p.state = blockNone
	p.swallow = true
	p.prose.mask.fresh()
	if p.section > 0 {
		p.state = blockSection
		p.raw, p.total = p.raw[:0], 0
	}
}

// nextByte reads between two objects.
func (p *jsonParser) nextByte(c byte) {
	switch {
	case len(p.raw) >= maxHeadBytes && !p.reader.open && (space(c) || c == ',' || c == ';'):
		if p.block.close == "" {
			p.leaveAt()
		} else {
			p.spoil(lathe.CodePayloadTooLarge)
		}
	case space(c):
		p.eat()
	case c == ',' || c == ';':
		p.confirm()
		p.eat()
	case c == '{':
		p.confirm()
		p.object.name, p.object.id = p.object.name[:0], p.object.id[:0]
		p.state = blockOpen
	case c == ']' && p.list:
		p.confirm()
		p.eat()
		if p.state = blockTail; p.block.close == "" {
			p.leave()
		}
	case p.block.close != "":
		p.state = blockTail
	default:
		p.leaveAt()
	}
}

// leaveAt ends a block without a closing mark where the text goes on.
func (p *jsonParser) leaveAt() {
	p.gap = append(p.gap[:0], p.raw...)
	p.leave()
}

// tailByte reads before the closing mark. Another mark may stand for it.
func (p *jsonParser) tailByte(c byte) {
	if surplus := c == '}' && !p.surplus; len(p.seg) == 0 && (space(c) || surplus) {
		p.surplus = p.surplus || surplus
		p.eat()
		return
	}
	p.seg = append(p.seg, c)
	seg := string(p.seg)
	if p.block.fence && p.block.close != fence {
		if seg == fence {
			p.seg = p.seg[:0]
			p.eat()
			return
		}
		if strings.HasPrefix(fence, seg) {
			p.eat()
			return
		}
	}
	if seg == p.block.close {
		p.take(1)
		p.confirm()
		p.leave()
		return
	}
	mark, more := p.structure(seg)
	switch {
	case mark >= 0:
		p.take(1)
		p.confirm()
		p.leave()
		p.inSection(mark)
	case more || strings.HasPrefix(p.block.close, seg):
		p.eat()
	default:
		p.seg = p.seg[:0]
		p.spoil(lathe.CodePayloadParseError)
	}
}
