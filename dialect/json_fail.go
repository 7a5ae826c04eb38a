package dialect

import (
	"github.com/lathe-run/lathe"
)

// This file reads attempts at a call that turn out to be unreadable. Their text so far is emitted at once as text (markUnreadable), what
// follows up to the end of the attempt is emitted as it arrives (blockUnreadableJSON, then blockUnreadable), and the ParseError comes last
// (reportUnreadable).

// notACall in place of an error code says that the attempt was text, not a call, and that no ParseError follows.
const notACall lathe.Code = ""

// markUnreadable emits the text of the attempt as text. The ParseError with this code follows at the end of the attempt. A quiet block in
// which no call is recognized yet was no call.
func (p *jsonParser) markUnreadable(code lathe.Code) {
	isCall := p.reader.open || p.object.named && p.state == blockJSON
	if p.block != nil && p.block.quiet && !isCall {
		code = notACall
	}
	p.toText(code)
}

// reject marks the attempt as unreadable because the syntax does not allow what follows.
func (p *jsonParser) reject() { p.markUnreadable(lathe.CodePayloadParseError) }

// toText emits the text of the attempt as text. A ParseError with the code follows, unless code is notACall.
func (p *jsonParser) toText(code lathe.Code) {
	p.unconfirmed = false
	p.errorCode = code
	p.spillGap()
	p.unreadable = code != notACall
	if !p.rawShortened {
		p.prose.text(string(p.raw))
	}
	p.shortenRaw()
	js := &p.object.js
	if p.state == blockJSON && js.state != jsonBad && js.state != jsonDone { // the rest of the JSON is read as text first
		js.outer = 0 // the scanner need not stop at the outer levels any more
		p.state = blockUnreadableJSON
	} else {
		p.awaitClosingMark()
	}
	p.partial = p.partial[:0]
}

// awaitClosingMark continues an unreadable attempt after its JSON: up to the closing mark, at which the ParseError follows, if a mark ends the
// attempt.
func (p *jsonParser) awaitClosingMark() {
	switch {
	case p.errorCode == notACall:
		p.state, p.section = blockNone, 0
	case p.hasClosingMark():
		p.state = blockUnreadable
	default:
		p.reportUnreadable()
	}
}

// hasClosingMark reports whether a mark ends the attempt: that of a section or of the block.
func (p *jsonParser) hasClosingMark() bool {
	return p.section > 0 || p.block != nil && p.block.close != ""
}

// readUnreadableJSON reads the rest of the JSON of an unreadable attempt as text; marks inside the JSON are data.
func (p *jsonParser) readUnreadableJSON() {
	js := &p.object.js
	s := p.take(js.scan(p.in))
	p.emitUnreadable(s)
	if js.state == jsonDone || js.state == jsonBad {
		p.awaitClosingMark()
	}
}

// emitUnreadable emits s as text of an unreadable attempt.
func (p *jsonParser) emitUnreadable(s string) {
	p.keep(s)
	p.prose.text(s)
}

// badToken reads a token of the scanner inside an unreadable attempt.
func (p *jsonParser) badToken(text string, mark int) {
	if mark < 0 || mark >= p.prose.base { // the marks from base on are those of thinking
		p.emitUnreadable(text)
		return
	}
	switch m := p.family.kinds[mark]; {
	case m.kind == markOpen && !p.begun && !p.family.blocks[m.n].quiet:
		p.reportUnreadable() // a block that opens before the JSON of the attempt ends the attempt
		if p.section > 0 {
			p.inSection(mark)
		} else {
			p.token(text, mark)
		}
	case m.kind == markSectionEnd && p.section > 0:
		p.emitUnreadable(text)
		p.reportUnreadable()
		p.section, p.state = 0, blockNone
	case m.kind == markClose && p.block != nil && p.block.close == text:
		p.emitUnreadable(text)
		p.reportUnreadable()
	default:
		p.emitUnreadable(text)
	}
}

// reportUnreadable emits the ParseError of an unreadable attempt and returns to the text around it.
func (p *jsonParser) reportUnreadable() {
	p.fail(p.errorCode, p.toolName(p.object.name), string(p.raw), p.total)
	p.sectionFailed = true
	p.prose.mask.fresh()
	p.forget()
	p.state = blockNone
	if p.section > 0 {
		p.state = blockSection
	}
}

// finish ends the text: it closes or reports the call that is open.
func (p *jsonParser) finish() {
	switch p.state {
	case blockNone: // no call is open
		p.gap = p.gap[:0]
	case blockTail, blockNext: // the last call is complete but for its closing mark
		p.confirm()
	case blockUnreadable, blockUnreadableJSON: // the text is emitted already
		if p.errorCode != notACall {
			p.reportUnreadable()
		}
	case blockCite: // the mark of a citation that did not end is text
		p.text(string(p.raw))
	case blockSection:
		if p.taken == 0 && !p.sectionFailed { // after a call, a missing end mark is no error
			p.block = nil
			p.incomplete()
		}
	case blockJSON, blockBuiltin:
		switch {
		case p.unreadable: // the call exceeds max_payload_bytes
			p.reportUnreadable()
		case p.reader.open:
			p.endCall(truncated)
		default:
			p.incomplete()
		}
	default:
		p.incomplete()
	}
}

// incomplete ends the text inside an attempt that has not opened a call.
func (p *jsonParser) incomplete() {
	if p.block != nil && p.block.quiet && !p.object.named {
		p.toText(notACall)
		return
	}
	p.cut = true
	p.markUnreadable(lathe.CodeIncompleteCall)
	if p.state == blockUnreadable || p.state == blockUnreadableJSON {
		p.reportUnreadable()
	}
}
