package dialect

import "github.com/lathe-run/lathe"

// thinkMarks opens and closes a block of thinking.
type thinkMarks [2]string

var plainThink = thinkMarks{"<think>", "</think>"}

// prose is the text outside of calls: shown text, and thinking between marks. A block of thinking
// opens at the beginning of a line; a closing mark alone is taken for the end of one that the
// prompt opened, once, unless an opening mark was part of the text before it. Calls inside of
// thinking are part of it.
//
// The marks of the scanner from id base on are those of its blocks, opening and closing in turn.
type prose struct {
	r     *reader
	base  int
	mask  mask
	think int  // the open block, from 1; 0: none
	seen  bool // there was a block
}

// withThink returns calls with the marks of blocks after them.
func withThink(calls []string, blocks ...thinkMarks) []string {
	list := append([]string(nil), calls...)
	for _, b := range blocks {
		list = append(list, b[0], b[1])
	}
	return list
}

func (p *prose) text(s string) {
	if p.think > 0 {
		p.r.emit(lathe.DeltaReasoning, s)
		return
	}
	p.mask.text(s)
	p.r.emit(lathe.DeltaText, s)
}

// mark takes a mark of the scanner; false: it opens a call.
func (p *prose) mark(id int, text string) bool {
	block, closes := (id-p.base)/2+1, (id-p.base)%2 == 1
	switch {
	case p.think > 0:
		if id < p.base || !closes || block != p.think {
			p.text(text)
			return true
		}
		p.think = 0
		p.mask.fresh()
	case p.mask.code():
		p.mask.quotation.noteCall()
		p.text(text)
	case id < p.base:
		return false
	case closes && p.seen, !closes && p.mask.inked:
		p.seen = true // the next closing mark belongs to this one
		p.text(text)
	case closes:
		p.seen = true
		p.mask.fresh()
	default:
		p.think, p.seen = block, true
	}
	return true
}
