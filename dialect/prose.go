package dialect

import (
	"strings"

	"github.com/lathe-run/lathe"
)

// thinkMarks opens and closes a block of thinking.
type thinkMarks [2]string

var plainThink = thinkMarks{"<think>", "</think>"}

// prose is the text outside of calls: shown text, and thinking between marks. A block of thinking
// opens at the beginning of a line, and in a prefix anywhere; a closing mark alone is taken for the end of one that the
// prompt opened, once, unless an opening mark was part of the text before it. A closing mark between backticks is quoted. Calls inside of
// thinking are part of it.
//
// The marks of the scanner from id base on are those of its blocks, opening and closing in turn.
type prose struct {
	r     *reader
	base  int
	mask  mask
	think int    // the open block, from 1; 0: none
	seen  bool   // there was a block
	fresh bool   // the open block is one of the prompt's, and nothing was read of it
	ticks int    // backticks on the last line of the open block
	tick  bool   // it ends with one
	shut  string // a closing mark that is quoted if a backtick follows
}

func newProse(r *reader, base int) prose {
	p := prose{r: r, base: base}
	if r.opts.ThinkingStartsOpen {
		p.think, p.seen, p.fresh = 1, true, true
	}
	return p
}

// maxThoughtBytes bounds the text of an open thought that is kept, from its first mark of a call on, for [Dialect.CallsInThought].
const maxThoughtBytes = 1 << 20

// closeThought ends the open block of thinking.
func (p *prose) closeThought() {
	p.think, p.fresh, p.ticks, p.tick = 0, false, 0, false
	p.r.thought.text, p.r.thought.mentions = p.r.thought.text[:0], false
	p.mask.fresh()
}

// settle decides about a closing mark that may be quoted, when the text after it comes.
func (p *prose) settle(next string) {
	if p.shut == "" || next == "" {
		return
	}
	mark := p.shut
	if p.shut, p.r.thought.shuts = "", false; next[0] == '`' {
		p.text(mark)
	} else {
		p.closeThought()
	}
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
	p.settle(s)
	if p.think == 0 {
		p.mask.text(s)
		p.r.emit(lathe.DeltaText, s)
		return
	}
	p.r.emit(lathe.DeltaReasoning, s)
	p.fresh = p.fresh && trimSpace(s) == ""
	line := s[strings.LastIndexByte(s, '\n')+1:]
	if len(line) < len(s) {
		p.ticks = 0
	}
	p.ticks, p.tick = p.ticks+strings.Count(line, "`"), strings.HasSuffix(line, "`")
	if len(p.r.opts.Tools) == 0 {
		return
	}
	p.mask.text(s)
	if t := &p.r.thought; t.mentions && len(t.text) <= maxThoughtBytes {
		t.text = appendKept(t.text, s[:min(len(s), maxThoughtBytes+1-len(t.text))])
	}
}

// mention takes a mark of a call in the open block: from the first that is not quoted on, the block is kept.
func (p *prose) mention(mark string) {
	p.r.thought.mentions = p.r.thought.mentions || len(p.r.opts.Tools) > 0 && !p.mask.code()
	p.text(mark)
}

// mark takes a mark of the scanner; false: it opens a call.
func (p *prose) mark(id int, text string) bool {
	p.settle(text)
	block, closes := (id-p.base)/2+1, (id-p.base)%2 == 1
	switch {
	case p.think > 0:
		switch {
		case id < p.base:
			p.mention(text)
		case p.fresh && !closes && block == p.think: // the prompt's, once more
		case !closes || block != p.think:
			p.text(text)
		case p.tick && p.ticks%2 == 1:
			p.shut, p.r.thought.shuts = text, true
		default:
			p.closeThought()
		}
	case p.mask.code():
		p.mask.quotation.noteCall()
		p.text(text)
	case id < p.base:
		return false
	case closes && p.seen, !closes && p.mask.inked && !p.r.inPrefix:
		p.seen = true // the next closing mark belongs to this one
		p.text(text)
	case closes:
		p.seen, p.r.thought.lone = true, true
		p.mask.fresh()
	default:
		p.think, p.seen = block, true
	}
	return true
}
