package server

import (
	"context"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/visible"
	"github.com/lathe-run/lathe/internal/wire"
)

// A request can be answered by a run that it does not execute: one that waits for a person and whose stream is held
// open until then, or one that an equal request has begun. It follows the events of that run, whichever process
// executes it.

// maxWholeHold bounds the time for which an answer that is not streamed is held: it has no keep-alives.
const maxWholeHold = 5 * time.Minute

// holdFor returns how long the answer of a run that came to res is held; 0: it is given now.
func (ex *runStarter) holdFor(c *caller, j *job, res *event.Result) time.Duration {
	if j.holds == nil || ex.opts.Index == nil || ex.opts.Bus == nil || ex.leaving.Err() != nil || !j.holds(res) {
		return 0
	}
	return c.setup.Hold
}

// holds reports whether the answer of the run may be held: it waits for a person and for nothing of the client.
func (a *chat) holds(res *event.Result) bool {
	if res.Reason != lathe.ReasonAwaitingApproval || len(a.theirs(res.Pending)) > 0 {
		return false
	}
	a.follows = true
	return true
}

// follow begins to follow a run from after an event. With hold the run waits: it is followed no longer than hold
// while it does. The inflightRun is over when the run waits, has ended, or is followed no longer. leave must be called once.
func (ex *runStarter) follow(ctx context.Context, c *caller, id string, after int64, hold time.Duration, wake func(), sinks []event.Sink) (*inflightRun, func()) {
	ctx, cancel := context.WithCancel(ctx)
	f := &inflightRun{over: make(chan struct{}), id: id, detach: true, cancel: func(error) { cancel() }, wake: wake}
	x := &watch{views: ex.runViews, runID: id, last: after, sub: ex.opts.Bus.Subscribe(id), follow: "pause"}
	own := *c // which the goroutine of the request changes
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		defer cancel()
		defer func() { x.sub.Close() }()
		defer context.AfterFunc(ex.leaving, cancel)()
		x.sink = func(e *event.Event) {
			for _, s := range sinks {
				s.Emit(ctx, *e)
			}
		}
		f.finish(x.untilRest(ctx, &own, hold))
	}()
	return f, func() {
		cancel()
		<-gone
	}
}

// untilRest passes on the events of the run until it is suspended or has ended, or ctx is done, and returns its result. A
// run that is suspended when untilRest begins is followed for the time hold, or until it resumes.
func (x *watch) untilRest(ctx context.Context, c *caller, hold time.Duration) *event.Result {
	waiting, cancel := ctx, context.CancelFunc(func() {})
	if hold > 0 {
		waiting, cancel = context.WithTimeout(ctx, hold)
	}
	defer func() { cancel() }()
	for {
		_ = x.run(waiting) // the log says what has become of the run
		v, p := x.views.viewOther(context.WithoutCancel(ctx), c, x.runID)
		switch {
		case p != nil:
			return takenOverResult(p)
		case ctx.Err() != nil, (v.State.Finished != nil || v.State.Paused != "") && v.State.LastID <= x.last:
			return v.Result()
		}
		cancel() // it went on: the time of the hold does not count any more
		waiting, cancel = ctx, func() {}
	}
}

// A followed is what an answer that follows a run has received of the current turn. If another process executes the run, deltas come
// without what is not text: the data of reasoning, parts of the vendor, and ends of texts. If the answer lags, the last deltas do not come. The
// message at the end of the turn has all of it; a turn that breaks off has none.
type followed struct {
	text      []byte        // commentary included
	textEnd   int           // where the last end of a text was, in bytes of text
	reasoning int           // bytes
	refusal   int           // bytes
	data      int           // opaque data of reasoning
	parts     int           // of the vendor
	waits     bool          // a delta came without its content: what follows it is written with the rest of the turn
	held      []lathe.Delta // what followed it, if the turn breaks off
}

