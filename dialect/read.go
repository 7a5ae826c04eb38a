package dialect

import (
	"iter"

	"github.com/lathe-run/lathe"
)

// Read reads the whole text of one model turn, which comes in pieces, and returns its message and the calls that could not be read.
// opts may be nil.
//
// It reads what a [Parser] cannot know before the end of the text: the calls that a thought that is not closed ends with, if they are all ([Dialect.CallsInThought]), and,
// if a closing mark stands in the text that no opening mark precedes, the text before it as the thought that it is. For that it ranges over
// the pieces twice.
func (d *Dialect) Read(pieces iter.Seq[string], opts *Options) (lathe.Message, []Failure) {
	var o Options
	if opts != nil {
		o = *opts
	}
	p, c := d.collect(pieces, &o)
	if t, ok := p.(Thinker); ok && t.ClosesAlone() && !o.ThinkingStartsOpen {
		o.ThinkingStartsOpen = true
		p, c = d.collect(pieces, &o)
	}
	m := c.Message()
	if len(m.Calls()) == 0 {
		for _, call := range d.CallsInThought(openThought(p), &o) {
			m.Parts = append(m.Parts, call)
		}
	}
	return m, c.Failures()
}

func (d *Dialect) collect(pieces iter.Seq[string], o *Options) (Parser, *Collector) {
	p := d.NewParser(o)
	c := &Collector{Dialect: d.Name()}
	var deltas []lathe.Delta
	for piece := range pieces {
		deltas = p.Append(deltas[:0], piece)
		c.AddAll(deltas)
	}
	deltas, _ = p.Flush(deltas[:0]) // the calls say what is incomplete
	c.AddAll(deltas)
	return p, c
}
