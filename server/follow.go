package server

import (
	"context"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/visible"
	"github.com/lathe-run/lathe/internal/wire"
)

// A request can be answered by a run that it does not execute: a run that is suspended until a person decides and whose
// stream is held open until then, or a run that an equal request has begun. Such a request follows the events of that run,
// whichever process executes it.

// maxWholeHold bounds how long an answer that is not streamed is held back: such a response has no keep-alives.
const maxWholeHold = 5 * time.Minute

// holdFor returns how long the response of a run with result res is held open; 0: it ends now.
func (ex *runStarter) holdFor(c *caller, j *job, res *event.Result) time.Duration {
	if j.holds == nil || ex.opts.Index == nil || ex.opts.Bus == nil || ex.leaving.Err() != nil || !j.holds(res) {
		return 0
	}
	return c.setup.Hold
}

// keepOpen returns true if the response may be held open: if the run waits for an approval and for no result of the client. The
// answer then follows the run.
func (a *chat) keepOpen(res *event.Result) bool {
	if res.Reason != lathe.ReasonAwaitingApproval || len(a.theirs(res.Pending)) > 0 {
		return false
	}
	a.follows = true
	return true
}

// follow follows a run. If hold is not 0 the run is suspended, and it is followed until it resumes,
// but at most for that time. The returned run is over when the followed run is suspended, has ended, or is followed no
// longer. The caller must call the returned function once: it stops following.
func (ex *runStarter) follow(ctx context.Context, c *caller, to following, hold time.Duration, wake func(), sinks []event.Sink) (*inflightRun, func()) {
	ctx, cancel := context.WithCancel(ctx)
	f := &inflightRun{over: make(chan struct{}), detach: true, cancel: func(error) { cancel() }, wake: wake}
	w := newWatch(ex.runViews, to.id, to.after, untilPaused)
	own := *c // a copy: the goroutine of the request changes *c
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		defer cancel()
		defer w.unsubscribe()
		defer context.AfterFunc(ex.leaving, cancel)()
		w.sink = func(e *event.Event) {
			for _, s := range sinks {
				s.Emit(ctx, *e)
			}
		}
		f.finish(w.untilRest(ctx, &own, hold))
	}()
	return f, func() {
		cancel()
		<-gone
	}
}

// untilRest passes the events of the run to the sink until the run is suspended or has ended, or ctx is done, and returns
// the result of the run. If the run is suspended when untilRest begins, it is followed until it resumes, but at most for
// hold.
func (w *watch) untilRest(ctx context.Context, c *caller, hold time.Duration) *event.Result {
	runCtx := ctx
	if hold > 0 {
		var cancel context.CancelFunc
		runCtx, cancel = context.WithTimeout(ctx, hold)
		defer cancel()
	}
	for {
		_ = w.run(runCtx) // the log, which is read next, has the state of the run
		v, p := w.views.viewOther(context.WithoutCancel(ctx), c, w.runID)
		switch {
		case p != nil:
			return takenOverResult(p)
		case ctx.Err() != nil, v.Rests() && v.State.LastID <= w.last:
			return v.Result()
		}
		runCtx = ctx // the run has resumed, so the time limit of the hold no longer applies
	}
}

// A followed counts what an answer that follows a run has received of the current turn. If another process executes the
// run, some deltas come without content: the opaque data of reasoning, parts of the vendor, and ends of texts. If the
// answer lags behind, the last deltas are missing. The message at the end of the turn contains everything; a turn that is
// interrupted has no message.
type followed struct {
	text       []byte        // the text received, commentary included
	textEnd    int           // offset in text of the last end of a text
	reasoning  int           // bytes of reasoning received
	refusal    int           // bytes of a refusal received
	data       int           // number of opaque data of reasoning
	parts      int           // number of parts of the vendor
	incomplete bool          // a delta came without content: the deltas after it are written with the rest of the turn
	held       []lathe.Delta // the deltas after the one without content, which are written if the turn has no message
}

