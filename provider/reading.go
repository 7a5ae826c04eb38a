package provider

import (
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/internal/visible"
	"github.com/lathe-run/lathe/internal/wire"
)

// A reading converts a turn of a model that writes calls as text into a turn with calls: the dialect's parser reads the text, and all
// other deltas pass unchanged.
type reading struct {
	// Set by newReading:
	yield   func(lathe.Delta, error) bool
	dialect *dialect.Dialect // the dialect of the model
	native  bool             // only thinking and bare calls are parsed
	leaks   *leaks           // nil, or only calls of offered tools count
	dropped []string         // paths of what the request omits, in addition to those of the wire
	// deprecatedParser is a second parser that counts deprecated syntax; nil if that syntax is allowed or does not exist.
	deprecatedParser dialect.Parser

	opts    dialect.Options   // options of parser
	parser  dialect.Parser    // parser of the text that follows
	message dialect.Collector // the message of the parsed text
	shown   visible.Stream    // the text that users see
	deltas  []lathe.Delta     // scratch buffer for the deltas of the parser
	sawText bool              // text arrived as deltas
	stopped bool              // the consumer stopped the iteration

	// The calls of the turn, those of the server itself and those in its text, which share one numbering:
	calls          int          // number of calls yielded
	openCall       int          // index of the parser's open call
	nativeCalls    []nativeCall // calls that the server itself returned
	thoughtDialect string       // the dialect of the calls in an open thought; "": no call was found there

	// Numbers of calls for Faults:
	deprecated int // in deprecated syntax
	recovered  int // in the text of a server with native calls
	inThought  int // in an open thought
}

// newParser returns a parser for the text that follows.
func (r *reading) newParser() dialect.Parser {
	if r.native {
		return dialect.NewThink(&r.opts)
	}
	return r.dialect.NewParser(&r.opts)
}

// A nativeCall maps the index of a native call to the index in the yielded turn.
type nativeCall struct{ in, out int }

func newReading(t *textModel, d *dialect.Dialect, opts dialect.Options, yield func(lathe.Delta, error) bool) *reading {
	opts.AllowDeprecatedSyntax, opts.Rand = t.opts.AllowDeprecatedSyntax, t.opts.Rand
	opts.ThinkingStartsOpen, opts.BareCalls = t.opts.ThinkingStartsOpen, t.opts.BareCalls
	r := &reading{yield: yield, dialect: d, native: t.native, opts: opts}
	r.parser = r.newParser()
	r.shown.ShowUnreadable = t.opts.ShowUnreadableCalls
	hasDeprecated := d.Name() == "tags" || d.Name() == "auto"
	switch {
	case t.opts.RecoverLeakedCalls:
		r.leaks = &leaks{r: r}
	case hasDeprecated && !t.opts.AllowDeprecatedSyntax:
		opts.AllowDeprecatedSyntax = true
		r.deprecatedParser = d.NewParser(&opts)
	}
	return r
}

// take reads the model's next delta. It returns false at the end of the turn.
func (r *reading) take(d *lathe.Delta) bool {
	switch d.Kind {
	case lathe.DeltaText:
		r.sawText = true
		r.read(d.Text)
	case lathe.DeltaReasoning:
		r.closeThinking(d.Text)
		r.pass(*d)
	case lathe.DeltaCallStart:
		r.nativeCalls = append(r.nativeCalls, nativeCall{d.Index, r.calls})
		r.passCall(d, r.calls)
		r.calls++
	case lathe.DeltaCallArgs, lathe.DeltaCallEnd:
		for _, c := range slices.Backward(r.nativeCalls) {
			if c.in == d.Index {
				r.passCall(d, c.out)
				break
			}
		}
	case lathe.DeltaFinish:
		r.finish(d.Finish)
		return false
	default:
		r.pass(*d)
	}
	return !r.stopped
}

// closeThinking handles reasoning that the server separates from the text: no part of the text is thinking in such a turn.
func (r *reading) closeThinking(text string) {
	if r.opts.ThinkingStartsOpen && !r.sawText && text != "" {
		r.opts.ThinkingStartsOpen = false
		r.parser = r.newParser()
	}
}

func (r *reading) passCall(d *lathe.Delta, index int) {
	c := *d
	c.Index = index
	r.pass(c)
}

func (r *reading) pass(d lathe.Delta) {
	if !r.stopped && !r.yield(d, nil) {
		r.stopped = true
	}
}

// read passes text to the parser, and yields the resulting deltas.
func (r *reading) read(text string) {
	if r.leaks != nil {
		r.leaks.read(text)
		return
	}
	if r.deprecatedParser != nil {
		r.deltas = r.deprecatedParser.Append(r.deltas[:0], text)
		for _, d := range r.deltas {
			if d.Kind == lathe.DeltaCallStart && d.Deprecated {
				r.deprecated++
			}
		}
	}
	r.deltas = r.parser.Append(r.deltas[:0], text)
	r.yieldAll(r.deltas)
}

