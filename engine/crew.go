package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/loop"
)

// MaxCarried is how many runs a [Crew] carries at once unless its options say otherwise.
const MaxCarried = 256

// errLeft is why a run is left as its log has it, for another process to go on with.
var errLeft = fmt.Errorf("engine: %w", lathe.ErrLeft)

// errRefused is why a run was not gone on with at all.
var errRefused = errors.New("engine: the run was refused")

// A Leaver is a [lathe.Sink] that wants to know when a run is carried here no longer, whether it has
// ended, waits, or was left. The crew calls Leave once for each call that has it carry the run, after
// the last event of it. A call that fails is none.
type Leaver interface {
	lathe.Sink
	Leave(runID string)
}

// A Crew carries runs in the background: each on a goroutine of its own, until it ends, waits, is
// cancelled, or is left when the process ends. A run that panics is left. It may be used by several
// goroutines at once.
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
	hinted bool      // something came to it since it was last looked at; the crew's
	looked time.Time // when that was last looked for
}

// NewCrew returns a crew without runs. max bounds those it carries at once; 0: [MaxCarried].
func NewCrew(e *Engine, maxRuns int) *Crew {
	if maxRuns <= 0 {
		maxRuns = MaxCarried
	}
	c := &Crew{engine: e, max: maxRuns, runs: map[string]*carried{}}
	if e.node != nil {
		e.node.mu.Lock()
		e.node.facts = func(runID string) { c.Hint(runID) }
		e.node.mu.Unlock()
	}
	return c
}

// Start begins a run and returns its id. Values of ctx are the run's; its end is not. It fails with
// code unavailable when the crew is full or drained.
func (c *Crew) Start(ctx context.Context, l *loop.Loop, in *loop.Input, sinks ...lathe.Sink) (string, error) {
	own := *in
	if own.Run.RunID == "" {
		own.Run.RunID = c.engine.opts.NewID("run_")
	}
	id := own.Run.RunID
	_, err := c.carry(ctx, id, l, sinks, func(ctx context.Context) (*lathe.Result, error) {
		return c.engine.Run(ctx, l, &own, sinks...)
	})
	return id, err
}

// Resume goes on with a run in the background, as [Engine.Resume] does. What it refuses is told here.
func (c *Crew) Resume(ctx context.Context, l *loop.Loop, runID string, answers map[string]lathe.Output, sinks ...lathe.Sink) error {
	var g *grasp
	ready := make(chan struct{})
	r, err := c.carry(ctx, runID, l, sinks, func(ctx context.Context) (*lathe.Result, error) {
		<-ready
		if g == nil {
			return nil, errRefused
		}
		return g.resume(ctx, l, answers, sinks)
	})
	if err != nil {
		return err
	}
	if g, err = c.engine.grasp(ctx, runID); err != nil {
		g = nil
	}
	close(ready)
	if err != nil {
		<-r.done
	}
	return err
}

// carry has do done in the background for a run that is not carried yet, and then has the run gone on
// with as long as something has come to it meanwhile.
func (c *Crew) carry(ctx context.Context, id string, l *loop.Loop, sinks []lathe.Sink, do func(context.Context) (*lathe.Result, error)) (*carried, error) {
	const op = "engine: carry"
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return nil, &lathe.Error{Code: lathe.CodeUnavailable, Op: op, Err: errors.New("this process is about to end")}
	case c.runs[id] != nil:
		return nil, &lathe.Error{Code: lathe.CodeConflict, Op: op, Err: errors.New("the run goes on already")}
	case len(c.runs) >= c.max:
		return nil, &lathe.Error{Code: lathe.CodeUnavailable, Op: op, Err: errors.New("too many runs at once")}
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	r := &carried{cancel: cancel, done: make(chan struct{})}
	c.runs[id] = r
	c.running.Go(func() {
		defer cancel(nil)
		r.result, r.err = c.guard(ctx, id, do)
		for c.again(id, r) {
			r.result, r.err = c.guard(ctx, id, func(ctx context.Context) (*lathe.Result, error) { return c.lookAgain(ctx, id, l, r, sinks) })
		}
		if !errors.Is(r.err, errRefused) {
			leave(sinks, id)
		}
		close(r.done)
	})
	return r, nil
}

// again reports whether something came to a run that waits now; else the run is carried no longer.
func (c *Crew) again(id string, r *carried) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.hinted && !c.closed && r.err == nil && r.result != nil && r.result.Reason.Status() == "parked" {
		r.hinted = false
		return true
	}
	delete(c.runs, id)
	return false
}

// lookAgain goes on with a run that waits if what it waits for has come.
func (c *Crew) lookAgain(ctx context.Context, id string, l *loop.Loop, r *carried, sinks []lathe.Sink) (*lathe.Result, error) {
	reading, done := c.apart(ctx)
	defer done()
	g, err := c.engine.grasp(reading, id)
	if err != nil {
		c.engine.opts.Log.Warn("a run to which something came could not be looked at", "run_id", id, "code", lathe.CodeOf(err))
		return r.result, nil // whoever carries it now, or finds it, looks
	}
	if !c.engine.moves(g.state, g.facts) {
		g.hold.end(false)
		return r.result, nil
	}
	return g.resume(ctx, l, nil, sinks)
}

// guard has do done. What panics is left as its log has it: others go on.
func (c *Crew) guard(ctx context.Context, id string, do func(context.Context) (*lathe.Result, error)) (res *lathe.Result, err error) {
	defer func() {
		if v := recover(); v != nil { // its value may hold content
			c.engine.opts.Log.Error("a run panicked", "run_id", id, "panic", fmt.Sprintf("%T", v))
			res, err = nil, &lathe.Error{Code: lathe.CodeInternal, Op: "engine: carry", Err: errors.New("the run panicked")}
		}
	}()
	return do(ctx)
}

// Hint says that something came to a run from outside, which the store keeps as a fact. A run that goes on
// here ends where that is the wish to cancel it; what else came it takes up once it waits. It reports
// whether the run goes on here.
func (c *Crew) Hint(runID string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.runs[runID]
	if r == nil {
		return false
	}
	r.hinted, r.looked = true, time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), c.engine.opts.StoreTimeout)
	c.running.Go(func() {
		defer cancel()
		facts, err := c.engine.facts(ctx, runID)
		switch {
		case err != nil:
			c.engine.opts.Log.Warn("what came to a run could not be read", "run_id", runID, "code", lathe.CodeOf(err))
		case cancelled(facts):
			r.cancel(context.Canceled)
		}
	})
	return true
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

// Drain takes no more runs and waits until those that go on have ended or wait. When ctx is done
// before that, the rest is left as the store has it: nothing more is written of them, and another
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
