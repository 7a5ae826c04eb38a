package transform

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/internal/callid"
	"github.com/lathe-run/lathe/internal/visible"
)

// A reading is one answer that passes through the chain. It changes the deltas and the message of the finish alike.
type reading struct {
	chain *Chain
	ids   *callid.Short // short ids of the calls of the request
	yield func(lathe.Delta, error) bool
	ended bool // the consumer has stopped the iteration

	seen  bool // the server sent text as deltas
	calls int  // number of all calls yielded
	open  []openCall

	// The text, if calls are read from it. addText stores its deltas from the first call on, until release forwards them or ownCalls drops
	// them for the text that they were read from.
	tags      *tagReader // nil: text is passed unchanged
	text      dialect.Collector
	shown     visible.Stream
	buffering bool          // a call was found in the text, and the server may still send its own
	held      []lathe.Delta // the deltas read since that call
	written   []string      // the dialects of calls that were parsed and not yet yielded
	found     int           // number of calls found in the text and yielded
}

// maxMarkup is the allowance in bytes, beyond the limit of its arguments, for the markup of a call in the text.
const maxMarkup = 4 << 10

// An openCall is a call that the server sent as a call (not in the text) and whose deltas are being yielded. in is its index in the deltas
// of the server, out the one in the deltas yielded.
type openCall struct {
	in, out int
	blank   string // the argument text so far, as long as it is only white space
	begun   bool   // argument text other than white space was received
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

// take processes the next delta of the model. It returns false when the answer is over or the consumer has stopped.
func (r *reading) take(d *lathe.Delta) bool {
	switch d.Kind {
	case lathe.DeltaText:
		r.seen = true
		if r.tags == nil {
			r.give(d)
		} else {
			r.tags.read(d.Text)
			if r.buffering && len(r.tags.stored) > maxBuffered {
				r.release()
			}
		}
	case lathe.DeltaCallStart:
		if r.tags != nil {
			r.ownCalls()
		}
		r.open = append(r.open, openCall{in: d.Index, out: r.calls})
		r.passCall(d, r.calls)
		r.calls++
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
	for i := range slices.Backward(r.open) {
		if r.open[i].in == index {
			return &r.open[i]
		}
	}
	return nil
}

// call passes the arguments or the end of a call. If the chain fills blank arguments in, white space at their start is buffered until other
// text follows.
func (r *reading) call(d *lathe.Delta, c *openCall) {
	if r.chain.blankArgs && !c.begun {
		if d.Kind == lathe.DeltaCallArgs && strings.TrimSpace(d.Text) == "" {
			c.blank += d.Text
			return
		}
		c.begun = true
		text := c.blank
		if d.Kind == lathe.DeltaCallEnd && !d.Incomplete {
			text = "{}"
		}
		if text != "" {
			r.give(&lathe.Delta{Kind: lathe.DeltaCallArgs, Index: c.out, Text: text})
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

// addText takes a delta that was read from the text. From the first call on, deltas are buffered: a server that parses calls itself may
// also leave them in its text, and no call must run twice.
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

// release forwards the buffered deltas. Calls that the server sends later follow them.
func (r *reading) release() {
	r.buffering = false
	for i := range r.held {
		r.forward(&r.held[i])
	}
	r.held = nil
}

// ownCalls is called at the first call that the server sends as a call: calls in its text are then plain text, and those buffered are
// forwarded as text.
func (r *reading) ownCalls() {
	if !r.buffering {
		r.tags.stop()
		return
	}
	r.buffering, r.held, r.written = false, nil, nil
	r.forward(&lathe.Delta{Kind: lathe.DeltaText, Text: r.tags.takeBack()})
}

// forward yields a delta that was read from the text, with the index of its call, and adds it to the message.
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

// broken ends an answer that failed with err. It first yields what is buffered of the text.
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

// finish yields the finish of the answer, with the same changes in its message as in the deltas.
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
		f.Message = eachPart(f.Message, fillArguments)
	}
	if r.chain.nineLetter {
		f.Message = eachPart(f.Message, func(c *lathe.ToolCall) bool {
			was := c.ID
			c.ID = r.ids.Back(was)
			return c.ID != was
		})
	}
	r.give(&lathe.Delta{Kind: lathe.DeltaFinish, Finish: &f})
}

// readText replaces the text of f.Message by what was read from the text: text and calls. It counts the calls as a fault of the server.
func (r *reading) readText(f *lathe.Finish) {
	if !r.seen { // the server did not stream, or sent no text
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
	f.Message.Parts = visible.ReplaceText(f.Message.Parts, r.text.Message().Parts, true)
	if r.found > 0 {
		f.Faults = append(f.Faults[:len(f.Faults):len(f.Faults)], lathe.Fault{Kind: faultTagCall, Count: r.found})
	}
	isCut := f.Reason == lathe.FinishLength || f.Reason == lathe.FinishContentFilter
	if !isCut && hasCalls(&f.Message) {
		f.Reason = lathe.FinishToolCalls
	}
}
