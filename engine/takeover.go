package engine

import (
	"context"
	"errors"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/loop"
)

// maxAttempts bounds how often a run is gone on with in a row without getting anywhere. Beyond it the run
// waits, `interrupted`, until somebody cancels it or resumes it: a run that ends each process which takes it
// up must not end them all.
const maxAttempts = 5

// takeOver goes on in the background with a run that was claimed. row is its row in the index as of then,
// nil where that is still to be read. A run that cannot be gone on with here is left until the lease ends.
func (c *Crew) takeOver(ctx context.Context, h *hold, row *lathe.RunSummary, loopFor func(*lathe.RunSummary) (*loop.Loop, error), sinks []lathe.Sink) error {
	var err error
	if row == nil {
		row, err = h.node.row(ctx, h.claim.RunID)
	}
	if err != nil {
		h.end(true)
		return err
	}
	l, err := loopFor(row)
	if err != nil {
		h.end(true)
		return err
	}
	_, err = c.carry(ctx, row.RunID, l, sinks, func(ctx context.Context) (*lathe.Result, error) { return c.attempt(ctx, h, row, l, sinks) })
	if err != nil {
		h.end(false)
		leave(sinks, row.RunID)
	}
	return err
}

// row returns the row of a run in the index as of now.
func (n *node) row(ctx context.Context, runID string) (*lathe.RunSummary, error) {
	rows, _, err := n.store.Runs(ctx, &lathe.RunFilter{RunID: runID})
	if err == nil && len(rows) == 0 {
		err = &lathe.Error{Code: lathe.CodeNotFound, Op: "engine: find the run", Err: lathe.ErrNotFound}
	}
	if err != nil {
		return nil, err
	}
	return &rows[0], nil
}

func leave(sinks []lathe.Sink, runID string) {
	for _, s := range sinks {
		if s, ok := s.(Leaver); ok {
			s.Leave(runID)
		}
	}
}

// attempt goes on with a claimed run if it can, or notes in its log that it could not.
func (c *Crew) attempt(ctx context.Context, h *hold, row *lathe.RunSummary, l *loop.Loop, sinks []lathe.Sink) (*lathe.Result, error) {
	tried := &attempts{}
	reading, done := c.apart(ctx)
	defer done()
	g, err := c.engine.read(reading, row.RunID, h, tried)
	code := lathe.CodeOf(err)
	switch {
	case err != nil && (!tried.read || code == lathe.CodeConflict): // the store did not answer, or the run has ended
		h.end(code != lathe.CodeConflict)
		return nil, err
	case err == nil && !c.engine.moves(g.state, g.facts):
		h.end(false)
		return nil, nil
	case tried.n >= maxAttempts:
		c.engine.opts.Log.Error("a run waits for somebody to look at it: it was gone on with again and again, and got nowhere", "run_id", row.RunID, "attempts", tried.n)
		err = errors.Join(err, c.note(ctx, h, row, &lathe.RunPaused{Reason: lathe.ReasonInterrupted, Pending: []string{}}, sinks))
		h.end(false)
		return nil, err
	case err != nil:
		c.engine.opts.Log.Error("the log of a run cannot be gone on with", "run_id", row.RunID, "attempts", tried.n, "code", code)
		err = errors.Join(err, c.note(ctx, h, row, &lathe.RunResumed{Reason: lathe.ReasonInterrupted, Pending: []string{}}, sinks))
		h.end(false)
		return nil, err
	}
	return g.resume(ctx, l, nil, sinks)
}

// apart returns a context for reading a run that somebody may cancel meanwhile: that is for the run itself.
func (c *Crew) apart(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), c.engine.opts.StoreTimeout)
}

// note appends an event that no loop has said, and tells it.
func (c *Crew) note(ctx context.Context, h *hold, row *lathe.RunSummary, d lathe.EventData, sinks []lathe.Sink) error {
	return c.notes(ctx, h, row, []lathe.EventData{d}, sinks)
}

// notes appends events one after the other, as far as they can be.
func (c *Crew) notes(ctx context.Context, h *hold, row *lathe.RunSummary, all []lathe.EventData, sinks []lathe.Sink) error {
	e := c.engine
	s := &stamper{engine: e, own: sinks, hold: h, last: row.LastID, cancel: func(error) {}}
	s.in.Run = lathe.RunInfo{RunID: row.RunID, RequestID: row.RequestID, SessionID: row.SessionID, Principal: row.Principal}
	s.run = &s.in.Run
	for _, d := range all {
		s.take(ctx, &lathe.Event{Turn: row.Turns, Data: d})
	}
	return s.lost
}

// attempts counts how often a run was gone on with since it last got anywhere, from its log.
type attempts struct {
	n    int
	read bool // the log was read to its end, whether it can be folded or not
}

func (a *attempts) take(e *lathe.Event) {
	switch d := e.Data.(type) {
	case *lathe.RunResumed:
		if d.Reason == lathe.ReasonInterrupted {
			a.n++
		}
	case *lathe.ModelCallFinished:
		if d.Status == "success" {
			a.n = 0
		}
	case *lathe.ToolCallResult, *lathe.ApprovalRequested, *lathe.ApprovalResolved, *lathe.RunPaused:
		a.n = 0
	default: // it may happen each time
	}
}
