package server

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/visible"
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
		case ctx.Err() != nil, (v.state.Finished != nil || v.state.Paused != "") && v.state.LastID <= x.last:
			return v.result()
		}
		cancel() // it went on: the time of the hold does not count any more
		waiting, cancel = ctx, func() {}
	}
}

// result returns what the run has come to, as its log says it.
func (v *runView) result() *event.Result {
	s := &v.state
	res := &event.Result{Reason: s.Paused, History: s.Messages, Usage: s.Usage, Cost: s.Cost, Trace: s.Trace, ToolCalls: s.Planned}
	for i := range s.Open {
		if slices.Contains(v.summary.Run.Pending, s.Open[i].ID) {
			res.Pending = append(res.Pending, s.Open[i].ToolCall)
		}
	}
	switch f := s.Finished; {
	case f != nil:
		res.Reason, res.Answer, res.Pending = f.Reason, f.Answer, nil
		if f.Reason == lathe.ReasonClientToolCalls {
			for i := range s.Open {
				res.Pending = append(res.Pending, s.Open[i].ToolCall)
			}
		}
		if f.ErrorCode != "" {
			res.Err = &lathe.Error{Code: lathe.Code(f.ErrorCode), Op: "gateway: follow", Err: errors.New("the run failed")}
		}
		if f.Reason == lathe.ReasonUpstreamError {
			res.Err = &lathe.UpstreamError{Kind: lathe.UpstreamKind(f.ErrorCode)}
		}
	case s.Paused == "": // it goes on, and is followed no longer
		res.Reason, res.Err = lathe.ReasonInterrupted, &lathe.Error{Code: lathe.CodeInterrupted, Op: "gateway: follow", Err: errors.New("the run goes on")}
	}
	return res
}

// appendRest appends the text of a turn that was not streamed here: the run is executed elsewhere, or was before.
func (a *chat) appendRest(dst []byte, turn int, m *lathe.Message) []byte {
	sent := ""
	if a.turn == turn {
		sent = a.turnText
	}
	shown := visible.Parts(m)
	if text := textOf(shown); len(text) > len(sent) && strings.HasPrefix(text, sent) {
		return a.text(dst, turn, text[len(sent):])
	}
	return dst
}
