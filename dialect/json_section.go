package dialect

import (
	"strings"

	"github.com/lathe-run/lathe"
)

// structure returns the index of the mark that equals seg, or -1; more reports whether seg is the beginning of a mark.
func (p *jsonParser) structure(seg string) (mark int, more bool) {
	for i, text := range p.f.list {
		if m := p.f.kinds[i]; m.kind == markCite || m.kind == markOpen && p.f.blocks[m.n].quiet {
			continue
		}
		if text == seg {
			return i, false
		}
		more = more || strings.HasPrefix(text, seg)
	}
	return -1, more
}

// inSection handles a mark after a block, inside a section or outside of one.
func (p *jsonParser) inSection(mark int) {
	text := p.f.list[mark]
	if p.state != blockSection {
		p.token(text, mark)
		return
	}
	switch m := p.f.kinds[mark]; m.kind {
	case markOpen:
		p.openBlock(m.n, text, p.f.blocks[m.n].keep)
	case markSectionEnd:
		p.keep(text)
		p.endSection()
	case markClose: // a closing mark without an open block
	default:
		p.endSection()
		p.token(text, mark)
	}
}

// sectionByte reads one byte between the calls of a section.
func (p *jsonParser) sectionByte(c byte) {
	if len(p.seg) == 0 && space(c) && len(p.raw) < maxHeadBytes {
		p.eat()
		return
	}
	p.seg = append(p.seg, c)
	mark, more := p.structure(string(p.seg))
	switch {
	case mark >= 0:
		n := len(p.seg) - 1 // the bytes of the mark before c do not belong to the text of the attempt
		p.total, p.raw = p.total-n, p.raw[:max(0, len(p.raw)-n)]
		p.seg = p.seg[:0]
		p.take(1)
		p.inSection(mark)
	case more:
		p.eat()
	default:
		p.seg = p.seg[:0]
		p.block, p.begun, p.object.name = nil, false, p.object.name[:0]
		p.markUnreadable(lathe.CodePayloadParseError)
	}
}

// endSection ends a section. A section without calls is text and a ParseError.
func (p *jsonParser) endSection() {
	p.section = 0
	p.state = blockNone
	switch {
	case p.taken > 0:
		p.raw = p.raw[:0]
		p.swallow = true
	case p.sectionFailed:
		p.unreadable = true
		p.prose.text(string(p.raw))
		p.unreadable = false
	default:
		p.block = nil
		p.markUnreadable(lathe.CodePayloadParseError)
	}
	p.seg = p.seg[:0]
}

// citeByte reads one byte of the mark that ends a citation. Text that is no such mark is emitted.
func (p *jsonParser) citeByte(c byte) {
	switch {
	case c == '>':
		p.take(1)
		p.state = blockNone
	case len(p.raw) < maxCiteBytes && strings.IndexByte("0123456789:,[] ", c) >= 0:
		p.raw = append(p.raw, c)
		p.take(1)
	default:
		p.state = blockNone
		p.text(string(p.raw))
	}
}
