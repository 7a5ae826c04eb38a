package dialect

import (
	"github.com/lathe-run/lathe"
)

// spoil emits the text of the attempt as text. The ParseError with this code follows at the end of the attempt. If code is "", the
// attempt was no call, and no ParseError follows; the same holds in a quiet block before a call is recognized.
func (p *jsonParser) spoil(code lathe.Code) {
	quiet := p.block != nil && p.block.quiet
	p.pending = false
	p.bad = code
	known := p.reader.open || p.object.named && p.state == blockJSON
	if quiet && !known {
		p.bad = ""
	}
	p.spillGap()
	p.unreadable = p.bad != ""
	if !p.lost {
		p.prose.text(string(p.raw))
	}
	p.lost = true
	p.raw = p.raw[:min(len(p.raw), maxExcerptBytes)]
	js := &p.object.js
	inJSON := p.state == blockJSON && js.state != jsonBad && js.state != jsonDone
	switch {
	case inJSON:
		js.outer = 0
		p.state = blockOver
	case p.bad == "":
		p.calm()
	case !p.closes():
		p.giveUp()
	default:
		p.state = blockBad
	}
	p.seg = p.seg[:0]
}

// closes reports whether a mark ends the attempt: that of a section or of the block.
func (p *jsonParser) closes() bool {
	return p.section > 0 || p.block != nil && p.block.close != ""
}

// calm returns to the text between blocks, after an attempt that was no call.
func (p *jsonParser) calm() {
	p.state = blockNone
	p.section = 0
}

// over reads the rest of the JSON of an unreadable attempt as text; marks inside the JSON are data.
func (p *jsonParser) over() {
	js := &p.object.js
	s := p.take(js.scan(p.in))
	p.more(s)
	switch {
	case js.state != jsonDone && js.state != jsonBad:
	case p.bad == "":
		p.calm()
	case p.closes():
		p.state = blockBad
	default:
		p.giveUp()
	}
}

// more emits s as text of an unreadable attempt.
func (p *jsonParser) more(s string) {
	p.keep(s)
	p.prose.text(s)
}

// badToken reads a token of the scanner inside an unreadable attempt.
func (p *jsonParser) badToken(text string, mark int) {
	if mark < 0 || mark >= p.prose.base {
		p.more(text)
		return
	}
	switch m := p.f.kinds[mark]; {
	case m.kind == markOpen && !p.begun && !p.f.blocks[m.n].quiet:
		p.giveUp()
		if p.section > 0 {
			p.inSection(mark)
		} else {
			p.token(text, mark)
		}
	case m.kind == markSectionEnd && p.section > 0:
		p.more(text)
		p.giveUp()
		p.section, p.state = 0, blockNone
	case m.kind == markClose && p.block != nil && p.block.close == text:
		p.more(text)
		p.giveUp()
	default:
		p.more(text)
	}
}

// giveUp emits the ParseError of an unreadable attempt and returns to the text around it.
func (p *jsonParser) giveUp() {
	p.fail(p.bad, p.toolName(p.object.name), string(p.raw), p.total)
	p.spoiled = true
	p.prose.mask.fresh()
	p.raw, p.total, p.lost = p.raw[:0], 0, false
	p.object.name, p.object.id = p.object.name[:0], p.object.id[:0]
	p.state = blockNone
	if p.section > 0 {
		p.state = blockSection
	}
}

// finish ends the text: it closes or reports the call that is open.
func (p *jsonParser) finish() {
	switch p.state {
	case blockNone:
		p.gap = p.gap[:0]
		return
	case blockTail, blockNext:
		p.confirm()
		return
	case blockJSON, blockBuiltin:
		switch {
		case p.unreadable: // the call exceeds max_payload_bytes
			p.giveUp()
			return
		case p.reader.open:
			p.endCall(true)
			return
		}
	case blockBad, blockOver:
		if p.bad != "" {
			p.giveUp()
		}
		return
	case blockCite:
		p.text(string(p.raw))
		return
	case blockSection:
		if p.taken > 0 || p.spoiled {
			return
		}
		p.block = nil
	}
	if p.block != nil && p.block.quiet && !p.object.named {
		p.spoil("")
		return
	}
	p.cut = true
	p.spoil(lathe.CodeIncompleteCall)
	if p.state == blockBad || p.state == blockOver {
		p.giveUp()
	}
}
