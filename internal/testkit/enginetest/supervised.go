package enginetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

// A base is the part that the engines of this package have in common: a store and the current process.
type base struct {
	environment *Environment
	kept        store.RunIndex
	clock       func(time.Time)

	host   *Host // of the current process
	engine *engine.Engine
}

func newBase(s *Environment, kept store.RunIndex, clock func(time.Time)) base {
	if clock == nil {
		clock = func(time.Time) {}
	}
	return base{environment: s, kept: kept, clock: clock}
}

// begin starts a process.
func (b *base) begin() (err error) {
	if b.host, err = b.environment.Host(b.kept, nil); err != nil {
		return err
	}
	b.engine, err = engine.New(&engine.Options{Store: b.host.Store, Sinks: []event.Sink{b.host}})
	return err
}

// lost waits until others may claim the runs of a killed process.
func (b *base) lost() {
	time.Sleep(11 * time.Second) // the default of [engine.Options].Lease, and 1 s
	b.clock(time.Now())
}

// Store implements [Engine].
func (b *base) Store() store.RunIndex { return b.kept }

// await polls the store until the run has ended or waits, settled allows it, and the log has events after the given one. late is
// called when the run waits for a request that has expired.
func (b *base) await(ctx context.Context, runID string, after int64, settled func() bool, late func() error) (*loop.State, error) {
	for range 12_000 { // ten minutes
		b.clock(time.Now())
		s, err := engine.ReadState(ctx, b.kept, runID)
		if lathe.CodeOf(err) == lathe.CodeNotFound { // it is not started yet
			s, err = &loop.State{}, nil
		}
		if err != nil {
			return nil, err
		}
		isParked := s.Paused != ""
		if (s.Finished != nil || isParked) && s.LastID > after && settled() {
			return s, nil
		}
		if isParked && slices.ContainsFunc(s.Open, func(o loop.OpenCall) bool { return o.Asked && !time.Now().Before(o.ExpiresAt) }) {
			if err := late(); err != nil && lathe.CodeOf(err) != lathe.CodeConflict {
				return nil, err
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil, fmt.Errorf("run %s neither ends nor waits", runID)
}

// Answer stores the answer to the request for approval of a call, as an endpoint for approvals does.
func (h *Host) Answer(ctx context.Context, runID, callID, digest string, a *approval.Answer) error {
	s, err := engine.ReadState(ctx, h.Store, runID)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(s.Open, func(o loop.OpenCall) bool { return o.ID == callID })
	if i < 0 {
		return errors.New("enginetest: the call is not open")
	}
	o := &s.Open[i]
	h.Approvals.Await(approval.RequestOf(s, o))
	return h.Approvals.Answer(ctx, digest, *a)
}

// putResult stores the result of a client's tool.
func (h *Host) putResult(ctx context.Context, runID, callID string, out lathe.Output) error {
	f, err := engine.ResultSignal(runID, callID, out)
	if err != nil {
		return err
	}
	return h.Store.PutSignal(ctx, f)
}

// A supervised is an [Engine] whose processes have an [engine.Supervisor] each.
type supervised struct {
	base
	shared  bool
	runs    *engine.Supervisor
	leave   context.CancelFunc
	serving sync.WaitGroup
}

// Supervised returns [engine.Supervisor] over a store as the [Engine] of a scenario. If the store is a [store.Shared], the supervisor acquires
// runs itself; else it recovers them when it starts, and the engine resumes a run whose input was stored, as a server does.
// The scenario must be in a synctest bubble, as Conform has it without RealTime. clock, which may be nil, sets the clock of a store that does not use the process's, as of [Options].
func Supervised(t *testing.T, s *Environment, kept store.RunIndex, clock func(time.Time)) Engine {
	t.Helper()
	_, shared := kept.(store.Shared)
	p := &supervised{base: newBase(s, kept, clock), shared: shared}
	if err := p.begin(); err != nil {
		t.Fatal(err)
	}
	return p
}

// begin starts a process.
func (p *supervised) begin() (err error) {
	if err := p.base.begin(); err != nil {
		return err
	}
	if p.runs, err = engine.NewSupervisor(p.engine, nil); err != nil {
		return err
	}
	ctx, leave := context.WithCancel(context.Background())
	p.leave = leave
	if p.shared {
		p.serving.Go(func() { p.runs.Serve(ctx, &engine.ServeOptions{LoopFor: p.loopFor}) })
		return nil
	}
	_, err = p.runs.Recover(ctx, p.host.Store, p.loopFor)
	return err
}

func (p *supervised) loopFor(*store.RunSummary) (*loop.Loop, error) { return p.host.Loop, nil }

// Start implements [Engine].
func (p *supervised) Start(ctx context.Context, in *loop.Input) (string, error) {
	return p.runs.Start(ctx, p.host.Loop, in, nil)
}

// Answer implements [Engine].
func (p *supervised) Answer(ctx context.Context, runID, callID, digest string, a *approval.Answer) error {
	return errors.Join(p.host.Answer(ctx, runID, callID, digest, a), p.wake(ctx, runID))
}

// Result implements [Engine].
func (p *supervised) Result(ctx context.Context, runID, callID string, out lathe.Output) error {
	return errors.Join(p.host.putResult(ctx, runID, callID, out), p.wake(ctx, runID))
}

// Cancel implements [Engine].
func (p *supervised) Cancel(ctx context.Context, runID string) error {
	if p.runs.Cancel(runID) {
		return nil
	}
	return errors.Join(p.host.Store.PutSignal(ctx, store.Signal{RunID: runID, Kind: store.SignalCancel}), p.wake(ctx, runID))
}

// Resume implements [Engine].
func (p *supervised) Resume(ctx context.Context, runID string) error {
	return p.runs.Resume(ctx, p.host.Loop, runID, nil)
}

// wake resumes a run whose input was stored. The supervisor of a [store.Shared] notices the input itself.
func (p *supervised) wake(ctx context.Context, runID string) error {
	if p.shared {
		return nil
	}
	return p.runs.Resume(ctx, p.host.Loop, runID, nil)
}

// Await implements [Engine].
func (p *supervised) Await(ctx context.Context, runID string, after int64) (*loop.State, error) {
	return p.await(ctx, runID, after, func() bool { return !p.runs.Owns(runID) }, func() error { return p.wake(ctx, runID) })
}

// Restart implements [Engine].
func (p *supervised) Restart(_ context.Context, kill bool) error {
	if kill {
		p.host.Kill()
	}
	p.end()
	if kill {
		p.lost()
	}
	return p.begin()
}

// Close implements [Engine].
func (p *supervised) Close() { p.end() }

// end ends the process. Its runs are released, unless it is killed.
func (p *supervised) end() {
	p.leave()
	now, cancel := context.WithCancel(context.Background())
	cancel()
	p.runs.Drain(now)
	p.serving.Wait()
}
