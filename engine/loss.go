package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/store"
)

// watchLosses sets aside the runs whose last events the store has lost, until ctx is done. If the store has connected to another server, a
// failover grace period of one lease begins, in which no run is claimed, so that every process that knows of lost events of a run can set
// the run aside first.
func (c *Supervisor) watchLosses(ctx context.Context, store store.LossWatcher, sinks []event.Sink) {
	n := c.engine.node
	var acting sync.WaitGroup
	defer acting.Wait()
	store.WatchLosses(ctx, func(lost []string) {
		n.mu.Lock()
		n.graceUntil = time.Now().Add(n.lease)
		n.mu.Unlock()
		for _, id := range lost {
			c.interrupt(id)
		}
		if len(lost) > 0 {
			acting.Go(func() {
				for _, id := range lost {
					c.setAside(ctx, id, sinks)
				}
			})
		}
	})
}

// errGrace is the error of a claim in the failover grace period.
var errGrace = errors.New("the database was restarted, or another one has taken over: try again in a moment")

// inGrace reports whether the failover grace period is in progress.
func (n *node) inGrace() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Now().Before(n.graceUntil)
}

func (c *Supervisor) interrupt(runID string) {
	if r := c.find(runID); r != nil {
		r.cancel(errLeft)
	}
}

// setAside parks, with reason `interrupted`, a run whose log lacks published events: its calls may have been executed, and would be
// executed again. If the run is not resumable, it ends the run. It retries until it succeeds or ctx is done.
func (c *Supervisor) setAside(ctx context.Context, runID string, sinks []event.Sink) {
	log := c.engine.opts.Log
	for {
		err := c.trySetAside(ctx, runID, sinks)
		switch code := lathe.CodeOf(err); {
		case err == nil:
			return
		case code == lathe.CodeNotFound:
			log.Warn("the store lacks a whole run that it had confirmed, or it was deleted", "run_id", runID)
			return
		default:
			log.Warn("a run could not be set aside", "run_id", runID, "code", code)
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return
		}
	}
}

func (c *Supervisor) trySetAside(ctx context.Context, runID string, sinks []event.Sink) error {
	reading, done := c.engine.opts.within(ctx)
	defer done()
	c.interrupt(runID)
	row, err := c.engine.node.row(reading, runID)
	if err != nil {
		return err
	}
	s, err := c.engine.State(reading, runID)
	switch {
	case err != nil:
		return err
	case s.Finished != nil, row.Resumable && s.Paused == lathe.ReasonInterrupted: // another process has set the run aside
		return nil
	}
	row.LastID, row.Turns = s.LastID, s.Turn
	end, outcome := s.Abandon(), "the run is ended, since it cannot be resumed"
	if row.Resumable {
		end, outcome = []event.Data{&event.RunPaused{Reason: lathe.ReasonInterrupted, Pending: []string{}}}, "the run is parked until it is resumed or cancelled"
	}
	c.engine.opts.Log.Error("the store lacks events of a run that it had confirmed: "+outcome, "run_id", runID)
	err = c.record(ctx, nil, row, sinks, end...)
	if errors.Is(err, lathe.ErrConflict) { // another process has appended to the log
		err = lathe.CodeConflict.Wrap("engine: set aside", err)
	}
	return err
}
