package dialect

import "github.com/lathe-run/lathe"

// withPrefix makes a parser and has it read the prefix. What the prefix says is dropped, but for
// the call that it leaves open: that one belongs to the model's text and becomes its call 0.
func withPrefix(make func(Options) Parser, opts *Options) Parser {
	var o Options
	if opts != nil {
		o = *opts
	}
	o = o.bounded()
	p := make(o)
	if o.BareCalls && len(o.Tools) > 0 && o.Prefix == "" {
		return &bareCalls{wrapped: wrapped{p}, opts: o}
	}
	if o.Prefix == "" {
		return p
	}
	prompt, ok := p.(interface{ readsPrefix(on bool) })
	if ok {
		prompt.readsPrefix(true)
	}
	rendered := p.Append(nil, o.Prefix)
	if ok {
		prompt.readsPrefix(false)
	}
	q := &prefixed{wrapped: wrapped{p}}
	openAt := -1
	for i, d := range rendered {
		switch d.Kind {
		case lathe.DeltaCallStart:
			q.skip, openAt = d.Index, i
		case lathe.DeltaCallEnd:
			q.skip, openAt = d.Index+1, -1
		}
	}
	if openAt >= 0 {
		q.open = rendered[openAt:]
	}
	if q.skip == 0 && q.open == nil {
		return p
	}
	return q
}

// wrapped is a parser within another one, whose further methods it keeps.
type wrapped struct{ Parser }

// A prefixed parser numbers calls from where its prefix ended.
type prefixed struct {
	wrapped
	skip int           // calls that the prefix made
	open []lathe.Delta // of the call that the prefix left open, until it was said
}

func (p *prefixed) Append(dst []lathe.Delta, text string) []lathe.Delta {
	n := len(dst)
	dst = append(dst, p.open...)
	p.open = nil
	return p.renumber(p.Parser.Append(dst, text), n)
}

func (p *prefixed) Flush(dst []lathe.Delta) ([]lathe.Delta, error) {
	n := len(dst)
	dst = append(dst, p.open...)
	p.open = nil
	dst, err := p.Parser.Flush(dst)
	return p.renumber(dst, n), err
}

func (w wrapped) Anomalies() Anomalies {
	return anomalies(w.Parser)
}

func (w wrapped) Chosen() string {
	if c, ok := w.Parser.(Chooser); ok {
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
