package engine

import (
	"context"
	"errors"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/loop"
)

// ServeOptions say how [Crew.Serve] looks for runs. LoopFor is required.
type ServeOptions struct {
	// LoopFor finds the loop of a run's target.
	LoopFor func(*lathe.RunSummary) (*loop.Loop, error)
	// Sinks are told of the runs that were taken over.
	Sinks []lathe.Sink
	// Every is how often runs are looked for; 0: 1 s.
	Every time.Duration
	// Address is where other nodes reach this one; "": they do not.
	Address string
	// Hinted, when set, is told of runs that the store hints at: they may have new events or facts. It must not
	// block. A hint may come twice, late or never.
	Hinted func(runID string)
}

// maxClaimed bounds the runs that one look brings.
const maxClaimed = 32

// hintEvery is how often what came to a carried run is looked for at a hint of the store, which comes
// with each event of it, too.
const hintEvery = time.Second

// Serve goes on with runs that nobody carries, of any process that uses the store: those whose process is
// gone or was drained, those whose requests for approval have expired, and those to which something came. Those
// whose process is gone and that were not started as ones that can be gone on with it ends, `interrupted`.
// It returns when ctx is done. On a store that is not shared it does nothing, as [Crew.Recover] does it all.
func (c *Crew) Serve(ctx context.Context, opts *ServeOptions) {
	n := c.engine.node
	if n == nil {
		return
	}
	own := *opts
	if losses, ok := n.store.(lathe.LossWatcher); ok {
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			c.heedLosses(ctx, losses, own.Sinks)
		}()
		defer func() { <-watched }()
	}
	if own.Every <= 0 {
		own.Every = time.Second
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		c.listen(ctx, &own)
	}()
	defer func() { <-over }()
	tick := time.NewTicker(own.Every)
	defer tick.Stop()
	var told, swept time.Time
	for {
		if own.Address != "" && time.Since(told) >= n.lease {
			told = time.Now()
			c.advertise(ctx, own.Address)
		}
		for c.claimSome(ctx, &own) {
		}
		if time.Since(swept) >= deadEvery {
			swept = time.Now()
			c.endDead(ctx, own.Sinks)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// advertise says where this node is reached.
func (c *Crew) advertise(ctx context.Context, address string) {
	n := c.engine.node
	ctx, cancel := context.WithTimeout(ctx, n.timeout)
	defer cancel()
	if err := n.store.Advertise(ctx, n.name, address, 3*n.lease); err != nil && ctx.Err() == nil {
		n.log.Warn("the address of this node could not be told to others", "code", lathe.CodeOf(err))
	}
}

// listen takes the hints of the store until ctx is done.
func (c *Crew) listen(ctx context.Context, opts *ServeOptions) {
	n := c.engine.node
	for ctx.Err() == nil {
		err := n.store.Watch(ctx, func(runID string) {
			c.hintFromAfar(runID)
			if opts.Hinted != nil {
				opts.Hinted(runID)
			}
		})
		if ctx.Err() != nil {
			return
		}
		n.log.Warn("hints of the store broke off", "code", lathe.CodeOf(err))
		pause := time.NewTimer(opts.Every)
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
		pause.Stop()
	}
}

// hintFromAfar looks for what came to a run that is carried here, unless that was done just now: then the
// next beat says so.
func (c *Crew) hintFromAfar(runID string) {
	c.mu.Lock()
	r := c.runs[runID]
	due := r != nil && time.Since(r.looked) >= hintEvery
	c.mu.Unlock()
	if due {
		c.Hint(runID)
	}
}

// claimSome claims runs as long as there is room for them, and reports whether there may be more.
func (c *Crew) claimSome(ctx context.Context, opts *ServeOptions) (more bool) {
	c.mu.Lock()
	room := min(c.max-len(c.runs), maxClaimed)
	closed := c.closed
	c.mu.Unlock()
	n := c.engine.node
	if room <= 0 || closed || ctx.Err() != nil || n.hush() {
		return false
	}
	holds, err := n.claim(ctx, room)
	if err != nil {
		if ctx.Err() == nil {
			c.engine.opts.Log.Warn("runs could not be claimed", "code", lathe.CodeOf(err))
		}
		return false
	}
	if n.hush() { // which was found by claiming
		for _, h := range holds {
			h.end(false)
		}
		return false
	}
	for _, h := range holds {
		if err := c.takeOver(ctx, h, nil, opts.LoopFor, opts.Sinks); err != nil {
			c.engine.opts.Log.Error("a run cannot be gone on with here", "run_id", h.claim.RunID, "code", lathe.CodeOf(err))
		}
	}
	return len(holds) == room
}

// Recover goes on with every run of the index that was started as one that can be, and that has not
// ended: those whose process is gone, and those that wait and to which something came. Those in motion that
// cannot be gone on with it ends, `interrupted`. It is called once, before other runs are started. loopFor finds the loop of a target. It returns how many runs are looked
// at again, and why others are not. On a shared store those that another process carries are left to it.
func (c *Crew) Recover(ctx context.Context, index lathe.RunIndex, loopFor func(*lathe.RunSummary) (*loop.Loop, error), sinks ...lathe.Sink) (n int, err error) {
	left := []lathe.RunFilter{{Status: "running", Limit: 1_000}}
	if c.engine.kept != nil { // else nothing can have come to those that wait
		left = append(left, lathe.RunFilter{Status: "parked", Told: true, Limit: 1_000})
	}
	for i := range left {
		f := &left[i]
		for {
			rows, next, lerr := index.Runs(ctx, f)
			if lerr != nil {
				return n, errors.Join(err, lerr)
			}
			for k := range rows {
				goesOn, rerr := c.recoverOne(ctx, &rows[k], loopFor, sinks)
				if goesOn {
					n++
				}
				if rerr != nil {
					err = errors.Join(err, &lathe.Error{Code: lathe.CodeOf(rerr), Op: "engine: recover " + rows[k].RunID, Err: rerr})
				}
			}
			if f.After = next; next == "" {
				break
			}
		}
	}
	return n, err
}

func (c *Crew) recoverOne(ctx context.Context, row *lathe.RunSummary, loopFor func(*lathe.RunSummary) (*loop.Loop, error), sinks []lathe.Sink) (goesOn bool, err error) {
	switch {
	case c.find(row.RunID) != nil:
		return false, nil
	case !row.Resumable && row.Status == "running":
		return false, c.end(ctx, row, sinks)
	case !row.Resumable:
		return false, nil
	}
	h, err := c.engine.node.take(ctx, row.RunID)
	if err != nil {
		if c.engine.node != nil && lathe.CodeOf(err) == lathe.CodeConflict {
			return false, nil
		}
		return false, err
	}
	err = c.takeOver(ctx, h, row, loopFor, sinks)
	return err == nil, err
}
