package dialect

import "github.com/lathe-run/lathe"

// withPrefix returns a parser, made by newParser, that has read the prefix of the options. It drops the deltas of the prefix, except those
// of a call that the prefix leaves open: that call is call 0 of the model's text.
func withPrefix(newParser func(Options) fullParser, opts *Options) fullParser {
	var o Options
	if opts != nil {
		o = *opts
	}
	o = o.bounded()
	p := newParser(o)
	if o.BareCalls && len(o.Tools) > 0 && o.Prefix == "" {
		return &bareCalls{wrapped: wrapped{p}, opts: o}
	}
	if o.Prefix == "" {
		return p
	}
	p.setInPrefix(true)
	deltas := p.Append(nil, o.Prefix)
	p.setInPrefix(false)
	q := &prefixed{wrapped: wrapped{p}}
	openAt := -1 // index in deltas of the start of the open call
	for i, d := range deltas {
		switch d.Kind {
		case lathe.DeltaCallStart:
			q.skip, openAt = d.Index, i
		case lathe.DeltaCallEnd:
			q.skip, openAt = d.Index+1, -1
		}
	}
	if openAt >= 0 {
		q.open = deltas[openAt:]
	}
	if q.skip == 0 && q.open == nil {
		return p
	}
	return q
}

// wrapped is the parser inside another one, with its optional methods.
type wrapped struct{ fullParser }

// A prefixed parser subtracts the calls of its prefix from the Index of all deltas.
type prefixed struct {
	wrapped
	skip int           // number of calls that the prefix completed
	open []lathe.Delta // the deltas of the call that the prefix left open, until the first Append or Flush returns them
}

func (p *prefixed) Append(dst []lathe.Delta, text string) []lathe.Delta {
	n := len(dst)
	dst = append(dst, p.open...)
	p.open = nil
	return p.renumber(p.fullParser.Append(dst, text), n)
}

func (p *prefixed) Flush(dst []lathe.Delta) ([]lathe.Delta, error) {
	n := len(dst)
	dst = append(dst, p.open...)
	p.open = nil
	dst, err := p.fullParser.Flush(dst)
	return p.renumber(dst, n), err
}

func (w wrapped) Chosen() string {
	if c, ok := w.fullParser.(Chooser); ok {
		return c.Chosen()
	}
	return ""
}

func (p *prefixed) renumber(dst []lathe.Delta, from int) []lathe.Delta {
	for i := from; i < len(dst); i++ {
		switch dst[i].Kind {
		case lathe.DeltaCallStart, lathe.DeltaCallArgs, lathe.DeltaCallEnd:
			dst[i].Index -= p.skip
		case lathe.DeltaParseError:
			if dst[i].Index >= 0 {
				dst[i].Index -= p.skip
			}
		}
	}
	return dst
}
