package dialect

import (
	"strings"

	"github.com/lathe-run/lathe"
)

// structure finds the mark that seg is, and whether a mark begins with it.
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

// inSection takes a mark after a block, in a section or not.
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
	case markClose: // one more than there are
	default:
		p.endSection()
		p.token(text, mark)
	}
}

// sectionByte reads between the calls of a section.
func (p *jsonParser) sectionByte(c byte) {
	if len(p.seg) == 0 && space(c) && len(p.raw) < maxHeadBytes {
		p.eat()
		return
	}
	p.seg = append(p.seg, c)
	mark, more := p.structure(string(p.seg))
	switch {
	case mark >= 0:
		p.keepBack(len(p.seg) - 1)
		p.seg = p.seg[:0]
		p.take(1)
		p.inSection(mark)
	case more:
		p.eat()
	default:
		p.seg = p.seg[:0]
		p.block, p.begun, p.object.name = nil, false, p.object.name[:0]
		p.spoil(lathe.CodePayloadParseError)
	}
}

// keepBack takes the last n bytes off the attempt.
func (p *jsonParser) keepBack(n int) {
	p.total -= n
	p.raw = p.raw[:max(0, len(p.raw)-n)]
}

// endSection ends a section. One in which no call could be read was text.
func (p *jsonParser) endSection() {
	p.section = 0
	p.state = blockNone
	switch {
	case p.taken > 0:
		p.raw = p.raw[:0]
		p.swallow = true
	case p.spoiled:
		p.unreadable = true
		p.prose.text(string(p.raw))
		p.unreadable = false
	default:
		p.block = nil
		p.spoil(lathe.CodePayloadParseError)
	}
	p.seg = p.seg[:0]
}

// citeByte reads the mark that ends a citation; where it is none, it is text.
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
