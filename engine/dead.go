package engine

import (
	"context"
	"errors"
	"time"

	"github.com/lathe-run/lathe"
)

// deadEvery is how often runs are looked for on a shared store that cannot be gone on with and whose process is gone.
const deadEvery = time.Minute

// endDead ends the runs of a shared store that were not started as ones that can be gone on with, and that
// nobody carries any more.
func (c *Crew) endDead(ctx context.Context, sinks []lathe.Sink) {
	n := c.engine.node
	f := &lathe.RunFilter{Status: "running", Limit: 1_000}
	for !n.hush() { // else there is another time
		rows, next, err := n.store.Runs(ctx, f)
		for i := range rows {
			r := &rows[i]
			// Those that have said something within a lease are left alone. Whether others are carried is for the store to say.
			if r.Resumable || c.engine.opts.Now().Sub(r.Updated) < n.lease || ctx.Err() != nil || n.hush() {
				continue
			}
			if err := c.end(ctx, r, sinks); err != nil && ctx.Err() == nil {
				n.log.Warn("a run whose process is gone could not be ended", "run_id", r.RunID, "code", lathe.CodeOf(err))
			}
		}
		if err != nil && ctx.Err() == nil {
			n.log.Warn("runs whose process is gone could not be looked for", "code", lathe.CodeOf(err))
		}
		if f.After = next; next == "" {
			return
		}
	}
}

// end ends a run that cannot be gone on with, `interrupted`, unless another process carries it or was faster.
func (c *Crew) end(ctx context.Context, row *lathe.RunSummary, sinks []lathe.Sink) error {
	h, err := c.engine.node.take(ctx, row.RunID)
	if err != nil {
		if lathe.CodeOf(err) == lathe.CodeConflict {
			return nil
		}
		return err
	}
	defer h.end(false)
	reading, done := c.apart(ctx)
	defer done()
	s, err := c.engine.State(reading, row.RunID)
	if err != nil {
		return err
	}
	own := *row
	own.LastID, own.Turns = s.LastID, s.Turn
	err = c.notes(ctx, h, &own, s.Abandon(), sinks)
	if errors.Is(err, lathe.ErrConflict) || errors.Is(err, errLeft) { // somebody has written to it
		return nil
	}
	return err
}