// note notes an event, and reports whether it is written now. With ordered the client needs all parts of the answer in their order: what
// follows a delta without content is not written now.
func (f *followed) note(data event.Data, ordered bool) bool {
	switch d := data.(type) {
	case *event.ModelCallStarted:
		*f = followed{}
		return true
	case *event.TextDelta:
		if f.waits = f.waits || ordered && d.Delta == nil && d.Text == ""; !f.waits {
			f.add(d)
		} else if d.Delta != nil {
			f.held = append(f.held, *d.Delta)
		} else {
			f.hold(lathe.DeltaText, d.Text)
		}
	case *event.CommentaryDelta:
		if f.waits {
			f.hold(lathe.DeltaCommentary, d.Text)
		} else {
			f.text = append(f.text, d.Text...)
		}
	case *event.ReasoningDelta:
		if f.waits {
			f.hold(lathe.DeltaReasoning, d.Text)
		} else {
			f.reasoning += len(d.Text)
		}
	case *event.ToolCallDelta:
	default:
		return true
	}
	return !f.waits
}

func (f *followed) hold(kind lathe.DeltaKind, text string) {
	f.held = append(f.held, lathe.Delta{Kind: kind, Text: text})
}

// add notes what a delta has.
func (f *followed) add(d *event.TextDelta) {
	if d.Delta == nil {
		f.text = append(f.text, d.Text...)
		return
	}
	switch d.Delta.Kind {
	case lathe.DeltaRefusal:
		f.refusal += len(d.Text)
	case lathe.DeltaReasoningData:
		f.data++
	case lathe.DeltaPart:
		f.parts++
	case lathe.DeltaTextEnd:
		f.textEnd = len(f.text)
	default: // plain text has no Delta
	}
}

// rest returns the deltas of a message that were not received. What stands before text that was received, and is not text, is left out where
// its place has passed. It returns nothing if the text is another one.
func (f followed) rest(m *lathe.Message) (rest []lathe.Delta) {
	at := 0 // in the text
	unread := string(f.text)
	cut := func(s string, received *int) string {
		n := min(len(s), *received)
		*received -= n
		return s[n:]
	}
	for d := range wire.Deltas(m) {
		switch d.Kind {
		case lathe.DeltaText, lathe.DeltaCommentary:
			n := min(len(d.Text), len(unread))
			if d.Text[:n] != unread[:n] {
				return nil
			}
			at += len(d.Text)
			d.Text, unread = d.Text[n:], unread[n:]
		case lathe.DeltaReasoning:
			d.Text = cut(d.Text, &f.reasoning)
		case lathe.DeltaRefusal:
			d.Text = cut(d.Text, &f.refusal)
		case lathe.DeltaReasoningData:
			if f.data--; f.data >= 0 {
				continue
			}
		case lathe.DeltaPart:
			if f.parts--; f.parts >= 0 {
				continue
			}
		case lathe.DeltaTextEnd:
			if at <= f.textEnd || at < len(f.text) {
				continue
			}
		case lathe.DeltaCallStart:
			if f.data > 0 { // the data behind the call was received
				continue
			}
		default:
			continue
		}
		rest = append(rest, d)
	}
	if unread != "" {
		return nil
	}
	return rest
}

// appendRest appends, at the end of a turn of a run that is executed elsewhere, or was before, what a stream has of the turn and this one
// does not.
func (a *content) appendRest(dst []byte, e *event.Event) []byte {
	d, ends := e.Data.(*event.ModelCallFinished)
	if !ends {
		return dst
	}
	rest := a.followed.held
	if d.Message != nil {
		shown := *d.Message
		shown.Parts = visible.Parts(d.Message)
		rest = a.followed.rest(&shown)
	}
	a.followed = followed{}
	for i := range rest {
		switch d := &rest[i]; {
		case d.Kind == lathe.DeltaCallStart:
			a.signature, a.gap = nil, a.wroteText && a.turn == e.Turn // as in [chat.appendPiece]; the calls follow at the end of the answer
		case d.Kind == lathe.DeltaRefusal && d.Text == "":
		default:
			dst = a.delta(dst, e.Turn, d)
		}
	}
	return dst
}
