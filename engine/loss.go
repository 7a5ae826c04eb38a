package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
)

// heedLosses sets aside the runs whose logs the store has lost the end of, until ctx is done. Whenever the
// store has another server than before, no run is claimed for the time of a lease, not even at somebody's wish: this
// process or another may know that its log lacks something, and sets it aside meanwhile.
func (c *Crew) heedLosses(ctx context.Context, store lathe.LossWatcher, sinks []lathe.Sink) {
	n := c.engine.node
	var acting sync.WaitGroup
	defer acting.Wait()
	store.WatchLosses(ctx, func(lost []string) {
		n.mu.Lock()
		n.hushed = time.Now().Add(n.lease)
		n.mu.Unlock()
		for _, id := range lost {
			c.stopCarrying(id)
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

// errHush is why no run is claimed for a while.
var errHush = errors.New("the database was restarted, or another one has taken over: try again in a moment")

// hush reports whether no run is to be claimed now.
func (n *node) hush() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Now().Before(n.hushed)
}

func (c *Crew) stopCarrying(runID string) {
	if r := c.find(runID); r != nil {
		r.cancel(errLeft)
	}
}

// setAside has a run wait, `interrupted`, whose log lacks events that somebody was told of: what they announced
// may have been done, and would be done again. A run that cannot be gone on with it ends. It tries until it is
// done or ctx is.
func (c *Crew) setAside(ctx context.Context, runID string, sinks []lathe.Sink) {
	log := c.engine.opts.Log
	again := time.NewTicker(time.Second)
	defer again.Stop()
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
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

func (c *Crew) trySetAside(ctx context.Context, runID string, sinks []lathe.Sink) error {
	reading, done := c.apart(ctx)
	defer done()
	c.stopCarrying(runID)
	row, err := c.engine.node.row(reading, runID)
	if err != nil {
		return err
	}
	s, err := c.engine.State(reading, runID)
	switch {
	case err != nil:
		return err
	case s.Finished != nil, row.Resumable && s.Paused == lathe.ReasonInterrupted: // another process was faster
		return nil
	}
	row.LastID, row.Turns = s.LastID, s.Turn
	log := c.engine.opts.Log
	if row.Resumable {
		log.Error("the store lacks events of a run that it had confirmed: the run waits for somebody to look at it", "run_id", runID)
		err = c.note(ctx, nil, row, &lathe.RunPaused{Reason: lathe.ReasonInterrupted, Pending: []string{}}, sinks)
	} else {
		log.Error("the store lacks events of a run that it had confirmed: the run is ended, as nobody can go on with it", "run_id", runID)
		err = c.notes(ctx, nil, row, s.Abandon(), sinks)
	}
	if errors.Is(err, lathe.ErrConflict) { // somebody has written to it
		err = &lathe.Error{Code: lathe.CodeConflict, Op: "engine: set aside", Err: err}
	}
	return err
}
