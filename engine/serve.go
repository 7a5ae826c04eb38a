package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

// ServeOptions configure [Supervisor.Serve]. LoopFor is required.
type ServeOptions struct {
	// LoopFor returns the loop that executes a run; the Target of the summary names the loop that started it. If LoopFor returns an error,
	// the run is left until its claim expires; then a process that uses the store claims the run again.
	LoopFor func(*store.RunSummary) (*loop.Loop, error)
	// Sinks receive the events of the runs that Serve acquires.
	Sinks []event.Sink
	// Every is the interval between two searches for runs; 0 or less: 1 s.
	Every time.Duration
	// Address is the base URL at which other nodes reach this one; "": none. Serve stores it for three leases, and again after each lease.
	Address string
	// Notified, if set, is called for each notification of the store that the run runID may have new events or signals. It must not block.
	// A notification may arrive twice, late or not at all.
	Notified func(runID string)
}

// maxClaimed is the maximum number of runs that one search claims.
const maxClaimed = 32

// signalReadEvery is the minimum interval between two reads of a run's signals because of notifications of the store, which also arrive for
// each event of the run.
const signalReadEvery = time.Second

// Serve acquires and resumes runs of the store that no process executes: those whose process has stopped or was drained, those whose
// requests for approval have expired, and those with new signals. It does not acquire runs with an executor. If the process of a run has
// stopped and the run is not resumable, Serve ends the run with reason `interrupted`. It blocks until ctx is done; the runs that it has
// acquired continue. If the store is not shared, it returns at once: [Supervisor.Recover] is sufficient then. At most MaxRuns runs are in
// progress, including those of Start.
func (c *Supervisor) Serve(ctx context.Context, opts *ServeOptions) {
	n := c.engine.node
	if n == nil {
		return
	}
	own := *opts
	if own.Every <= 0 {
		own.Every = time.Second
	}
	var watching sync.WaitGroup
	defer watching.Wait()
	if losses, ok := n.store.(store.LossWatcher); ok {
		watching.Go(func() { c.watchLosses(ctx, losses, own.Sinks) })
	}
	watching.Go(func() { c.listen(ctx, &own) })
	tick := time.Tick(own.Every)
	var advertised, swept time.Time
	for {
		if own.Address != "" && time.Since(advertised) >= n.lease {
			advertised = time.Now()
			c.advertise(ctx, own.Address)
		}
		for c.claimSome(ctx, &own) {
			continue // until the store has no more runs, or this process no capacity
		}
		if time.Since(swept) >= deadEvery {
			swept = time.Now()
			c.endDead(ctx, own.Sinks)
		}
		select {
		case <-tick:
		case <-ctx.Done():
			return
		}
	}
}

// advertise stores the address of this node for three leases.
func (c *Supervisor) advertise(ctx context.Context, address string) {
	n := c.engine.node
	ctx, cancel := context.WithTimeout(ctx, n.timeout)
	defer cancel()
	if err := n.store.Advertise(ctx, n.name, address, 3*n.lease); err != nil && ctx.Err() == nil {
		n.log.Warn("the address of this node could not be stored", "code", lathe.CodeOf(err))
	}
}

// listen receives the notifications of the store until ctx is done.
func (c *Supervisor) listen(ctx context.Context, opts *ServeOptions) {
	n := c.engine.node
	for ctx.Err() == nil {
		err := n.store.Watch(ctx, func(runID string) {
			c.notifyRemote(runID)
			if opts.Notified != nil {
				opts.Notified(runID)
			}
		})
		if ctx.Err() != nil {
			return
		}
		n.log.Warn("the notifications of the store broke off", "code", lathe.CodeOf(err))
		select {
		case <-time.After(opts.Every):
		case <-ctx.Done():
		}
	}
}

// notifyRemote processes a notification of the store for a run that this process executes. It does nothing if the signals were read within
// signalReadEvery: the next renewal of the claim reports new ones.
func (c *Supervisor) notifyRemote(runID string) {
	c.mu.Lock()
	r := c.runs[runID]
	refresh := r != nil && time.Since(r.readAt) >= signalReadEvery
	c.mu.Unlock()
	if refresh {
		c.Notify(runID)
	}
}

// claimSome claims as many runs as this process has capacity for, and reports whether the store may have more.
func (c *Supervisor) claimSome(ctx context.Context, opts *ServeOptions) (more bool) {
	c.mu.Lock()
	free := min(c.max-len(c.runs), maxClaimed)
	closed := c.closed
	c.mu.Unlock()
	n := c.engine.node
	if free <= 0 || closed || ctx.Err() != nil || n.inGrace() {
		return false
	}
	owned, err := n.claim(ctx, free)
	if err != nil {
		if ctx.Err() == nil {
			c.engine.opts.Log.Warn("runs could not be claimed", "code", lathe.CodeOf(err))
		}
		return false
	}
	if n.inGrace() { // Claim may have found that the server has changed
		for _, h := range owned {
			h.end(releaseClaim)
		}
		return false
	}
	for _, h := range owned {
		if err := c.takeOver(ctx, h, nil, opts.LoopFor, opts.Sinks); err != nil {
			c.engine.opts.Log.Error("a run cannot be resumed here", "run_id", h.claim.RunID, "code", lathe.CodeOf(err))
		}
	}
	return len(owned) == free
}

// Recover resumes the runs of the index that are resumable and have not ended: those whose process has stopped, and parked ones with new
// signals. It ends, with reason `interrupted`, unfinished runs that are not resumable. It must be called once, before other runs are
// started. loopFor returns the loop for a run, and sinks receive the events of the runs. Recover resumes the runs in the background. It
// returns their number, and the joined errors of those that cannot be resumed, which remain as they are. If the index fails, Recover also
// returns that error and reads no further. It ignores runs with an executor and, on a shared store, runs that another process executes.
func (c *Supervisor) Recover(ctx context.Context, index store.RunIndex, loopFor func(*store.RunSummary) (*loop.Loop, error), sinks ...event.Sink) (n int, err error) {
	filters := []store.RunFilter{{Status: "running"}}
	if c.engine.signals != nil { // without signals no parked run can be resumed
		filters = append(filters, store.RunFilter{Status: "parked", Signaled: true})
	}
	for _, f := range filters {
		for row, lerr := range f.All(ctx, index) {
			if lerr != nil {
				return n, errors.Join(err, lerr)
			}
			resumed, rerr := c.recoverOne(ctx, row, loopFor, sinks)
			if resumed {
				n++
			}
			if rerr != nil {
				err = errors.Join(err, lathe.CodeOf(rerr).Wrap("engine: recover "+row.RunID, rerr))
			}
		}
	}
	return n, err
}

// recoverOne resumes a run in the background, or ends it if it is running and cannot be resumed.
func (c *Supervisor) recoverOne(ctx context.Context, row *store.RunSummary, loopFor func(*store.RunSummary) (*loop.Loop, error), sinks []event.Sink) (resumed bool, err error) {
	if c.find(row.RunID) != nil || row.Executor != "" {
		return false, nil
	}
	if !row.Resumable {
		if row.Status == "running" {
			err = c.end(ctx, row, sinks)
		}
		return false, err
	}
	h, err := c.engine.node.acquire(ctx, row.RunID)
	if lathe.CodeOf(err) == lathe.CodeConflict { // another process executes it
		return false, nil
	}
	if err != nil {
		return false, err
	}
	err = c.takeOver(ctx, h, row, loopFor, sinks)
	return err == nil, err
}
