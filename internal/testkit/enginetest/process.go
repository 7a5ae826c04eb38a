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
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/observe"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
)

// A Process is a simulated process with one engine. Once it is dead, nothing that its goroutines do reaches the store, the
// world or a watcher. Sim.start sets all fields; only dead, skew and paused change.
type Process struct {
	sim        *Sim
	name       string
	dead       atomic.Bool
	skew       atomic.Int64 // of its clock, in nanoseconds
	bus        *observe.Bus // delivers the events to watchers
	loop       *loop.Loop
	eng        *engine.Engine
	supervisor *engine.Supervisor
	store      store.RunIndex
	signals    store.SignalStore // nil: the store keeps no signals
	approvals  *approval.Queue   // nil: the world holds the decisions
	alone      bool              // no other process uses the store
	paused     atomic.Bool       // it passes no stop, and does not notice that time passes
	ctx        context.Context
	close      context.CancelFunc
}

// start starts a process, which owns no run yet.
func (s *Sim) start() *Process {
	s.started++
	p := &Process{sim: s, name: fmt.Sprintf("p%d", s.started), bus: observe.NewBus(nil)}
	p.ctx, p.close = context.WithCancel(context.WithValue(context.Background(), processKey{}, p))
	ids := 0
	newID := func(prefix string) string { // of one goroutine at a time
		ids++
		return fmt.Sprintf("%s%s_%d", prefix, p.name, ids)
	}
	if own := s.opts.Own; len(own) > 0 {
		p.use(own[s.started%len(own)])
	} else {
		p.use(s.opts.Store)
	}
	runner, err := tool.NewRunner(gadgets(), &tool.Options{Policy: judge{}, Approver: p, Now: p.now, NewID: newID})
	if err != nil {
		panic(err)
	}
	if p.loop, err = loop.New(&scriptModel{p: p}, runner, &loop.Options{Now: p.now}); err != nil {
		panic(err)
	}
	if p.eng, err = engine.New(&engine.Options{Store: p.store, Node: p.name, Sinks: []event.Sink{p}, Now: p.now, NewID: newID}); err != nil {
		panic(err)
	}
	if p.supervisor, err = engine.NewSupervisor(p.eng, nil); err != nil {
		panic(err)
	}
	s.procs = append(s.procs, p)
	return p
}

// use sets the stores of the process: inner with stops, and with signals and claims if inner has them.
func (p *Process) use(inner store.RunIndex) {
	own := &simStore{inner: inner, p: p}
	p.store, p.alone = own, true
	if signals, ok := inner.(store.SignalStore); ok {
		withSignals := &signalStore{own, signals}
		p.store, p.signals = withSignals, withSignals
		p.approvals = approval.NewQueue(&approval.QueueOptions{Now: p.now, Signals: withSignals})
		if shared, ok := inner.(store.Shared); ok && !p.sim.opts.Alone {
			p.store, p.alone = &sharedStore{withSignals, shared}, false
		}
	}
}

func (p *Process) loopFor(*store.RunSummary) (*loop.Loop, error) { return p.loop, nil }

// serve has the process acquire runs that no process executes.
func (p *Process) serve() {
	if p.alone {
		p.sim.do(p.name+" looks for what was left", p.recover)
		return
	}
	p.sim.actors.Go(func() { p.supervisor.Serve(p.ctx, &engine.ServeOptions{LoopFor: p.loopFor}) })
	synctest.Wait()
}

// Approve implements [lathe.Approver]. It finds the decision in the store or, if the store keeps no signals, in the world.
func (p *Process) Approve(ctx context.Context, req *lathe.ApprovalRequest) (lathe.Approval, error) {
	a, err := p.sim.world.Approve(ctx, req) // also records the request for the approvers of the simulation
	if p.approvals != nil {
		return p.approvals.Approve(ctx, req)
	}
	return a, err
}

// StoredApproval implements [tool.StoredApprover].
func (p *Process) StoredApproval(ctx context.Context, req *lathe.ApprovalRequest) (lathe.Approval, bool) {
	if p.approvals == nil {
		return lathe.Approval{}, false
	}
	return p.approvals.StoredApproval(ctx, req)
}

