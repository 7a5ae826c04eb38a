package dialect

import (
	"iter"

	"github.com/lathe-run/lathe"
)

// Read parses the whole text of one model turn, given in pieces. It returns the message and the calls that could not be read. opts may be
// nil.
//
// Unlike a [Parser], Read also finds calls at the end of a block of thinking that is never closed, if the message contains no other calls
// (see [Dialect.CallsInThought]). If a closing mark of thinking has no opening mark, Read returns the text before it as reasoning; it then
// ranges over pieces twice.
func (d *Dialect) Read(pieces iter.Seq[string], opts *Options) (lathe.Message, []Failure) {
	var o Options
	if opts != nil {
		o = *opts
	}
	p, c := d.collect(pieces, &o)
	if p.ClosesAlone() && !o.ThinkingStartsOpen {
		o.ThinkingStartsOpen = true
		p, c = d.collect(pieces, &o)
	}
	m := c.Message()
	if len(m.Calls()) == 0 {
		for _, call := range d.CallsInThought(p.OpenThought(), &o) {
			m.Parts = append(m.Parts, call)
		}
	}
	return m, c.Failures()
}

func (d *Dialect) collect(pieces iter.Seq[string], o *Options) (fullParser, *Collector) {
	p := withPrefix(d.parser, o)
	c := &Collector{Dialect: d.Name()}
	var deltas []lathe.Delta
	for piece := range pieces {
		deltas = p.Append(deltas[:0], piece)
		c.AddAll(deltas)
	}
	deltas, _ = p.Flush(deltas[:0]) // ignored: each call has Incomplete or ParseError
	c.AddAll(deltas)
	return p, c
}
