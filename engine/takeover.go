package engine

import (
	"context"
	"errors"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

// maxAttempts is the number of times that a run is resumed without progress. Then it is parked, with reason `interrupted`, until a caller
// cancels or resumes it, so that a run that crashes its process cannot crash all of them.
const maxAttempts = 5

// takeOver resumes a claimed run in the background. row is its row in the index at the time of the claim; nil: takeOver reads it. A run
// that cannot be resumed in this process remains claimed until the lease ends.
func (c *Supervisor) takeOver(ctx context.Context, h *claimHandle, row *store.RunSummary, loopFor func(*store.RunSummary) (*loop.Loop, error), sinks []event.Sink) error {
	if row == nil {
		var err error
		if row, err = h.node.row(ctx, h.claim.RunID); err != nil {
			h.end(expireClaim)
			return err
		}
	}
	l, err := loopFor(row)
	if err != nil {
		h.end(expireClaim)
		return err
	}
	_, err = c.execute(ctx, row.RunID, l, sinks, func(ctx context.Context) (*event.Result, error) { return c.attempt(ctx, h, row, l, sinks) })
	if err != nil {
		h.end(releaseClaim)
		leave(sinks, row.RunID)
	}
	return err
}

// row returns the current row of a run in the index.
func (n *node) row(ctx context.Context, runID string) (*store.RunSummary, error) {
	rows, _, err := n.store.Runs(ctx, &store.RunFilter{RunID: runID})
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, lathe.CodeNotFound.Wrap("engine: find the run", lathe.ErrNotFound)
	}
	return &rows[0], nil
}

func leave(sinks []event.Sink, runID string) {
	for _, s := range sinks {
		if s, ok := s.(Leaver); ok {
			s.Leave(runID)
		}
	}
}

// attempt resumes a claimed run to its end, and gives up the claim. If the run cannot be resumed from its log, attempt records that in the
// log: as a further attempt, or after maxAttempts as a pause.
func (c *Supervisor) attempt(ctx context.Context, h *claimHandle, row *store.RunSummary, l *loop.Loop, sinks []event.Sink) (*event.Result, error) {
	tried := &attempts{}
	reading, done := c.engine.opts.within(ctx)
	defer done()
	g, err := c.engine.read(reading, row.RunID, h, tried, toItsEnd)
	code := lathe.CodeOf(err)
	switch {
	case code == lathe.CodeConflict, err == nil && !c.engine.canContinue(g.state, g.signals): // the run has ended, or is parked without new input
		h.end(releaseClaim)
		return nil, err
	case err == nil && tried.n < maxAttempts:
		return g.resume(ctx, l, nil, sinks)
	case err != nil && (!tried.read || code == lathe.CodeInvalidRequest): // the store failed, or another engine executes the run
		h.end(expireClaim)
		return nil, err
	}
	// The log was read, but its events cannot be applied, or they show maxAttempts without progress.
	log := c.engine.opts.Log.With("run_id", row.RunID, "attempts", tried.n)
	var failure event.Data
	if tried.n >= maxAttempts {
		log.Error("a run is parked: it was resumed again and again without progress")
		failure = &event.RunPaused{Reason: lathe.ReasonInterrupted, Pending: []string{}}
	} else {
		log.Error("a run cannot be resumed from its log", "code", code)
		failure = &event.RunResumed{Reason: lathe.ReasonInterrupted, Pending: []string{}}
	}
	err = errors.Join(err, c.record(ctx, h, row, sinks, failure))
	h.end(releaseClaim)
	return nil, err
}

// record appends and publishes events that no loop has emitted, one by one, until one cannot be stored. It returns the error.
func (c *Supervisor) record(ctx context.Context, h *claimHandle, row *store.RunSummary, sinks []event.Sink, all ...event.Data) error {
	s := &stamper{engine: c.engine, own: sinks, log: c.engine.opts.Store, owned: h, last: row.LastID, cancel: func(error) {}}
	s.in.Run = lathe.RunInfo{RunID: row.RunID, RequestID: row.RequestID, SessionID: row.SessionID, Principal: row.Principal}
	s.run = &s.in.Run
	for _, d := range all {
		s.emit(ctx, &event.Event{Turn: row.Turns, Data: d})
	}
	return s.lost
}

// attempts counts in the log how often a run was resumed since its last progress.
type attempts struct {
	n    int
	read bool // the log was read to its end, even if its events could not be applied
}

func (a *attempts) count(e *event.Event) {
	switch d := e.Data.(type) {
	case *event.RunResumed:
		if d.Reason == lathe.ReasonInterrupted {
			a.n++
		}
	case *event.ModelCallFinished:
		if d.Status == "success" {
			a.n = 0
		}
	case *event.ToolCallResult, *event.ApprovalRequested, *event.ApprovalResolved, *event.RunPaused:
		a.n = 0
	default: // no progress: each attempt may repeat them
	}
}
