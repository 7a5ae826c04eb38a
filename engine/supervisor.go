package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
)

// MaxRuns is the default of SupervisorOptions.MaxRuns.
const MaxRuns = 256

// errLeft is the cancellation cause of a run that is released before its end, so that another process resumes it from its log.
var errLeft = fmt.Errorf("engine: %w", lathe.ErrLeft)

// errRefused is the error of a run that could not be claimed for a resume.
var errRefused = errors.New("engine: the run was refused")

// A Leaver is an [event.Sink] that is notified when the supervisor no longer executes a run, whether the run has ended, is parked, or was
// released. The supervisor calls Leave once for each successful Start, Resume or acquisition of the run, after the last event of the run.
// Only the sinks that are passed for the run (to Start, Resume, Recover or Serve) are notified, not those of the engine.
type Leaver interface {
	event.Sink
	Leave(runID string)
}

// A Supervisor executes runs in the background, each on its own goroutine, until the run ends, is parked or cancelled, or is released
// because the process stops. A run that panics is released. Its methods may be called from several goroutines at once.
type Supervisor struct {
	engine *Engine
	max    int

	mu      sync.Mutex
	runs    map[string]*ownedRun
	closed  bool
	running sync.WaitGroup
}

// An ownedRun is a run that this process executes.
type ownedRun struct {
	cancel   context.CancelCauseFunc
	done     chan struct{}
	result   *event.Result // valid after done is closed
	err      error
	notified bool      // a signal may have arrived since the last read of the signals
	readAt   time.Time // the time at which Notify last read the signals
}

// SupervisorOptions are the options of [NewSupervisor]. They are copied.
type SupervisorOptions struct {
	MaxRuns int // the maximum number of concurrent runs; 0: [MaxRuns]; a negative value is an error
}

// NewSupervisor returns a supervisor for the runs of e. opts may be nil. An engine has at most one supervisor, so that signals reach the
// supervisor that executes the run: if e has one already, NewSupervisor returns an error of code conflict. The code is invalid_config if
// MaxRuns is negative.
func NewSupervisor(e *Engine, opts *SupervisorOptions) (*Supervisor, error) {
	const op = "engine: new supervisor"
	if opts == nil {
		opts = &SupervisorOptions{}
	}
	if opts.MaxRuns < 0 {
		return nil, lathe.CodeInvalidConfig.Errorf(op, "at most %d runs at once, want more than 0", opts.MaxRuns)
	}
	c := &Supervisor{engine: e, max: cmp.Or(opts.MaxRuns, MaxRuns), runs: map[string]*ownedRun{}}
	if !e.supervised.CompareAndSwap(false, true) {
		return nil, lathe.CodeConflict.Errorf(op, "the engine has a supervisor")
	}
	if e.node != nil {
		e.node.mu.Lock()
		e.node.notify = func(runID string) { c.Notify(runID) }
		e.node.mu.Unlock()
	}
	return c, nil
}

// Start executes a run in the background, as [Engine.Run] does, and returns its id without waiting for its first event. The run has the values
// of ctx, but is not cancelled with it. opts may be nil. The error has the code unavailable if MaxRuns runs are in progress or Drain was called,
// conflict if this process executes a run with the same id, and invalid_request for options that contradict each other.
func (c *Supervisor) Start(ctx context.Context, l *loop.Loop, in *loop.Input, opts *RunOptions) (string, error) {
	var o RunOptions
	if opts != nil {
		o = *opts
	}
	if err := o.check(in); err != nil {
		return "", err
	}
	own := *in
	if own.Run.RunID == "" {
		own.Run.RunID = c.engine.opts.NewID("run_")
	}
	id := own.Run.RunID
	_, err := c.execute(ctx, id, l, o.Sinks, func(ctx context.Context) (*event.Result, error) {
		return c.engine.Run(ctx, l, &own, &o)
	})
	return id, err
}

// Resume resumes a run in the background, as [Engine.Resume] does. It returns after the run was claimed and read; the run has the values of
// ctx, but is not cancelled with it. The errors are those of [Engine.Resume] for a run that cannot be resumed, and those of Start.
func (c *Supervisor) Resume(ctx context.Context, l *loop.Loop, runID string, answers map[string]lathe.Output, sinks ...event.Sink) error {
	claimed := make(chan *claimedRun, 1) // receives nil if the run was refused
	r, err := c.execute(ctx, runID, l, sinks, func(ctx context.Context) (*event.Result, error) {
		g := <-claimed
		if g == nil {
			return nil, errRefused
		}
		return g.resume(ctx, l, answers, sinks)
	})
	if err != nil {
		return err
	}
	g, err := c.engine.claimRun(ctx, runID, &attempts{}, toItsEnd)
	if err != nil {
		claimed <- nil
		<-r.done
		return err
	}
	claimed <- g
	return nil
}

