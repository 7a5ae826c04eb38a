package engine

import (
	"context"
	"errors"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/store"
)

// deadEvery is the interval between two searches of a shared store for runs that are not resumable and whose process has stopped.
const deadEvery = time.Minute

// endDead ends the runs of a shared store that are not resumable and that no process executes.
func (c *Supervisor) endDead(ctx context.Context, sinks []event.Sink) {
	n := c.engine.node
	f := &store.RunFilter{Status: "running"}
	for r, err := range f.All(ctx, n.store) {
		switch {
		case ctx.Err() != nil, n.inGrace(): // during the grace period a later call continues
			return
		case err != nil:
			n.log.Warn("runs whose process is gone could not be looked for", "code", lathe.CodeOf(err))
			return
		case r.Resumable, c.engine.opts.Now().Sub(r.Updated) < n.lease: // for runs without an event within the last lease the store determines whether a process owns them
			continue
		}
		if err := c.end(ctx, r, sinks); err != nil && ctx.Err() == nil {
			n.log.Warn("a run whose process is gone could not be ended", "run_id", r.RunID, "code", lathe.CodeOf(err))
		}
	}
}

// end ends a run that is not resumable, with reason `interrupted`, unless another process owns it or has ended it.
func (c *Supervisor) end(ctx context.Context, row *store.RunSummary, sinks []event.Sink) error {
	h, err := c.engine.node.acquire(ctx, row.RunID)
	if err != nil {
		if lathe.CodeOf(err) == lathe.CodeConflict {
			return nil
		}
		return err
	}
	defer h.end(releaseClaim)
	reading, done := c.engine.opts.within(ctx)
	defer done()
	s, err := c.engine.State(reading, row.RunID)
	if err != nil {
		return err
	}
	own := *row
	own.LastID, own.Turns = s.LastID, s.Turn
	err = c.record(ctx, h, &own, sinks, s.Abandon()...)
	if errors.Is(err, lathe.ErrConflict) || errors.Is(err, errLeft) { // another process has appended to the log
		return nil
	}
	return err
}
