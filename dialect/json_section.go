package dialect

import (
	"strings"
)

// A section contains several blocks between marks of its own:
//
//	<|tool_calls_section_begin|><|tool_call_begin|>…<|tool_call_end|><|tool_call_begin|>…<|tool_call_end|><|tool_calls_section_end|>
//
// Between its blocks only marks and white space are allowed. This file reads them, and the marks that end citations.

// findMark returns the index of the mark that equals text, or -1; begins reports whether a mark begins with text.
func (f *jsonFamily) findMark(text string) (mark int, begins bool) {
	for i, mark := range f.list {
		m := f.kinds[i]
		isQuiet := m.kind == markOpen && f.blocks[m.n].quiet
		if m.kind == markCite || isQuiet {
			continue
		}
		if mark == text {
			return i, false
		}
		begins = begins || strings.HasPrefix(mark, text)
	}
	return -1, begins
}

// inSection handles a mark after a block, inside a section or outside of one.
func (p *jsonParser) inSection(mark int) {
	text := p.family.list[mark]
	if p.state != blockSection {
		p.token(text, mark)
		return
	}
	switch m := p.family.kinds[mark]; m.kind {
	case markOpen:
		p.openBlock(m.n, text)
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
	if len(p.partial) == 0 && space(c) && len(p.raw) < maxHeadBytes {
		p.consume()
		return
	}
	p.partial = append(p.partial, c)
	mark, begins := p.family.findMark(string(p.partial))
	switch {
	case mark >= 0:
		n := len(p.partial) - 1 // the bytes of the mark before c do not belong to the text of the attempt
		p.total, p.raw = p.total-n, p.raw[:max(0, len(p.raw)-n)]
		p.partial = p.partial[:0]
		p.take(1)
		p.inSection(mark)
	case begins:
		p.consume()
	default:
		p.block, p.begun, p.object.name = nil, false, p.object.name[:0]
		p.reject()
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
		p.reject()
	}
	p.partial = p.partial[:0]
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
