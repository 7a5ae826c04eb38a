package engine

import (
	"context"
	"errors"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/loop"
)

// MaxCarried is how many runs a [Crew] carries at once unless its options say otherwise.
const MaxCarried = 256

// errLeft is why a run is left as its log has it, for a later process to go on with.
var errLeft = errors.New("engine: the run is left for a later process")

// A Crew carries runs in the background: each on a goroutine of its own, until it ends, waits, is
// cancelled, or is left when the process ends. It may be used by several goroutines at once.
type Crew struct {
	engine *Engine
	max    int

	mu      sync.Mutex
	runs    map[string]*carried
	closed  bool
	running sync.WaitGroup
}

// A carried run is one that goes on now.
type carried struct {
	cancel context.CancelCauseFunc
	done   chan struct{}
	result *lathe.Result // good once done is closed
	err    error
}

// NewCrew returns a crew without runs. max bounds those it carries at once; 0: [MaxCarried].
func NewCrew(e *Engine, maxRuns int) *Crew {
	if maxRuns <= 0 {
		maxRuns = MaxCarried
	}
	return &Crew{engine: e, max: maxRuns, runs: map[string]*carried{}}
}

// Start begins a run and returns its id. Values of ctx are the run's; its end is not. It fails with
// code unavailable when the crew is full or drained.
func (c *Crew) Start(ctx context.Context, l *loop.Loop, in *loop.Input, sinks ...lathe.Sink) (string, error) {
	own := *in
	if own.Run.RunID == "" {
		own.Run.RunID = c.engine.opts.NewID("run_")
	}
	id := own.Run.RunID
	return id, c.carry(ctx, id, func(ctx context.Context) (*lathe.Result, error) {
		return c.engine.Run(ctx, l, &own, sinks...)
	})
}

// Resume goes on with a run in the background, as [Engine.Resume] does. What it refuses is told here.
func (c *Crew) Resume(ctx context.Context, l *loop.Loop, runID string, answers map[string]lathe.Output, sinks ...lathe.Sink) error {
	if _, err := c.engine.open(ctx, runID); err != nil {
		return err
	}
	return c.carry(ctx, runID, func(ctx context.Context) (*lathe.Result, error) {
		return c.engine.Resume(ctx, l, runID, answers, sinks...)
	})
}

func (c *Crew) carry(ctx context.Context, id string, do func(context.Context) (*lathe.Result, error)) error {
	const op = "engine: carry"
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return &lathe.Error{Code: lathe.CodeUnavailable, Op: op, Err: errors.New("this process is about to end")}
	case c.runs[id] != nil:
		return &lathe.Error{Code: lathe.CodeConflict, Op: op, Err: errors.New("the run goes on already")}
	case len(c.runs) >= c.max:
		return &lathe.Error{Code: lathe.CodeUnavailable, Op: op, Err: errors.New("too many runs at once")}
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	r := &carried{cancel: cancel, done: make(chan struct{})}
	c.runs[id] = r
	c.running.Go(func() {
		defer cancel(nil)
		r.result, r.err = do(ctx)
		c.mu.Lock()
		delete(c.runs, id)
		c.mu.Unlock()
		close(r.done)
	})
	return nil
}

// Cancel ends a run that goes on now, and reports whether there was one.
func (c *Crew) Cancel(runID string) bool {
	r := c.find(runID)
	if r != nil {
		r.cancel(context.Canceled)
	}
	return r != nil
}

// Wait returns the result of a run that goes on now once it ends or waits; ok is false where there
// is none.
func (c *Crew) Wait(ctx context.Context, runID string) (res *lathe.Result, ok bool, err error) {
	r := c.find(runID)
	if r == nil {
		return nil, false, nil
	}
	select {
	case <-r.done:
		return r.result, true, r.err
	case <-ctx.Done():
		return nil, true, ctx.Err()
	}
}

// Carries reports whether the run goes on now.
func (c *Crew) Carries(runID string) bool { return c.find(runID) != nil }

func (c *Crew) find(runID string) *carried {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs[runID]
}

// Active is how many runs go on now.
func (c *Crew) Active() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.runs)
}

// Recover goes on with every run of the index that was started as one that can be, and that neither
// waits nor has ended: those whose process is gone. It is called once, before other runs are
// started. loopFor finds the loop of a target. It returns how many runs go on, and why others do not.
func (c *Crew) Recover(ctx context.Context, index lathe.RunIndex, loopFor func(*lathe.RunSummary) (*loop.Loop, error), sinks ...lathe.Sink) (n int, err error) {
	f := &lathe.RunFilter{Status: "running", Limit: 1_000}
	for {
		rows, next, lerr := index.Runs(ctx, f)
		if lerr != nil {
			return n, errors.Join(err, lerr)
		}
		for i := range rows {
			if !rows[i].Resumable || c.find(rows[i].RunID) != nil {
				continue
			}
			l, rerr := loopFor(&rows[i])
			if rerr == nil {
				rerr = c.Resume(ctx, l, rows[i].RunID, nil, sinks...)
			}
			if rerr != nil {
				err = errors.Join(err, &lathe.Error{Code: lathe.CodeOf(rerr), Op: "engine: recover " + rows[i].RunID, Err: rerr})
				continue
			}
			n++
		}
		if next == "" {
			return n, err
		}
		f.After = next
	}
}

// Drain takes no more runs and waits until those that go on have ended or wait. When ctx is done
// before that, the rest is left as the store has it: nothing more is written of them, and a later
// process goes on with those that can be resumed. It returns how many were left.
func (c *Crew) Drain(ctx context.Context) (left int) {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	over := make(chan struct{})
	go func() {
		c.running.Wait()
		close(over)
	}()
	select {
	case <-over:
		return 0
	case <-ctx.Done():
	}
	c.mu.Lock()
	left = len(c.runs)
	for _, r := range c.runs {
		r.cancel(errLeft)
	}
	c.mu.Unlock()
	<-over
	return left
}
