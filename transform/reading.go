package transform

import (
	"cmp"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/internal/callid"
	"github.com/lathe-run/lathe/internal/visible"
)

// A reading is one answer on its way through the chain: what the deltas say and what the finish
// holds change alike.
type reading struct {
	chain *Chain
	ids   *callid.Short // of the calls of the request
	yield func(lathe.Delta, error) bool
	ended bool // the consumer wants no more

	tags      *tagReader // nil: text passes
	text      dialect.Collector
	shown     visible.Stream
	seen      bool          // text came as deltas
	buffering bool          // a call was found in the text, and the server may still send its own
	held      []lathe.Delta // what was read since
	written   []string      // the dialects of calls that were parsed and not yet yielded
	found     int           // calls in the text that were given
	calls     int           // calls given so far
	open      []openCall
}

// maxMarkup is how much longer than its arguments a call in the text may be, in bytes.
const maxMarkup = 4 << 10

// An openCall is a call of the server's own whose deltas are being yielded.
type openCall struct {
	in, out int
	blank   string // argument text so far, while it is white space
	begun   bool   // other argument text came
}

func newReading(chain *Chain, ids *callid.Short, req *lathe.Request, yield func(lathe.Delta, error) bool) *reading {
	r := &reading{chain: chain, ids: ids, yield: yield}
	r.shown.ShowUnreadable = chain.showBad
	tools := req.Tools
	if len(tools) == 0 || req.ToolChoice.Mode == lathe.ChoiceNone {
		tools = req.TextCalls.Tools
	}
	if chain.tagCalls && len(tools) > 0 {
		most := chain.maxPayload
		if req.MaxPayloadBytes > 0 && (most == 0 || req.MaxPayloadBytes < most) {
			most = req.MaxPayloadBytes
		}
		if most == 0 {
			most = maxMarkup + cmp.Or(max(req.TextCalls.MaxArgsBytes, 0), lathe.Limits{}.WithDefaults().MaxToolArgsBytes)
		}
		r.tags = newTagReader(tools, most, r.addText)
	}
	return r
}

func (r *reading) pass(d lathe.Delta) { r.give(&d) }

func (r *reading) give(d *lathe.Delta) {
	if !r.ended && !r.yield(*d, nil) {
		r.ended = true
	}
}

// take takes the model's next delta. It returns false when the answer is over.
func (r *reading) take(d *lathe.Delta) bool {
	switch d.Kind {
	case lathe.DeltaText:
		r.seen = true
		if r.tags == nil {
			r.give(d)
		} else {
			r.tags.read(d.Text)
			if r.buffering && len(r.tags.found) > maxBuffered {
				r.release()
			}
		}
	case lathe.DeltaCallStart:
		if r.tags != nil {
			r.ownCalls()
		}
		r.open = append(r.open, openCall{in: d.Index, out: r.calls})
		r.calls++
		r.passCall(d, r.open[len(r.open)-1].out)
	case lathe.DeltaCallArgs, lathe.DeltaCallEnd:
		if c := r.find(d.Index); c != nil {
			r.call(d, c)
		}
	case lathe.DeltaFinish:
		r.finish(d.Finish)
		return false
	default:
		r.give(d)
	}
	return !r.ended
}

func (r *reading) find(index int) *openCall {
	for i := len(r.open) - 1; i >= 0; i-- {
		if r.open[i].in == index {
			return &r.open[i]
		}
	}
	return nil
}

// call passes the arguments and the end of a call. White space is buffered until it is clear that
// something else follows.
func (r *reading) call(d *lathe.Delta, c *openCall) {
	args := lathe.Delta{Kind: lathe.DeltaCallArgs, Index: c.out}
	switch {
	case !r.chain.blankArgs || c.begun:
	case d.Kind == lathe.DeltaCallArgs && strings.TrimSpace(d.Text) == "":
		c.blank += d.Text
		return
	case d.Kind == lathe.DeltaCallArgs:
		c.begun = true
		if args.Text = c.blank; c.blank != "" {
			r.give(&args)
		}
	default:
		c.begun = true
		if args.Text = c.blank; !d.Incomplete {
			args.Text = "{}"
		}
		if args.Text != "" {
			r.give(&args)
		}
	}
	r.passCall(d, c.out)
}