// decide has the process store the answer to a request for approval.
func (p *Process) decide(q *question, a lathe.Approval) {
	if p.approvals == nil {
		p.sim.tracef("%s %s is decided: approved %v, first %v", q.runID, q.callID, a.Approved, p.sim.world.decide(q, a))
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
	p.sim.do(fmt.Sprintf("%s receives the answer for %s %s: %s", p.name, q.runID, q.callID, answer.Verb), func() {
		p.approvals.Await(approval.Request{Digest: q.digest, RunID: q.runID, ToolCallID: q.callID, ExpiresAt: q.expires})
		if err := p.approvals.Answer(p.ctx, q.digest, answer); err != nil {
			p.sim.strange(q.runID, "answer", err)
		}
	})
}

// put has the process store a signal.
func (p *Process) put(f store.Signal) {
	p.sim.do(p.name+" receives "+f.Kind+" "+f.Key+" of "+f.RunID, func() {
		if err := p.signals.PutSignal(p.ctx, f); err != nil {
			p.sim.strange(f.RunID, "store a signal", err)
		}
	})
}

// results sends the process the results of the client's calls of a run.
func (p *Process) results(runID string, answers map[string]lathe.Output) {
	if p.alone {
		p.sim.do(p.name+" receives the results of "+runID, func() { p.resume(runID, answers) })
		return
	}
	for _, id := range slices.Sorted(maps.Keys(answers)) {
		f, err := engine.ResultSignal(runID, id, answers[id])
		if err != nil {
			panic(err)
		}
		p.put(f)
	}
}

func (p *Process) now() time.Time { return time.Now().Add(time.Duration(p.skew.Load())) }

// Emit implements [event.Sink].
func (p *Process) Emit(ctx context.Context, e event.Event) {
	if p.dead.Load() {
		return
	}
	switch p.sim.opts.Delivery {
	case Dropped:
	case Doubled:
		p.bus.Emit(ctx, e)
		p.bus.Emit(ctx, e)
	case Delivered:
		p.bus.Emit(ctx, e)
	}
}

// end removes a dead process from the simulation: it closes the process and breaks the connections of watchers to it.
func (p *Process) end() {
	p.close()
	for _, tail := range p.sim.tails {
		if tail.at.Load() == p {
			tail.leave()
		}
	}
}

// begin requests a run from the process. A client may repeat the request: a run that exists already is no error.
func (p *Process) begin(r *Run) {
	script := p.sim.world.script(r.ID)
	in := &loop.Input{Run: lathe.RunInfo{RunID: r.ID, RequestID: "req_" + r.ID}, Messages: []lathe.Message{lathe.User(r.ID)}, ClientTools: clientTools(),
		Settings: &lathe.Settings{MaxParallel: script.Parallel}, Limits: &script.Limits, Park: true}
	acknowledge := sinkFunc(func(e event.Event) {
		if _, first := e.Data.(*event.RunStarted); first && e.ID == 1 && !p.dead.Load() {
			r.Acked = true
		}
	})
	if _, err := p.supervisor.Start(p.ctx, p.loop, in, &engine.RunOptions{Sinks: []event.Sink{acknowledge}}); err != nil && lathe.CodeOf(err) != lathe.CodeConflict {
		p.sim.strange(r.ID, "begin", err)
	}
}

// resume resumes a run with the answers of clients.
func (p *Process) resume(runID string, answers map[string]lathe.Output) {
	if err := p.supervisor.Resume(p.ctx, p.loop, runID, answers); err != nil {
		p.sim.strange(runID, "resume", err)
	}
}

func (p *Process) cancel(runID string) {
	if p.supervisor.Cancel(runID) {
		return
	}
	if !p.alone {
		if err := p.signals.PutSignal(p.ctx, store.Signal{RunID: runID, Kind: store.SignalCancel}); err != nil {
			p.sim.strange(runID, "cancel", err)
		}
		return
	}
	if _, err := p.eng.Cancel(p.ctx, p.loop, runID); err != nil {
		p.sim.strange(runID, "cancel", err)
	}
}

func (p *Process) recover() {
	if _, err := p.supervisor.Recover(p.ctx, p.store, p.loopFor); err != nil {
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
	s.found = append(s.found, Violation{Check: "C1", RunID: runID, Text: what + ": " + err.Error()})
}

// owner returns the process that executes a run, or nil.
func (s *Sim) owner(runID string) *Process {
	i := slices.IndexFunc(s.procs, func(p *Process) bool { return p.supervisor.Owns(runID) })
	if i < 0 {
		return nil
	}
	return s.procs[i]
}

type sinkFunc func(event.Event)

func (f sinkFunc) Emit(_ context.Context, e event.Event) { f(e) }
