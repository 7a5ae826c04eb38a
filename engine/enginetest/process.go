package enginetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/observe"
	"github.com/lathe-run/lathe/tool"
)

// A Process is one life of an engine. Once it is dead, nothing that it does reaches anybody: neither
// the store, nor the world, nor a watcher.
type Process struct {
	sim   *Sim
	name  string
	dead  atomic.Bool
	skew  atomic.Int64 // of its clock, in nanoseconds
	bus   *observe.Bus
	loop  *loop.Loop
	eng   *engine.Engine
	crew  *engine.Crew
	store *store
	ctx   context.Context
	close context.CancelFunc
}

func (s *Sim) start() *Process {
	s.born++
	p := &Process{sim: s, name: fmt.Sprintf("p%d", s.born), bus: observe.NewBus(nil)}
	p.ctx, p.close = context.WithCancel(context.WithValue(context.Background(), processKey{}, p))
	ids := 0
	newID := func(prefix string) string { // of one goroutine at a time
		ids++
		return fmt.Sprintf("%s%s_%d", prefix, p.name, ids)
	}
	runner := tool.NewRunner(gadgets(), &tool.Options{Policy: judge{}, Approver: s.world, Now: p.now, NewID: newID})
	var err error
	if p.loop, err = loop.New(&teller{p}, runner, &loop.Options{Now: p.now}); err != nil {
		panic(err)
	}
	p.store = &store{inner: s.opts.Store, p: p}
	p.eng = engine.New(&engine.Options{Store: p.store, Sinks: []lathe.Sink{p}, Now: p.now, NewID: newID})
	p.crew = engine.NewCrew(p.eng, 0)
	s.procs = append(s.procs, p)
	return p
}

func (p *Process) now() time.Time { return time.Now().Add(time.Duration(p.skew.Load())) }

// Emit implements [lathe.Sink].
func (p *Process) Emit(ctx context.Context, e lathe.Event) {
	if p.dead.Load() {
		return
	}
	switch p.sim.opts.Hints {
	case Dropped:
	case Doubled:
		p.bus.Emit(ctx, e)
		p.bus.Emit(ctx, e)
	case Told:
		p.bus.Emit(ctx, e)
	}
}

// end takes a dead process out of the world: connections to it break off, and what it still does, it
// does for nobody.
func (p *Process) end() {
	p.close()
	for _, tail := range p.sim.tails {
		if tail.at == p {
			tail.leave()
		}
	}
}

// begin asks the process for a run, as a client does that keeps asking until it is told that the run is there.
func (p *Process) begin(r *Run) {
	script := p.sim.world.script(r.ID)
	in := &loop.Input{Run: lathe.RunInfo{RunID: r.ID, RequestID: "req_" + r.ID}, Messages: []lathe.Message{lathe.User(r.ID)}, ClientTools: clientTools(),
		Settings: &lathe.Settings{MaxParallel: script.Parallel}, Limits: &script.Limits, Park: true}
	told := sinkFunc(func(e lathe.Event) {
		if _, first := e.Data.(*lathe.RunStarted); first && e.ID == 1 && !p.dead.Load() {
			r.Acked = true
		}
	})
	if _, err := p.crew.Start(p.ctx, p.loop, in, told); err != nil && lathe.CodeOf(err) != lathe.CodeConflict {
		p.sim.strange(r.ID, "begin", err)
	}
}

// resume goes on with a run, with what clients answer.
func (p *Process) resume(runID string, answers map[string]lathe.Output) {
	if err := p.crew.Resume(p.ctx, p.loop, runID, answers); err != nil {
		p.sim.strange(runID, "resume", err)
	}
}

func (p *Process) cancel(runID string) {
	if p.crew.Cancel(runID) {
		return
	}
	if _, err := p.eng.Cancel(p.ctx, p.loop, runID); err != nil {
		p.sim.strange(runID, "cancel", err)
	}
}

func (p *Process) recover() {
	_, err := p.crew.Recover(p.ctx, p.store, func(*lathe.RunSummary) (*loop.Loop, error) { return p.loop, nil })
	if err != nil {
		p.sim.strange("", "recover", err)
	}
}

// strange notes an error that no fault explains.
func (s *Sim) strange(runID, what string, err error) {
	switch lathe.CodeOf(err) {
	case lathe.CodeConflict, lathe.CodeNotFound, lathe.CodeUnavailable, lathe.CodeCancelled, lathe.CodeTimeout:
		return
	}
	if errors.Is(err, errDead) || errors.Is(err, errNoAnswer) || errors.Is(err, context.Canceled) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bad = append(s.bad, Violation{Check: "C1", RunID: runID, Text: what + ": " + err.Error()})
}

// carrier returns the process that carries a run, or nil.
func (s *Sim) carrier(runID string) *Process {
	i := slices.IndexFunc(s.procs, func(p *Process) bool { return p.crew.Carries(runID) })
	if i < 0 {
		return nil
	}
	return s.procs[i]
}

type sinkFunc func(lathe.Event)

func (f sinkFunc) Emit(_ context.Context, e lathe.Event) { f(e) }
