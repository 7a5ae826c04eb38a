package enginetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
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
	store lathe.RunIndex
	kept  lathe.FactStore // nil: the store keeps no facts
	desk  *approval.Desk  // nil: what people say is in the world
	alone bool            // no other process uses the store
	// paused processes stand still, and do not notice that time passes.
	paused atomic.Bool
	ctx    context.Context
	close  context.CancelFunc
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
	if own := s.opts.Own; len(own) > 0 {
		p.use(own[s.born%len(own)])
	} else {
		p.use(s.opts.Store)
	}
	runner := tool.NewRunner(gadgets(), &tool.Options{Policy: judge{}, Approver: p, Now: p.now, NewID: newID})
	var err error
	if p.loop, err = loop.New(&teller{p}, runner, &loop.Options{Now: p.now}); err != nil {
		panic(err)
	}
	p.eng = engine.New(&engine.Options{Store: p.store, Node: p.name, Sinks: []lathe.Sink{p}, Now: p.now, NewID: newID})
	p.crew = engine.NewCrew(p.eng, 0)
	s.procs = append(s.procs, p)
	return p
}

// use takes a store for what it is.
func (p *Process) use(inner lathe.RunIndex) {
	own := &store{inner: inner, p: p}
	p.store, p.alone = own, true
	if kept, ok := inner.(lathe.FactStore); ok {
		facts := &factStore{own, kept}
		p.store, p.kept = facts, facts
		p.desk = approval.NewDesk(&approval.DeskOptions{Now: p.now, Facts: facts})
		if shared, ok := inner.(lathe.SharedStore); ok && !p.sim.opts.Alone {
			p.store, p.alone = &sharedStore{facts, shared}, false
		}
	}
}

func (p *Process) loopFor(*lathe.RunSummary) (*loop.Loop, error) { return p.loop, nil }

// serve has the process look for runs that nobody carries.
func (p *Process) serve() {
	if p.alone {
		p.sim.do(p.name+" looks for what was left", p.recover)
		return
	}
	p.sim.actors.Go(func() { p.crew.Serve(p.ctx, &engine.ServeOptions{LoopFor: p.loopFor}) })
	synctest.Wait()
}

// Approve implements [lathe.Approver]: what was answered is in the store, or, where that keeps no facts, in
// the world.
func (p *Process) Approve(ctx context.Context, req *lathe.ApprovalRequest) (lathe.Approval, error) {
	a, err := p.sim.world.Approve(ctx, req)
	if p.desk != nil {
		return p.desk.Approve(ctx, req)
	}
	return a, err
}

// Recall implements [lathe.Recaller].
func (p *Process) Recall(ctx context.Context, req *lathe.ApprovalRequest) (lathe.Approval, bool) {
	if p.desk == nil {
		return lathe.Approval{}, false
	}
	return p.desk.Recall(ctx, req)
}

// decide gives the answer to a request to the process, which keeps it.
func (p *Process) decide(q *question, a lathe.Approval) {
	if p.desk == nil {
		p.sim.say("%s %s is decided: approved %v, first %v", q.runID, q.callID, a.Approved, p.sim.world.decide(q, a))
		return
	}
	answer := approval.Answer{Verb: approval.Approve, By: a.By, Arguments: a.Arguments, Result: a.Result}
	switch {
	case !a.Approved:
		answer.Verb = approval.Deny
	case a.Arguments != nil:
		answer.Verb = approval.Edit
	case a.Result != nil:
		answer.Verb = approval.AnswerIt
	}
	p.sim.do(fmt.Sprintf("%s is told of %s %s: %s", p.name, q.runID, q.callID, answer.Verb), func() {
		p.desk.Await(approval.Request{Digest: q.digest, RunID: q.runID, ToolCallID: q.callID, ExpiresAt: q.expires})
		if err := p.desk.Answer(p.ctx, q.digest, answer); err != nil {
			p.sim.strange(q.runID, "answer", err)
		}
	})
}

func (p *Process) put(f lathe.Fact) {
	p.sim.do(p.name+" is told "+f.Kind+" "+f.Key+" of "+f.RunID, func() {
		if err := p.kept.PutFact(p.ctx, f); err != nil {
			p.sim.strange(f.RunID, "keep a fact", err)
		}
	})
}

// results tells the process what came of the client's calls of a run.
func (p *Process) results(runID string, answers map[string]lathe.Output) {
	if p.alone {
		p.sim.do(p.name+" is told the results of "+runID, func() { p.resume(runID, answers) })
		return
	}
	for _, id := range slices.Sorted(maps.Keys(answers)) {
		f, err := engine.ResultFact(runID, id, answers[id])
		if err != nil {
			panic(err)
		}
		p.put(f)
	}
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
	if !p.alone {
		if err := p.kept.PutFact(p.ctx, lathe.Fact{RunID: runID, Kind: lathe.FactCancel}); err != nil {
			p.sim.strange(runID, "cancel", err)
		}
		return
	}
	if _, err := p.eng.Cancel(p.ctx, p.loop, runID); err != nil {
		p.sim.strange(runID, "cancel", err)
	}
}

func (p *Process) recover() {
	if _, err := p.crew.Recover(p.ctx, p.store, p.loopFor); err != nil {
		p.sim.strange("", "recover", err)
	}
}

// strange notes an error that no fault explains.
func (s *Sim) strange(runID, what string, err error) {
	switch lathe.CodeOf(err) {
	case lathe.CodeConflict, lathe.CodeNotFound, lathe.CodeUnavailable, lathe.CodeCancelled, lathe.CodeTimeout, lathe.CodeApprovalExpired:
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
