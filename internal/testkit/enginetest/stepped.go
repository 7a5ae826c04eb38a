package enginetest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

// A stepped is an [Engine] that decides itself when the next step of a run is executed, as engines outside of this module do: it
// calls [engine.Engine.Step] in the current process, and repeats a step that failed. Restart replaces the process, and keeps the
// state of the runs that is in the engine.
type stepped struct {
	base
	mu      sync.Mutex              // guards base.host, base.engine and working, which Restart replaces and drivers read
	working context.Context         // of the current process
	leave   context.CancelCauseFunc // ends the current process
	ctx     context.Context         // of the engine: done after Close
	close   context.CancelFunc
	runs    map[string]*steps // by run id
	drivers sync.WaitGroup    // one goroutine for each run
}

// steps is a run of the engine. Its driver is the goroutine that executes drive.
type steps struct {
	id     string
	idle   atomic.Bool   // the run is parked and waits for input, or its driver has returned
	wake   chan struct{} // buffers one signal: the run has input
	resume atomic.Bool   // the next step after the run was parked resumes it

	mu      sync.Mutex              // guards the rest
	cancel  bool                    // the run is to be cancelled
	stop    context.CancelCauseFunc // ends the step in progress
	elapsed time.Duration           // total time of the steps so far
}

// Stepped returns an engine that executes runs with [engine.Engine.Step] over a store as the [Engine] of a scenario. clock is as of
// [Supervised], and the scenario must be in a bubble.
func Stepped(t *testing.T, s *Environment, kept store.RunIndex, clock func(time.Time)) Engine {
	t.Helper()
	p := &stepped{base: newBase(s, kept, clock), runs: map[string]*steps{}}
	p.ctx, p.close = context.WithCancel(context.Background())
	if err := p.begin(); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *stepped) begin() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.working, p.leave = context.WithCancelCause(p.ctx)
	return p.base.begin()
}

// Start implements [Engine].
func (p *stepped) Start(ctx context.Context, in *loop.Input) (string, error) {
	id, err := p.engine.Accept(ctx, p.host.Loop, in)
	if err != nil {
		return "", err
	}
	r := &steps{id: id, wake: make(chan struct{}, 1), stop: func(error) {}}
	p.runs[id] = r
	p.drivers.Go(func() { p.drive(r) })
	return id, nil
}

// drive executes the steps of a run until the run has ended.
func (p *stepped) drive(r *steps) {
	defer r.idle.Store(true)
	var opts engine.StepOptions
	var next *engine.NextStep // what the step does, according to the result of the last step; nil: not known
	for p.ctx.Err() == nil {
		out, err := p.step(r, opts)
		if err != nil { // repeat the step
			opts.After = -1 // no log ends there, so the step resumes the run
			if next != nil && next.Writes() {
				opts.Settle = true // its effect must not be repeated
			}
			r.sleep(p.ctx, time.Second)
			continue
		}
		opts, next = engine.StepOptions{After: out.LastID}, out.Next
		switch {
		case next != nil: // execute it
		case out.Status == "parked":
			r.idle.Store(true)
			r.sleep(p.ctx, untilExpiry(out))
			opts.Resume = r.resume.Swap(false)
			r.idle.Store(false)
		default: // the run has ended
			return
		}
	}
}

// step executes one step in the current process. If the process ends during the step, the step ends with [lathe.ErrLeft].
func (p *stepped) step(r *steps, opts engine.StepOptions) (*engine.Step, error) {
	p.mu.Lock()
	e, l, working := p.engine, p.host.Loop, p.working
	p.mu.Unlock()
	ctx, stop := context.WithCancelCause(context.WithoutCancel(working))
	defer context.AfterFunc(working, func() { stop(lathe.ErrLeft) })()
	r.mu.Lock()
	opts.Cancel, opts.Elapsed, r.stop = r.cancel, r.elapsed, stop
	r.mu.Unlock()
	began := time.Now()
	out, err := e.Step(ctx, l, r.id, &opts)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.elapsed += time.Since(began)
	r.stop = func(error) {}
	return out, err
}

// untilExpiry is how long a run waits if there is no input: until the first request for approval expires.
func untilExpiry(s *engine.Step) time.Duration {
	wait := 24 * time.Hour
	for _, w := range s.Waiting {
		if w.Digest != "" {
			wait = min(wait, time.Until(w.ExpiresAt))
		}
	}
	return max(wait, time.Millisecond)
}

// sleep returns after d, or when the run has input.
func (r *steps) sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.wake:
	case <-ctx.Done():
	}
}

// wakeAfter wakes a run after its input was stored with this error, unless err is not nil. It returns err.
func (p *stepped) wakeAfter(runID string, err error) error {
	if err != nil {
		return err
	}
	select {
	case p.runs[runID].wake <- struct{}{}:
	default: // it is awake
	}
	return nil
}

// Answer implements [Engine].
func (p *stepped) Answer(ctx context.Context, runID, callID, digest string, a *approval.Answer) error {
	return p.wakeAfter(runID, p.host.Answer(ctx, runID, callID, digest, a))
}

// Result implements [Engine].
func (p *stepped) Result(ctx context.Context, runID, callID string, out lathe.Output) error {
	return p.wakeAfter(runID, p.host.putResult(ctx, runID, callID, out))
}

// Cancel implements [Engine].
func (p *stepped) Cancel(_ context.Context, runID string) error {
	r := p.runs[runID]
	r.mu.Lock()
	r.cancel = true
	r.stop(context.Canceled)
	r.mu.Unlock()
	return p.wakeAfter(runID, nil)
}

// Resume implements [Engine].
func (p *stepped) Resume(_ context.Context, runID string) error {
	p.runs[runID].resume.Store(true)
	return p.wakeAfter(runID, nil)
}

// Await implements [Engine].
func (p *stepped) Await(ctx context.Context, runID string, after int64) (*loop.State, error) {
	return p.await(ctx, runID, after, p.runs[runID].idle.Load, func() error { return nil })
}

// Restart implements [Engine].
func (p *stepped) Restart(_ context.Context, kill bool) error {
	if kill {
		p.host.Kill()
	}
	p.leave(lathe.ErrLeft)
	if kill {
		p.lost()
	}
	return p.begin()
}

// Close implements [Engine].
func (p *stepped) Close() {
	p.close()
	p.leave(lathe.ErrLeft)
	p.drivers.Wait()
}