func (r *reading) passCall(d *lathe.Delta, index int) {
	c := *d
	c.Index = index
	if r.chain.nineLetter && c.ID != "" {
		c.ID = r.ids.Back(c.ID)
	}
	r.give(&c)
}

// addText takes what was read from the text. From the first call on it is held: a server that reads
// the calls itself may leave them in the text, and none must run twice.
func (r *reading) addText(d *lathe.Delta) {
	if d.Kind == lathe.DeltaCallStart {
		r.written = append(r.written, r.tags.dialect)
		r.buffering = r.buffering || r.found == 0
	}
	if r.buffering {
		r.held = append(r.held, *d)
		return
	}
	r.forward(d)
}

// release gives what is held. Whatever calls the server may send come after it.
func (r *reading) release() {
	r.buffering = false
	for i := range r.held {
		r.forward(&r.held[i])
	}
	r.held = nil
}

// ownCalls is called at the first call of the server's own: what its text holds is text.
func (r *reading) ownCalls() {
	if !r.buffering {
		r.tags.stop()
		return
	}
	r.buffering, r.held, r.written = false, nil, nil
	r.forward(&lathe.Delta{Kind: lathe.DeltaText, Text: r.tags.takeBack()})
}

// forward gives what was read from the text.
func (r *reading) forward(d *lathe.Delta) {
	switch d.Kind {
	case lathe.DeltaCallStart:
		r.text.Dialect, r.written = r.written[0], r.written[1:]
		d.Index = r.calls
		r.calls++
		r.found++
	case lathe.DeltaCallArgs, lathe.DeltaCallEnd:
		d.Index = r.calls - 1
	case lathe.DeltaParseError:
		r.text.Dialect = tagDialect
	}
	r.shown.Mark(d)
	r.text.Add(*d)
	r.shown.Pass(d, r.pass)
}

// broken ends an answer that failed: what was buffered of its text first.
func (r *reading) broken(err error) {
	if r.tags != nil {
		r.tags.flush()
		r.release()
		r.shown.End(r.pass)
	}
	if !r.ended {
		r.yield(lathe.Delta{}, err)
	}
}

// finish ends the answer, with its message changed as its deltas were.
func (r *reading) finish(of *lathe.Finish) {
	f := lathe.Finish{}
	if of != nil {
		f = *of
	}
	if r.tags != nil {
		r.readText(&f)
	}
	if r.ended {
		return
	}
	if r.chain.blankArgs {
		f.Message = eachCall(f.Message, fillArguments)
	}
	if r.chain.nineLetter {
		f.Message = eachCall(f.Message, func(c *lathe.ToolCall) bool {
			was := c.ID
			c.ID = r.ids.Back(was)
			return c.ID != was
		})
	}
	r.give(&lathe.Delta{Kind: lathe.DeltaFinish, Finish: &f})
}

// readText puts what was read into the place of the text of f.
func (r *reading) readText(f *lathe.Finish) {
	if !r.seen { // a server that does not stream
		if hasCalls(&f.Message) {
			r.ownCalls()
		}
		for _, p := range f.Message.Parts {
			if t, ok := p.(lathe.Text); ok && !t.Commentary {
				r.tags.read(t.Text)
			}
		}
	}
	r.tags.flush()
	r.release()
	r.shown.End(r.pass)
	read := r.text.Message().Parts
	for i, p := range read {
		if c, ok := p.(lathe.ToolCall); ok {
			c.Recovered = true
			read[i] = c
		}
	}
	f.Message.Parts = inPlaceOfText(f.Message.Parts, read)
	if r.found > 0 {
		f.Faults = append(f.Faults[:len(f.Faults):len(f.Faults)], lathe.Fault{Kind: faultTagCall, Count: r.found})
	}
	if f.Reason != lathe.FinishLength && f.Reason != lathe.FinishContentFilter && hasCalls(&f.Message) {
		f.Reason = lathe.FinishToolCalls
	}
}

// inPlaceOfText returns the parts given with read for the first text, and without the others.
func inPlaceOfText(given, read []lathe.Part) []lathe.Part {
	out := make([]lathe.Part, 0, len(given)+len(read))
	done := false
	for _, p := range given {
		t, isText := p.(lathe.Text)
		isText = isText && !t.Commentary
		if !done && (isText || isCall(p)) {
			out = append(out, read...)
			done = true
		}
		if !isText {
			out = append(out, p)
		}
	}
	if !done {
		out = append(out, read...)
	}
	return out
}
