package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/loop"
)

// State returns what the run has come to, from its log. A run that the store does not have is an
// error of code not_found.
func (e *Engine) State(ctx context.Context, runID string) (*loop.State, error) {
	return e.state(ctx, runID, &attempts{})
}

// state is State, and counts what was tried with the run. A log that cannot be folded is read to its end.
func (e *Engine) state(ctx context.Context, runID string, tried *attempts) (*loop.State, error) {
	const op = "engine: read the run"
	if e.opts.Store == nil {
		return nil, &lathe.Error{Code: lathe.CodeNotFound, Op: op, Err: errors.New("no store keeps runs")}
	}
	s := &loop.State{}
	var broken error
	for ev, err := range e.opts.Store.Read(ctx, runID, 0) {
		if err != nil {
			return nil, &lathe.Error{Code: storeCode(err), Op: op, Err: err}
		}
		tried.take(&ev)
		if broken == nil {
			broken = fold(s, &ev)
		}
	}
	tried.read = true
	switch {
	case broken != nil:
		return nil, broken
	case s.LastID == 0:
		return nil, &lathe.Error{Code: lathe.CodeNotFound, Op: op, Err: errors.New("there is no such run")}
	}
	return s, nil
}

// fold applies an event. A fold that panics fails.
func fold(s *loop.State, ev *lathe.Event) (err error) {
	defer func() {
		if recover() != nil { // its value may hold content
			err = &lathe.Error{Code: lathe.CodeInternal, Op: "engine: fold", Err: errors.New("the fold panicked")}
		}
	}()
	return s.Apply(ev)
}

// Resume goes on with a run that was started with [loop.Input].Park: one that waits, with what
// clients answer, or one whose process ended in the middle of it. l is a loop like the one that it was
// started with; [loop.State].Target says which. What the store keeps of it that came from outside is taken
// up: results of clients, and the wish to cancel it.
//
// The log is what keeps two processes from going on with the same run: whose first event cannot be
// appended where the other's already is does nothing else and gets a conflict. On a shared store it is a
// conflict, too, while another process carries the run. No tool that writes is
// called again by itself: where an earlier process may have called one, the call is answered
// `interrupted`.
//
// The result is nil when the run cannot be gone on with; the error says why then, with the code
// not_found, or conflict where it has ended, or unavailable for the time of a lease after a shared store has
// found another server than before: the log may lack what was done. That holds for Cancel, too.
func (e *Engine) Resume(ctx context.Context, l *loop.Loop, runID string, answers map[string]lathe.Output, sinks ...lathe.Sink) (*lathe.Result, error) {
	g, err := e.grasp(ctx, runID)
	if err != nil {
		return nil, err
	}
	return g.resume(ctx, l, answers, sinks)
}

// Cancel ends a run that waits, or whose process is gone: its open calls are answered `cancelled`. It
// ends no run that another process is carrying; whoever carries a run cancels its context.
func (e *Engine) Cancel(ctx context.Context, l *loop.Loop, runID string, sinks ...lathe.Sink) (*lathe.Result, error) {
	g, err := e.grasp(ctx, runID)
	if err != nil {
		return nil, err
	}
	return g.cancel(ctx, l, sinks)
}

// A grasp is a run that is about to be gone on with. It is used once.
type grasp struct {
	engine *Engine
	hold   *hold // nil: nobody else could carry it
	state  *loop.State
	facts  []lathe.Fact
}

// grasp claims a run that has not ended, and reads it.
func (e *Engine) grasp(ctx context.Context, runID string) (*grasp, error) {
	h, err := e.node.take(ctx, runID)
	if err != nil {
		return nil, err
	}
	g, err := e.read(ctx, runID, h, &attempts{})
	if err != nil {
		h.look(0)
		h.end(false)
		return nil, err
	}
	return g, nil
}

// read reads a run that has not ended and whose claim is h.
func (e *Engine) read(ctx context.Context, runID string, h *hold, tried *attempts) (g *grasp, err error) {
	g = &grasp{engine: e, hold: h}
	if g.facts, err = e.facts(ctx, runID); err != nil { // before the log: what is in both is seen in the log
		return nil, err
	}
	h.look(len(g.facts))
	if g.state, err = e.state(ctx, runID, tried); err != nil {
		return nil, err
	}
	h.saw(g.state.LastID, g.state.Finished != nil)
	if f := g.state.Finished; f != nil {
		return nil, &lathe.Error{Code: lathe.CodeConflict, Op: "engine: resume", Err: errors.New("the run has ended: " + string(f.Reason))}
	}
	return g, nil
}

// resume goes on with the run, or ends it where somebody has wished that.
func (g *grasp) resume(ctx context.Context, l *loop.Loop, answers map[string]lathe.Output, sinks []lathe.Sink) (*lathe.Result, error) {
	if cancelled(g.facts) {
		return g.cancel(ctx, l, sinks)
	}
	answers, err := withResults(answers, g.state, g.facts)
	if err != nil {
		g.hold.end(false)
		return nil, err
	}
	res := g.goOn(ctx, l, answers, sinks)
	return res, loop.Failure(res)
}

func (g *grasp) cancel(ctx context.Context, l *loop.Loop, sinks []lathe.Sink) (*lathe.Result, error) {
	gone, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	cancel(context.Canceled)
	res := g.goOn(gone, l, nil, sinks)
	if res.Reason != lathe.ReasonCancelled {
		return res, loop.Failure(res)
	}
	return res, nil
}

func (g *grasp) goOn(ctx context.Context, l *loop.Loop, answers map[string]lathe.Output, sinks []lathe.Sink) *lathe.Result {
	e := g.engine
	s, _ := e.stampers.Get().(*stamper)
	if s == nil {
		s = &stamper{}
	}
	s.engine, s.own, s.last, s.hold = e, sinks, g.state.LastID, g.hold
	s.in = loop.Input{Run: g.state.Run, Resume: g.state, Answers: answers}
	s.run = &s.in.Run
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.cancel = cancel
	g.hold.bind(cancel)
	defer func() { g.hold.end(false) }()
	res, _ := s.carry(ctx, l)                            // whose error is in the result
	if res.Reason.Status() != "parked" || g.early(res) { // it was left, or waits for what is there by now
		g.hold.look(0)
	}
	return res
}

// early reports whether the run waits now for a result that was there before its call was: it has not been
// looked at yet.
func (g *grasp) early(res *lathe.Result) bool {
	return slices.ContainsFunc(g.facts, func(f lathe.Fact) bool {
		return f.Kind == lathe.FactResult && !isOpen(g.state, f.Key) && slices.ContainsFunc(res.Pending, func(c lathe.ToolCall) bool { return c.ID == f.Key })
	})
}
