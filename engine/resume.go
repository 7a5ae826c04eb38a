package engine

import (
	"context"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/runinput"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

// ReadState computes the state of a run from its log in s. Its error has the code not_found if the store does not contain the run.
func ReadState(ctx context.Context, s store.Store, runID string) (*loop.State, error) {
	return (&Engine{opts: Options{Store: s}}).State(ctx, runID)
}

// State returns the state of the run, computed from its log. Its error has the code not_found if the store does not contain the run.
func (e *Engine) State(ctx context.Context, runID string) (*loop.State, error) {
	return e.state(ctx, runID, &attempts{})
}

// state returns what State returns, and counts in tried how often the run was resumed. It reads a log to its end even if the events cannot
// be applied.
func (e *Engine) state(ctx context.Context, runID string, tried *attempts) (*loop.State, error) {
	const op = "engine: read the run"
	if e.opts.Store == nil {
		return nil, lathe.CodeNotFound.Errorf(op, "no store keeps runs")
	}
	s := &loop.State{}
	var broken error
	for ev, err := range e.opts.Store.Read(ctx, runID, 0) {
		if err != nil {
			return nil, storeCode(err).Wrap(op, err)
		}
		tried.count(&ev)
		if broken == nil {
			broken = fold(s, &ev)
		}
	}
	tried.read = true
	switch {
	case broken != nil:
		return nil, broken
	case s.LastID == 0:
		return nil, lathe.CodeNotFound.Errorf(op, "there is no such run")
	}
	return s, nil
}

var errFoldPanicked = lathe.CodeInternal.Errorf("engine: fold", "the fold panicked")

// fold applies an event. A panic is returned as an error.
func fold(s *loop.State, ev *event.Event) (err error) {
	defer recovered(&err, errFoldPanicked)
	return s.Apply(ev)
}

// Resume resumes a run that was started with [loop.Input].Park, and blocks until it ends or is parked again. The run must be parked, or its
// process must have stopped before the end of the run. answers are the results of calls that clients executed, by call id; nil: none. Calls
// without a result remain pending. l must be configured like the loop that started the run; [loop.State].Target names that loop. Resume
// also applies the signals that the store has for the run: results of clients, and a cancel request. If both answers and a signal have a
// result of a call, Resume uses that of answers. sinks receive the events after the sinks of the engine.
//
// If two processes resume the same run, only one succeeds: the first append of the other fails with code conflict, and that process does
// nothing more. On a shared store, the error is also conflict if another process executes the run. A tool that writes is not called twice:
// if an earlier process may have called it, the call gets the result `interrupted`.
//
// If the run cannot be resumed, the result is nil and the error has one of these codes: not_found; conflict if the run has ended;
// invalid_request if [Engine.Accept] has stored the run, which only [Engine.Step] continues; or unavailable for one lease after the
// connection of a shared store has changed to another server, whose log may lack events.
func (e *Engine) Resume(ctx context.Context, l *loop.Loop, runID string, answers map[string]lathe.Output, sinks ...event.Sink) (*event.Result, error) {
	g, err := e.claimRun(ctx, runID, &attempts{}, toItsEnd)
	if err != nil {
		return nil, err
	}
	return g.resume(ctx, l, answers, sinks)
}

// Cancel ends a run that is parked, or whose process has stopped: its open calls get the result `cancelled`. It blocks until the run has
// ended, and then returns no error. If ctx is done after Cancel has read the run, Cancel ends the run nevertheless. Cancel does not end a
// run that another process executes: that process must cancel the context of the run. If the run cannot be resumed, Cancel returns the same
// errors as [Engine.Resume]. l and sinks are as in Resume.
func (e *Engine) Cancel(ctx context.Context, l *loop.Loop, runID string, sinks ...event.Sink) (*event.Result, error) {
	g, err := e.claimRun(ctx, runID, &attempts{}, toItsEnd)
	if err != nil {
		return nil, err
	}
	return g.cancel(ctx, l, sinks)
}

// A claimedRun is a claimed run that is about to be resumed. It is used only once.
type claimedRun struct {
	engine  *Engine
	owned   *claimHandle // nil: the store is not shared
	state   *loop.State
	signals []store.Signal
	step    *stepping // nil: the run is resumed to its end, not for one step
}

// An execution is how the caller executes a run.
type execution int

const (
	toItsEnd execution = iota
	stepByStep
)

// claimRun claims a run that has not ended, reads it, and counts in tried how often it was resumed.
func (e *Engine) claimRun(ctx context.Context, runID string, tried *attempts, how execution) (*claimedRun, error) {
	h, err := e.node.acquire(ctx, runID)
	if err != nil {
		return nil, err
	}
	g, err := e.read(ctx, runID, h, tried, how)
	if err != nil {
		h.noteSignals(0)
		h.end(releaseClaim)
	}
	return g, err
}

// mayExecute returns an error if the run is not for this execution: only [Engine.Step] executes a run that was accepted for steps, and Step
// executes no other.
func mayExecute(s *loop.State, how execution) error {
	switch {
	case (how == stepByStep) == (s.Executor != ""):
		return nil
	case how == stepByStep:
		return lathe.CodeInvalidRequest.Errorf("engine: execute a step", "the run was not accepted for steps: a supervisor executes it")
	}
	return lathe.CodeInvalidRequest.Errorf("engine: resume", "the run is executed by another engine: %s", s.Executor)
}

// read reads a run that has not ended, under the claim h, and counts in tried how often it was resumed.
func (e *Engine) read(ctx context.Context, runID string, h *claimHandle, tried *attempts, how execution) (g *claimedRun, err error) {
	g = &claimedRun{engine: e, owned: h}
	if g.signals, err = e.readSignals(ctx, runID); err != nil { // before the log, so that the log contains every effect of these signals
		return nil, err
	}
	h.noteSignals(len(g.signals))
	if g.state, err = e.state(ctx, runID, tried); err != nil {
		return nil, err
	}
	if err := mayExecute(g.state, how); err != nil {
		return nil, err
	}
	h.noteLog(g.state.LastID, g.state.Finished != nil)
	if f := g.state.Finished; f != nil {
		return nil, lathe.CodeConflict.Errorf("engine: resume", "the run has ended: %s", f.Reason)
	}
	return g, nil
}

// resume resumes the run, or cancels it if a cancel request is stored.
func (g *claimedRun) resume(ctx context.Context, l *loop.Loop, answers map[string]lathe.Output, sinks []event.Sink) (*event.Result, error) {
	if cancelled(g.signals) {
		return g.cancel(ctx, l, sinks)
	}
	answers, err := withResults(answers, g.state, g.signals)
	if err != nil {
		g.owned.end(releaseClaim)
		return nil, err
	}
	res := g.continueRun(ctx, l, answers, sinks)
	return res, loop.Failure(res)
}

func (g *claimedRun) cancel(ctx context.Context, l *loop.Loop, sinks []event.Sink) (*event.Result, error) {
	gone, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	cancel(context.Canceled)
	res := g.continueRun(gone, l, nil, sinks)
	if res.Reason != lathe.ReasonCancelled {
		return res, loop.Failure(res)
	}
	return res, nil
}

func (g *claimedRun) continueRun(ctx context.Context, l *loop.Loop, answers map[string]lathe.Output, sinks []event.Sink) *event.Result {
	s := &stamper{engine: g.engine, own: sinks, log: g.engine.opts.Store, last: g.state.LastID, owned: g.owned, step: g.step,
		in: loop.Input{Run: g.state.Run, Resume: g.state, Answers: answers}}
	s.run = &s.in.Run
	if s.step != nil {
		*runinput.Of(&s.in) = runinput.Extra{Suspend: s.step.suspend, Suspended: s.step.suspended, Elapsed: s.step.elapsed}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.cancel = cancel
	g.owned.bind(cancel)
	defer g.owned.end(releaseClaim)
	res, _ := s.execute(ctx, l) // the result contains the error
	isParked := res != nil && res.Reason.Status() == "parked"
	if !isParked || g.hasUnapplied(res) {
		g.owned.noteSignals(0) // the signals count as not read
	}
	return res
}

// hasUnapplied reports whether the run waits for a result that was stored before its call was made, so that the result is not applied.
func (g *claimedRun) hasUnapplied(res *event.Result) bool {
	return slices.ContainsFunc(g.signals, func(f store.Signal) bool {
		isPending := slices.ContainsFunc(res.Pending, func(c lathe.ToolCall) bool { return c.ID == f.Key })
		return f.Kind == store.SignalResult && !isOpen(g.state, f.Key) && isPending
	})
}