// yieldAll yields the parser's deltas.
func (r *reading) yieldAll(deltas []lathe.Delta) {
	for i := range deltas {
		if r.stopped {
			return
		}
		r.yieldParsed(&deltas[i])
	}
}

// yieldParsed yields one delta of the parser, with the index of its call in this turn.
func (r *reading) yieldParsed(d *lathe.Delta) {
	switch d.Kind {
	case lathe.DeltaCallStart:
		r.message.Dialect = r.callDialect()
		r.openCall = r.calls
		r.calls++
		d.Index = r.openCall
		if d.Deprecated {
			r.deprecated++
		}
		if r.leaks != nil || r.native {
			r.recovered++
		}
	case lathe.DeltaCallArgs, lathe.DeltaCallEnd:
		d.Index = r.openCall
	case lathe.DeltaParseError:
		r.message.Dialect = r.callDialect()
		if d.Index >= 0 {
			d.Index = r.openCall
		}
	}
	r.shown.Mark(d)
	r.message.Add(*d)
	r.shown.Pass(d, r.pass)
}

// callDialect returns the name of the dialect of the calls; "" if it is not known.
func (r *reading) callDialect() string {
	if r.thoughtDialect != "" {
		return r.thoughtDialect
	}
	if c, ok := r.parser.(dialect.Chooser); ok && c.Chosen() != "" {
		return c.Chosen()
	}
	if r.native {
		return ""
	}
	return r.dialect.Name()
}

// flush ends the text, and yields what the parser buffered.
func (r *reading) flush() {
	if r.leaks != nil {
		r.leaks.flush()
		return
	}
	r.deltas, _ = r.parser.Flush(r.deltas[:0]) // the deltas report the same as the error
	r.yieldAll(r.deltas)
}

// fail ends a turn that failed: it yields the buffered text, then err.
func (r *reading) fail(err error) {
	if r.sawText {
		r.flush()
		r.shown.End(r.pass)
	}
	if !r.stopped {
		r.yield(lathe.Delta{}, err)
	}
}

// readMessage reads the text of a complete message.
func (r *reading) readMessage(m *lathe.Message) {
	for _, p := range m.Parts {
		switch p := p.(type) {
		case lathe.Reasoning:
			r.closeThinking(p.Text)
		case lathe.Text:
			if !p.Commentary {
				r.read(p.Text)
			}
		default: // not text
		}
	}
}

// finish ends the turn. The yielded Finish is that of the server with the parsed message.
func (r *reading) finish(of *lathe.Finish) {
	f := lathe.Finish{}
	if of != nil {
		f = *of
	}
	if !r.sawText { // a server that does not stream
		r.readMessage(&f.Message)
	}
	r.flush()
	r.takeThought(&f)
	r.shown.End(r.pass)
	if r.stopped {
		return
	}
	f.Message.Parts = visible.ReplaceText(f.Message.Parts, r.message.Message().Parts, r.leaks != nil || r.native)
	isCut := f.Reason == lathe.FinishLength || f.Reason == lathe.FinishContentFilter
	switch hasCalls := len(f.Message.Calls()) > 0; {
	case hasCalls && !isCut:
		f.Reason = lathe.FinishToolCalls
	case !hasCalls && f.Reason == lathe.FinishToolCalls:
		f.Reason = lathe.FinishStop
	}
	f.Faults = r.faults(f.Faults)
	if len(r.dropped) > 0 {
		f.Dropped = slices.Concat(f.Dropped, r.dropped)
		f.Dropped = f.Dropped[:min(len(f.Dropped), wire.MaxDropped)]
	}
	r.pass(lathe.Delta{Kind: lathe.DeltaFinish, Finish: &f})
}

// faults returns the faults of the server and those that the parser counted.
func (r *reading) faults(given []lathe.Fault) []lathe.Fault {
	out := slices.Clone(given)
	if c, ok := r.parser.(dialect.Counter); ok {
		a := c.Anomalies()
		out = wire.CountFault(out, "name_repaired", a.ToolName)
		for stage, n := range a.ParseErrors() {
			out = wire.CountFault(out, "harmony_parse_error."+stage, n)
		}
		for kind, n := range a.UnexpectedOrder() {
			out = wire.CountFault(out, "harmony_unexpected_order."+kind, n)
		}
	}
	out = wire.CountFault(out, "deprecated_syntax", r.deprecated)
	out = wire.CountFault(out, faultOpenThought, r.inThought)
	return wire.CountFault(out, "leaked_call", r.recovered)
}