// execute calls do in the background for a run that is not in progress. While the run is parked and notifications have arrived since, it
// resumes the run again.
func (c *Supervisor) execute(ctx context.Context, id string, l *loop.Loop, sinks []event.Sink, do func(context.Context) (*event.Result, error)) (*ownedRun, error) {
	const op = "engine: execute"
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return nil, lathe.CodeUnavailable.Errorf(op, "this process is about to end")
	case c.runs[id] != nil:
		return nil, lathe.CodeConflict.Errorf(op, "the run is under way already")
	case len(c.runs) >= c.max:
		return nil, lathe.CodeUnavailable.Errorf(op, "%d runs are in progress, as many as MaxRuns allows", c.max)
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	r := &ownedRun{cancel: cancel, done: make(chan struct{})}
	c.runs[id] = r
	c.running.Go(func() {
		defer cancel(nil)
		r.result, r.err = c.guard(ctx, id, do)
		for c.takeNotification(id, r) {
			r.result, r.err = c.guard(ctx, id, func(ctx context.Context) (*event.Result, error) { return c.resumeNotified(ctx, id, l, r, sinks) })
		}
		if !errors.Is(r.err, errRefused) {
			leave(sinks, id)
		}
		close(r.done)
	})
	return r, nil
}

// takeNotification reports whether a parked run has a notification to process, and removes the notification. If not, it removes the run.
func (c *Supervisor) takeNotification(id string, r *ownedRun) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	isParked := r.err == nil && r.result != nil && r.result.Reason.Status() == "parked"
	if !isParked || !r.notified || c.closed {
		delete(c.runs, id)
		return false
	}
	r.notified = false
	return true
}

// resumeNotified resumes a parked run if its signals allow it.
func (c *Supervisor) resumeNotified(ctx context.Context, id string, l *loop.Loop, r *ownedRun, sinks []event.Sink) (*event.Result, error) {
	reading, done := c.engine.opts.within(ctx)
	defer done()
	g, err := c.engine.claimRun(reading, id, &attempts{}, toItsEnd)
	if err != nil {
		c.engine.opts.Log.Warn("a run with a new signal could not be read", "run_id", id, "code", lathe.CodeOf(err))
		return r.result, nil // the process that owns or acquires the run reads the signals
	}
	if !c.engine.canContinue(g.state, g.signals) {
		g.owned.end(releaseClaim)
		return r.result, nil
	}
	return g.resume(ctx, l, nil, sinks)
}

// guard calls do. A panic is returned as an error, so that the run is released and others continue.
func (c *Supervisor) guard(ctx context.Context, id string, do func(context.Context) (*event.Result, error)) (res *event.Result, err error) {
	defer func() {
		if v := recover(); v != nil { // the value of the panic may contain content
			c.engine.opts.Log.Error("a run panicked", "run_id", id, "panic", fmt.Sprintf("%T", v))
			res, err = nil, lathe.CodeInternal.Errorf("engine: execute", "the run panicked")
		}
	}()
	return do(ctx)
}

// Notify must be called when the store may have a new signal for a run. If this process executes the run, a cancel request ends it; other
// signals are read after the run is parked. Notify reports whether this process executes the run.
func (c *Supervisor) Notify(runID string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.runs[runID]
	if r == nil {
		return false
	}
	r.notified, r.readAt = true, time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), c.engine.opts.StoreTimeout)
	c.running.Go(func() {
		defer cancel()
		signals, err := c.engine.readSignals(ctx, runID)
		switch {
		case err != nil:
			c.engine.opts.Log.Warn("the signals of a run could not be read", "run_id", runID, "code", lathe.CodeOf(err))
		case cancelled(signals):
			r.cancel(context.Canceled)
		}
	})
	return true
}

// Cancel cancels the context of a run that this process executes, and does not block until the run has ended. It reports whether this process
// executes the run.
func (c *Supervisor) Cancel(runID string) bool {
	r := c.find(runID)
	if r != nil {
		r.cancel(context.Canceled)
	}
	return r != nil
}

// Wait blocks until a run that this process executes ends, is parked or is released. It returns the result and the error that [Engine.Run]
// returned for the run. The result is nil if the run panicked, or was acquired and could not be executed. ok is false if this process does
// not execute the run, for example because it has ended already. If ctx is done earlier, Wait returns the error of ctx, with ok true and a
// nil result, and the run continues.
func (c *Supervisor) Wait(ctx context.Context, runID string) (res *event.Result, ok bool, err error) {
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

// Owns reports whether this process executes the run.
func (c *Supervisor) Owns(runID string) bool { return c.find(runID) != nil }

func (c *Supervisor) find(runID string) *ownedRun {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs[runID]
}

// Active returns the number of runs that this process executes.
func (c *Supervisor) Active() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.runs)
}

// Drain accepts no more runs and blocks until all runs in progress have ended or are parked. If ctx is done earlier, Drain releases the
// remaining runs: it stores no more events of them, and another process resumes those that are resumable. It returns after the last of them
// has stopped, with the number of released runs. The supervisor remains drained.
func (c *Supervisor) Drain(ctx context.Context) (left int) {
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
