package dialect

import (
	"strings"

	"github.com/lathe-run/lathe"
)

// thinkMarks are the opening and the closing mark of a block of thinking.
type thinkMarks [2]string

var plainThink = thinkMarks{"<think>", "</think>"}

// prose is the text outside of calls: shown text, and thinking between marks. A block of thinking opens only at the beginning of a line,
// in a prefix anywhere. A closing mark without a block ends one that the prompt opened, once, unless an opening mark was part of the text
// before. A closing mark between backticks is text. Marks of calls inside thinking are part of the thinking:
//
//	<think>I call <tool_call>.</think>Shown `</think>` text
//
// The marks of the scanner from index base on are those of the blocks, opening and closing alternately.
type prose struct {
	r         *reader
	base      int
	mask      mask
	think     int    // number of the open block, from 1; 0 if none is open
	hadMark   bool   // there was a block, or an opening mark in text: a closing mark now ends no block that the prompt opened
	heldClose string // a closing mark, buffered because a backtick after it would make it quoted text; thought.closeHeld says that it is set

	// The open block; closeThought resets these.
	mayRepeat      bool // the prompt opened the block, and only white space followed: the text may repeat the opening mark
	backticks      int  // number of backticks on the last line
	endsInBacktick bool // the last byte is a backtick
}

func newProse(r *reader, base int) prose {
	p := prose{r: r, base: base}
	if r.opts.ThinkingStartsOpen {
		p.think, p.hadMark, p.mayRepeat = 1, true, true
	}
	return p
}

// maxThoughtBytes is the maximal length of the text of an open thought, from its first mark of a call on, that is stored for
// [Dialect.CallsInThought].
const maxThoughtBytes = 1 << 20

// closeThought ends the open block of thinking.
func (p *prose) closeThought() {
	p.think, p.mayRepeat, p.backticks, p.endsInBacktick = 0, false, 0, false
	p.r.thought.text, p.r.thought.mentions = p.r.thought.text[:0], false
	p.mask.fresh()
}

// settle handles the buffered closing mark once next, the text after it, is known: the mark is text before a backtick, else it ends the
// block.
func (p *prose) settle(next string) {
	if p.heldClose == "" || next == "" {
		return
	}
	mark := p.heldClose
	p.heldClose, p.r.thought.closeHeld = "", false
	if next[0] == '`' {
		p.text(mark)
	} else {
		p.closeThought()
	}
}

// withThink returns calls followed by the marks of the blocks.
func withThink(calls []string, blocks ...thinkMarks) []string {
	list := append([]string(nil), calls...)
	for _, b := range blocks {
		list = append(list, b[0], b[1])
	}
	return list
}

// text reads text outside of calls.
func (p *prose) text(s string) {
	p.settle(s)
	if p.think == 0 {
		p.mask.text(s)
		p.r.emit(lathe.DeltaText, s)
		return
	}
	p.r.emit(lathe.DeltaReasoning, s)
	p.mayRepeat = p.mayRepeat && trimSpace(s) == ""
	line := s[strings.LastIndexByte(s, '\n')+1:]
	if len(line) < len(s) {
		p.backticks = 0
	}
	p.backticks += strings.Count(line, "`")
	p.endsInBacktick = strings.HasSuffix(line, "`")
	if len(p.r.opts.Tools) == 0 {
		return
	}
	p.mask.text(s)
	t := &p.r.thought
	if t.mentions && len(t.text) <= maxThoughtBytes {
		t.text = append(t.text, s[:min(len(s), maxThoughtBytes+1-len(t.text))]...)
	}
}

// mention reads a mark of a call in the open block. From the first mark on that is not quoted, the text of the block is stored.
func (p *prose) mention(mark string) {
	if !p.r.thought.mentions && len(p.r.opts.Tools) > 0 {
		p.r.thought.mentions = !p.mask.beginMark()
	}
	p.text(mark)
}

// block returns the number of the block, from 1, to which a mark of thinking belongs, and whether the mark closes it.
func (p *prose) block(id int) (n int, closes bool) { return (id-p.base)/2 + 1, (id-p.base)%2 == 1 }

// mark reads a mark of the scanner. It returns false, and the caller reads the mark, if the mark belongs to a call outside of thinking.
func (p *prose) mark(id int, text string) bool {
	p.settle(text)
	if p.think > 0 {
		p.markInThought(id, text)
		return true
	}
	if p.mask.beginMark() { // code, which leaves hadMark as it is
		p.mask.quotation.noteCall()
		p.text(text)
		return true
	}
	if id < p.base {
		return false
	}
	block, closes := p.block(id)
	switch {
	case closes && p.hadMark, !closes && p.inLine(): // text
		p.text(text)
	case closes: // the end of a block that the prompt opened
		p.r.thought.closedAlone = true
		p.mask.fresh()
	default:
		p.think = block
	}
	p.hadMark = true
	return true
}

// inLine reports whether text precedes the next byte on its line. A prefix may open a block there.
func (p *prose) inLine() bool { return p.mask.hasText && !p.r.inPrefix }

// markInThought reads a mark in the open block of thinking.
func (p *prose) markInThought(id int, text string) {
	block, closes := p.block(id)
	inBackticks := p.endsInBacktick && p.backticks%2 == 1
	switch {
	case id < p.base:
		p.mention(text)
	case p.mayRepeat && !closes && block == p.think: // dropped: the opening mark that the prompt already ended with
	case !closes || block != p.think: // not the closing mark of this block
		p.text(text)
	case inBackticks: // quoted if a backtick follows; settle decides
		p.heldClose, p.r.thought.closeHeld = text, true
	default:
		p.closeThought()
	}
}