// deltaOf returns the delta of an event with text, reasoning or another part of an answer; ok is false for other events.
func deltaOf(data event.Data) (_ lathe.Delta, ok bool) {
	switch d := data.(type) {
	case *event.TextDelta:
		if d.Delta != nil {
			return *d.Delta, true
		}
		return lathe.Delta{Kind: lathe.DeltaText, Text: d.Text}, true
	case *event.CommentaryDelta:
		return lathe.Delta{Kind: lathe.DeltaCommentary, Text: d.Text}, true
	case *event.ReasoningDelta:
		return lathe.Delta{Kind: lathe.DeltaReasoning, Text: d.Text}, true
	default:
		return lathe.Delta{}, false
	}
}

// note counts an event. It returns false if the event is not written now: if the client needs all parts of the answer in order,
// the deltas after one without content are not.
func (f *followed) note(data event.Data, ordered bool) (writes bool) {
	switch data.(type) {
	case *event.ModelCallStarted:
		*f = followed{}
		return true
	case *event.ToolCallDelta:
		return !f.incomplete
	default: // a delta of another part, or no delta
	}
	d, ok := deltaOf(data)
	if !ok {
		return true
	}
	f.incomplete = f.incomplete || ordered && d.Kind == lathe.DeltaText && d.Text == ""
	if f.incomplete {
		f.held = append(f.held, d)
		return false
	}
	f.add(&d)
	return true
}

func (f *followed) add(d *lathe.Delta) {
	switch d.Kind {
	case lathe.DeltaText, lathe.DeltaCommentary:
		f.text = append(f.text, d.Text...)
	case lathe.DeltaReasoning:
		f.reasoning += len(d.Text)
	case lathe.DeltaRefusal:
		f.refusal += len(d.Text)
	case lathe.DeltaReasoningData:
		f.data++
	case lathe.DeltaPart:
		f.parts++
	case lathe.DeltaTextEnd:
		f.textEnd = len(f.text)
	default: // calls are not counted
	}
}

// cut returns s without the first *received bytes, and subtracts their number from *received.
func cut(s string, received *int) string {
	n := min(len(s), *received)
	*received -= n
	return s[n:]
}

// missing returns the deltas of the message m that were not received. It returns nil if the received text is not the beginning
// of the text of m. f is a copy: each delta of m that was received is subtracted from it.
func (f followed) missing(m *lathe.Message) (out []lathe.Delta) {
	at := 0 // offset in the text of m
	unread := string(f.text)
	for d := range wire.Deltas(m) {
		isMissing := true
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
			f.data--
			isMissing = f.data < 0
		case lathe.DeltaPart:
			f.parts--
			isMissing = f.parts < 0
		case lathe.DeltaTextEnd: // an end before received text is left out: its place has passed
			isMissing = at > f.textEnd && at >= len(f.text)
		case lathe.DeltaCallStart: // if the data after the call was received, the call was, too
			isMissing = f.data <= 0
		default:
			isMissing = false
		}
		if isMissing {
			out = append(out, d)
		}
	}
	if unread != "" {
		return nil
	}
	return out
}

// appendRest appends the part of a turn that this stream has not received, at the end of the turn. It is called for a run
// that another request or process executes or has executed.
func (a *content) appendRest(dst []byte, e *event.Event) []byte {
	end, ok := e.Data.(*event.ModelCallFinished)
	if !ok {
		return dst
	}
	deltas := a.followed.held
	if end.Message != nil {
		shown := *end.Message
		shown.Parts = visible.Parts(end.Message)
		deltas = a.followed.missing(&shown)
	}
	a.followed = followed{}
	for i := range deltas {
		switch d := &deltas[i]; {
		case d.Kind == lathe.DeltaCallStart:
			a.signature, a.gap = nil, a.wroteText && a.turn == e.Turn // as in [content.appendPiece]; the calls follow at the end of the answer
		case d.Kind != lathe.DeltaRefusal || d.Text != "": // a refusal that was received is left with no text
			dst = a.delta(dst, e.Turn, d)
		}
	}
	return dst
}
