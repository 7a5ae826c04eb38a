package engine

import (
	"context"
	"errors"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/loop"
)

// State returns what the run has come to, from its log. A run that the store does not have is an
// error of code not_found.
func (e *Engine) State(ctx context.Context, runID string) (*loop.State, error) {
	const op = "engine: read the run"
	if e.opts.Store == nil {
		return nil, &lathe.Error{Code: lathe.CodeNotFound, Op: op, Err: errors.New("no store keeps runs")}
	}
	s := &loop.State{}
	for ev, err := range e.opts.Store.Read(ctx, runID, 0) {
		if err != nil {
			return nil, &lathe.Error{Code: storeCode(err), Op: op, Err: err}
		}
		if err := s.Apply(&ev); err != nil {
			return nil, err
		}
	}
	if s.LastID == 0 {
		return nil, &lathe.Error{Code: lathe.CodeNotFound, Op: op, Err: errors.New("there is no such run")}
	}
	return s, nil
}

// Resume goes on with a run that was started with [loop.Input].Park: one that waits, with what
// clients answer, or one whose process ended in the middle of it. l is a loop like the one that it was
// started with; [loop.State].Target says which.
//
// The log is what keeps two processes from going on with the same run: whose first event cannot be
// appended where the other's already is does nothing else and gets a conflict. No tool that writes is
// called again by itself: where an earlier process may have called one, the call is answered
// `interrupted`.
//
// The result is nil when the run cannot be gone on with; the error says why then, with the code
// not_found, or conflict where it has ended.
func (e *Engine) Resume(ctx context.Context, l *loop.Loop, runID string, answers map[string]lathe.Output, sinks ...lathe.Sink) (*lathe.Result, error) {
	state, err := e.open(ctx, runID)
	if err != nil {
		return nil, err
	}
	res := e.goOn(ctx, l, &loop.Input{Run: state.Run, Resume: state, Answers: answers}, sinks)
	return res, loop.Failure(res)
}

// open returns the state of a run that has not ended.
func (e *Engine) open(ctx context.Context, runID string) (*loop.State, error) {
	state, err := e.State(ctx, runID)
	if err == nil && state.Finished != nil {
		err = &lathe.Error{Code: lathe.CodeConflict, Op: "engine: resume", Err: errors.New("the run has ended: " + string(state.Finished.Reason))}
	}
	return state, err
}

func (e *Engine) goOn(ctx context.Context, l *loop.Loop, in *loop.Input, sinks []lathe.Sink) *lathe.Result {
	s, _ := e.stampers.Get().(*stamper)
	if s == nil {
		s = &stamper{}
	}
	s.engine, s.own, s.last, s.in = e, sinks, in.Resume.LastID, *in
	s.run = &s.in.Run
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.cancel = cancel
	res, _ := s.carry(ctx, l) // whose error is in the result
	return res
}

// Cancel ends a run that waits, or whose process is gone: its open calls are answered `cancelled`. It
// ends no run that another process is carrying; whoever carries a run cancels its context.
func (e *Engine) Cancel(ctx context.Context, l *loop.Loop, runID string, sinks ...lathe.Sink) (*lathe.Result, error) {
	state, err := e.open(ctx, runID)
	if err != nil {
		return nil, err
	}
	gone, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	cancel(context.Canceled)
	res := e.goOn(gone, l, &loop.Input{Run: state.Run, Resume: state}, sinks)
	if res.Reason != lathe.ReasonCancelled {
		return res, loop.Failure(res)
	}
	return res, nil
}
