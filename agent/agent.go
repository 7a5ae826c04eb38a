// Package agent is for programs that embed Lathe: an [Agent] holds a model, tools, a policy and a store, and executes runs.
//
//	weather := tool.Func("weather", "Returns the weather of a city.", forecast, &tool.FuncOptions{Effect: lathe.ReadOnly})
//	a, err := agent.New(model, &agent.Options{Instructions: "Be brief.", Tools: []lathe.Tool{weather}})
//	res, err := a.Run(ctx, lathe.User("What is the weather in Oslo?"))
//	fmt.Println(res.Answer)
//
// [Agent.Run] returns a result, [Agent.Stream] yields the events on the way to it, [RunAs] returns an answer of a Go type.
//
// # Approvals and restarts
//
// Each event of a run, except for deltas, is stored before the effect that it announces begins. A call that needs an approval parks its run:
// [Agent.Waiting] lists such calls, and [Agent.Answer] stores the decision and resumes the run in the background. If the store outlives the
// process, call [Agent.Recover] once at the start: it resumes the runs that earlier processes did not finish, and restores their requests for
// approval with their expiry. A call of a tool with the effect Writes is never repeated after a crash; the model gets the result interrupted.
// Calls of tools that only read or are idempotent are repeated.
//
// # The parts
//
// An agent is a thin composition of parts that can be used alone: [loop.Loop] executes a run without storing it; [engine.Engine] gives
// events ids and stores them; [engine.Supervisor] executes runs in the background and recovers them; [approval.Queue] holds requests for
// approval. A program that needs other durability per run, several loops under one supervisor, or step-by-step execution uses those.
package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/observe"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
)

// Options configure an agent. They are copied.
type Options struct {
	// Name is stored with each run. [Agent.Recover] resumes only the runs that have this Name, and [Agent.Waiting] lists no stored runs that
	// have another one. Several agents of one process may share an SQLite store if each has a Name of its own. Agents that share a
	// [store.Shared], such as a PostgreSQL database, must all have the same Name, because they take over each other's runs without
	// comparing names. Before you change Name (also from ""), let an agent with the old Name finish the stored runs.
	Name string
	// Description tells the models of other agents when to hand the conversation over to this agent: see Handoffs.
	Description string
	// Instructions is the system message of each run whose messages do not begin with a system message; "": none. With Handoffs,
	// instructions are not part of the history: each model call begins with those of its agent, followed by a system message of the
	// conversation.
	Instructions string
	Tools        []lathe.Tool // within the limits of [tool.NewSet]
	// Policy decides about each tool call and, unless Loop has a policy, before each model call; nil: [policy.Default], which allows tools
	// that only read and requires an approval for all others. [New] returns an error if a [policy.Tools] contains a name that is nearly the
	// name of a tool.
	Policy lathe.Policy
	// Approver decides, while the run waits, about calls for which the policy requires an approval. nil: the run is parked, and the agent
	// stores the request until [Agent.Answer] is called.
	Approver lathe.Approver
	// Store stores the runs. It must also implement [store.RunIndex] and [store.SignalStore], as the stores of packages store/sqlite and
	// store/postgres do. nil: runs are stored in memory, until the process ends.
	Store store.Store
	// Runner and Loop are options of the parts from which the agent is made. Set limits and settings in Runner (such as
	// Runner.Limits.ApprovalTTL), and sampling and prices in Loop. Set Policy, Approver and Log in Options, not in Runner: a value in
	// Runner takes precedence. [Agent.With] replaces limits, settings and sampling for single runs.
	Runner tool.Options
	Loop   loop.Options
	// Handoffs are agents to which the conversation can be handed over. They can hand it over to each other and, if Name is set, back to
	// this agent. For each other agent, the model of an agent has a read-only tool transfer_to_NAME; the policy of the calling agent
	// decides about it.
	//
	// After a call of that tool the other agent answers, with its own model, instructions, tools, policy, settings and limits. It does so
	// in the rest of the run and in later runs that continue its history, also after a restart: the last successful transfer in the
	// messages decides which agent answers, so a caller that supplies the messages can choose the agent. Limits count over the whole run;
	// those of the current agent apply. ModelCallStarted and the trace of the result contain the name of the agent.
	Handoffs []Handoff
	// MaxTransfers is the maximum number of transfers of one run; 0: 8. The policy denies further ones, by the rule max_transfers.
	MaxTransfers int
	// Prepare, if not nil, is called with each request before the model receives it, and may change it, for example add, omit or summarize
	// messages. It may change req and the elements of its lists, but not the messages and tools to which they refer. The history of the run
	// contains the messages without these changes. An error ends the run. Prepare may be called from several goroutines at once.
	//
	// To change tool calls, use Runner.Around.
	Prepare func(ctx context.Context, req *lathe.Request) error
	// Sinks, such as an [observe.Metrics], receive the events of all runs, in order. A sink that blocks delays the run.
	Sinks []event.Sink
	Log   *slog.Logger // nil: no logging
	// MaxRuns is the maximum number of concurrent runs; 0: 256 ([engine.MaxRuns]). A run beyond it fails with code unavailable. A parked run
	// does not count.
	MaxRuns int
}

// An Agent executes runs of one model with tools. Its methods may be called from several goroutines at once.
type Agent struct {
	*parts
	in loop.Input // what each run begins with: see With
}

// parts are shared by an agent and the copies that [Agent.With] returns. New sets all fields; only those below mu change afterwards.
type parts struct {
	name         string
	instructions string // the system message of runs; "": none
	log          *slog.Logger
	now          func() time.Time
	sampling     lathe.Sampling
	loop         *loop.Loop
	members      []member // the agent, with loop, and those of its handoffs
	engine       *engine.Engine
	supervisor   *engine.Supervisor
	runs         store.RunIndex
	queue        *approval.Queue
	bus          *observe.Bus
	metrics      []*observe.Metrics // those of the sinks

	mu      sync.Mutex
	timers  map[string]*time.Timer // of the requests for approval that wait, by digest
	stop    context.CancelFunc     // ends what Recover started; nil: nothing
	serving sync.WaitGroup
}

// New returns an agent. opts may be nil. The caller must call [Agent.Close]. The error has the code invalid_config, or is that of a store
// that cannot be read within 10 s.
func New(model lathe.Model, opts *Options) (*Agent, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	a := &Agent{parts: &parts{
		name: o.Name, log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)), now: o.Loop.Now, sampling: o.Loop.Sampling,
		bus: observe.NewBus(nil), timers: map[string]*time.Timer{},
	}}
	if a.now == nil {
		a.now = time.Now
	}
	if isNil(model) {
		return nil, lathe.CodeInvalidConfig.Errorf("agent: new", "a model is required: one of package provider, or sim.New(nil).Model(\"sim/demo\")")
	}
	if o.Store == nil {
		o.Store = store.NewMemory(nil)
	}
	signals, _ := o.Store.(store.SignalStore)
	a.runs, _ = o.Store.(store.RunIndex)
	if a.runs == nil || signals == nil {
		return nil, lathe.CodeInvalidConfig.Errorf("agent: new", "the store must be a store.RunIndex and a store.SignalStore: those of packages store, store/sqlite and store/postgres are")
	}
	a.queue = approval.NewQueue(&approval.QueueOptions{Now: a.now, Signals: signals, OnAsk: a.watch})
	if err := a.assemble(model, &o); err != nil {
		return nil, err
	}
	if err := a.checkStore(context.Background()); err != nil {
		return nil, err
	}
	return a, nil
}

// checkStore returns an error if the store cannot be read, such as a closed one.
func (a *parts) checkStore(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, _, err := a.runs.Runs(ctx, &store.RunFilter{Limit: 1})
	return err
}

// assemble makes the loops and what executes them.
func (a *Agent) assemble(model lathe.Model, o *Options) error {
	if err := checkHandoffs(o); err != nil {
		return err
	}
	if len(o.Handoffs) == 0 {
		a.instructions = o.Instructions
	}
	if err := a.add(model, o, o); err != nil {
		return err
	}
	if err := a.addHandoffs(o); err != nil {
		return err
	}
	a.loop = a.members[0].loop
	for _, s := range o.Sinks {
		if m, ok := s.(*observe.Metrics); ok {
			a.metrics = append(a.metrics, m)
		}
	}
	var err error
	sinks := append(slices.Clone(o.Sinks), a.bus, withdrawal{a.queue})
	if a.engine, err = engine.New(&engine.Options{Store: o.Store, Sinks: sinks, Log: o.Log, Now: a.now}); err != nil {
		return err
	}
	a.supervisor, err = engine.NewSupervisor(a.engine, &engine.SupervisorOptions{MaxRuns: o.MaxRuns})
	return err
}

// add adds the member with the options o: its tools, runner and loop. first are the options of the agent, which has the handoffs; the agent
// itself is the first member, for which both are the same.
func (a *parts) add(model lathe.Model, o, first *Options) error {
	runner, options := o.Runner, o.Loop
	runner.Policy = cmp.Or[lathe.Policy](runner.Policy, o.Policy, policy.Default())
	options.Policy = cmp.Or(options.Policy, runner.Policy)
	runner.Approver = cmp.Or[lathe.Approver](runner.Approver, o.Approver, a.queue)
	runner.Log = cmp.Or(runner.Log, o.Log)
	tools, err := tool.NewSet(slices.Concat(o.Tools, transfers(o.Name, first))...)
	if err != nil {
		return err
	}
	if err := checkNames(runner.Policy, tools); err != nil {
		return err
	}
	p := prepared{Model: model, prepare: o.Prepare}
	if len(first.Handoffs) > 0 {
		p.instructions = o.Instructions
		runner.Policy = transferLimit{runner.Policy, a, cmp.Or(first.MaxTransfers, defaultTransfers)}
		options.Agent = o.Name
		options.Route = func(messages []lathe.Message) *loop.Loop { return a.active(messages).loop }
	}
	if p.prepare != nil || p.instructions != "" {
		model = p
	}
	r, err := tool.NewRunner(tools, &runner)
	if err != nil {
		return err
	}
	l, err := loop.New(model, r, &options)
	a.members = append(a.members, member{o.Name, tools, l})
	return err
}

// checkNames returns an error if a policy by names has a name that is nearly that of a tool. Other names may be those of tools of callers.
func checkNames(p lathe.Policy, tools *tool.Set) error {
	if t, ok := p.(*policy.Tools); ok && t != nil {
		p = *t
	}
	t, ok := p.(policy.Tools)
	if !ok {
		return nil
	}
	var names []string
	for _, spec := range tools.Specs() {
		names = append(names, spec.Name)
	}
	for _, name := range slices.Concat(t.Allow, t.Ask, t.Deny) {
		if near := text.Suggest(name, names, ""); near != "" && !slices.Contains(names, name) {
			return lathe.CodeInvalidConfig.Errorf("agent: new", "the policy names %q, and no tool has that name: %s", name, near)
		}
	}
	return nil
}

// With returns an agent that executes its runs with the fields of in: session and labels, limits, settings and sampling, tools that the
// caller executes, and messages that precede those of the run. Park and Target of in are not used. in replaces that of an earlier With as a
// whole. The new agent shares everything else with a, so [Agent.Close] must be called for only one of the two. Leave in.Run.RunID empty if
// the agent executes more than one run.
func (a *Agent) With(in loop.Input) *Agent { return &Agent{parts: a.parts, in: in} }

// input returns the input of a run.
func (a *Agent) input(prompt []lathe.Message) *loop.Input {
	in := a.in
	in.Park, in.Target = true, a.name
	in.Messages = slices.Concat(in.Messages, prompt)
	if a.instructions != "" && (len(in.Messages) == 0 || in.Messages[0].Role != lathe.RoleSystem) {
		in.Messages = slices.Concat([]lathe.Message{lathe.System(a.instructions)}, in.Messages)
	}
	if in.Run.RunID == "" {
		in.Run.RunID = a.engine.NewRunID()
	}
	return &in
}

// ErrWaiting is wrapped by the error of a run that is parked: it waits for an approval or for the result of a tool that the caller
// executes.
var ErrWaiting = errors.New("the run waits")

// outcome returns the error of a run that is not executed any more; nil if it has an answer. res is nil if its process has left it.
func outcome(runID string, res *event.Result) error {
	switch {
	case res == nil:
		return lathe.CodeUnavailable.Errorf("agent: run "+runID, "the run was left before its end: Agent.Recover of the next process resumes it")
	case res.Reason.Status() != "parked":
		return loop.Failure(res)
	case res.Reason == lathe.ReasonAwaitingApproval:
		return fmt.Errorf("agent: run %s: %s: %w: Agent.Waiting lists the requests, Agent.Answer answers one", runID, res.Reason, ErrWaiting)
	}
	return fmt.Errorf("agent: run %s: %s: %w: Agent.Resume resumes it, with the results of the calls in Result.Pending", runID, res.Reason, ErrWaiting)
}

// Run executes one run, and blocks until it ends or is parked. A parked run waits for an approval or for the result of a tool that the
// caller executes, and can be resumed. prompt is the conversation so far, usually with a user message at its end. To continue a
// conversation, pass the History of its last result and a new message.
//
// The result is nil only if the run could not begin. The error is nil if there is an answer, even one that a limit has cut short: see
// [event.Result].Reason. If the run is parked, the error wraps [ErrWaiting]; if the run failed, it is the error of the run. If ctx is done,
// the run is cancelled, and the result contains what the run had reached until then.
func (a *Agent) Run(ctx context.Context, prompt ...lathe.Message) (*event.Result, error) {
	return a.finish(a.Stream(ctx, prompt...))
}

// Stream executes one run, as [Agent.Run] does, and yields its events, which the caller may retain. The run waits while the caller
// processes an event. If the range ends early or ctx is done, the run is cancelled. If Run would return an error, the last pair has that
// error and no event. [loop.Ended] returns the result in the last event. A second range starts a second run.
func (a *Agent) Stream(ctx context.Context, prompt ...lathe.Message) iter.Seq2[event.Event, error] {
	return a.stream(ctx, func(own event.Sink) (string, error) {
		return a.supervisor.Start(ctx, a.loop, a.input(prompt), &engine.RunOptions{Sinks: []event.Sink{own}})
	})
}

// Resume resumes a parked run and blocks until it ends or is parked again. results are the results, by call id, of calls that the caller
// has executed; it may be nil. Calls without a result remain pending. If ctx is done, the run is cancelled. The result and the error are
// those of [Agent.Run]. If the run cannot be resumed, the result is nil, and the error has the code not_found, or conflict if the run has
// ended or is being executed.
func (a *Agent) Resume(ctx context.Context, runID string, results map[string]lathe.Output) (*event.Result, error) {
	return a.finish(a.stream(ctx, func(own event.Sink) (string, error) {
		return runID, a.supervisor.Resume(ctx, a.loop, runID, results, own)
	}))
}

// finish returns the result of a run from its events.
func (a *Agent) finish(events iter.Seq2[event.Event, error]) (res *event.Result, err error) {
	for e, err := range events {
		if err != nil {
			return res, err
		}
		if end := loop.Ended(e.Data); end != nil {
			res = end
		}
	}
	return res, nil
}

// stream begins a run and yields its events.
func (a *Agent) stream(ctx context.Context, begin func(own event.Sink) (runID string, err error)) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		p := &pipe{events: make(chan event.Event), left: make(chan struct{}), done: make(chan struct{})}
		runID, err := begin(p)
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		defer context.AfterFunc(ctx, func() { a.supervisor.Cancel(runID) })()
		defer func() {
			close(p.left)
			<-p.done
		}()
		var res *event.Result
		for {
			select {
			case e := <-p.events:
				if end := loop.Ended(e.Data); end != nil {
					res = end
				}
				if !yield(e, nil) {
					a.supervisor.Cancel(runID)
					return
				}
			case <-p.done:
				if err := outcome(runID, res); err != nil {
					yield(event.Event{}, err)
				}
				return
			}
		}
	}
}

// A pipe is a sink that passes the events of one run to the range over its stream.
type pipe struct {
	events chan event.Event
	left   chan struct{} // closed when the range has ended
	done   chan struct{} // closed after the last event
}

var _ engine.Leaver = (*pipe)(nil)

// Emit implements [event.Sink]. It blocks until the range takes the event.
func (p *pipe) Emit(_ context.Context, e event.Event) {
	select {
	case p.events <- e:
	case <-p.left:
	}
}

// Leave implements [engine.Leaver].
func (p *pipe) Leave(string) { close(p.done) }

// Start starts a run in the background and returns its id as soon as its first event is stored. From then on, [Agent.Recover] can resume
// the run after the end of the process. The run has the values of ctx, but is not cancelled with it. [Agent.Wait] returns its result. If
// Start returns an error, no run was started; the code is unavailable if MaxRuns runs are in progress or after [Agent.Close].
func (a *Agent) Start(ctx context.Context, prompt ...lathe.Message) (runID string, err error) {
	s := &starting{first: make(chan event.Event, 1)}
	if runID, err = a.supervisor.Start(ctx, a.loop, a.input(prompt), &engine.RunOptions{Sinks: []event.Sink{s}}); err != nil {
		return "", err
	}
	if e := <-s.first; e.ID == 0 { // the end of a run that cannot be stored
		return "", loop.Failure(loop.Ended(e.Data))
	}
	return runID, nil
}

// starting is a sink that passes on the first event of a run.
type starting struct {
	once  sync.Once
	first chan event.Event
}

var _ engine.Leaver = (*starting)(nil)

// Emit implements [event.Sink].
func (s *starting) Emit(_ context.Context, e event.Event) { s.once.Do(func() { s.first <- e }) }

// Leave implements [engine.Leaver]: a run may be left before its first event.
func (s *starting) Leave(runID string) {
	res := &event.Result{RunID: runID, Reason: lathe.ReasonInternal, Err: lathe.CodeUnavailable.Errorf("agent: start", "the run was left before its first event was stored")}
	s.once.Do(func() {
		s.first <- event.Event{RunID: runID, Data: &event.RunFinished{Reason: res.Reason, Result: res}}
	})
}

// Wait returns the result of a run; the result and the error are those of [Agent.Run]. If this process executes the run, Wait blocks until
// the run ends or is parked. Otherwise it reads the result from the store at once. The error then has the code unavailable if the run has
// neither ended nor is parked (another process executes it, or its process has stopped: see [Agent.Recover]), and not_found if the store
// does not contain the run. If ctx is done while Wait blocks, Wait returns the error of ctx, and the run continues.
func (a *Agent) Wait(ctx context.Context, runID string) (*event.Result, error) {
	res, here, err := a.supervisor.Wait(ctx, runID)
	if !here {
		if res, err = a.stored(ctx, runID); err != nil {
			return nil, err
		}
	} else if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil, err
	}
	return res, outcome(runID, res)
}

// stored returns the result of a run from its log.
func (a *Agent) stored(ctx context.Context, runID string) (*event.Result, error) {
	s, err := a.engine.State(ctx, runID)
	if err != nil {
		return nil, lathe.CodeOf(err).Wrap("agent: run "+runID, errors.Unwrap(err))
	}
	res := &event.Result{RunID: runID, Reason: s.Paused, History: s.Messages, Usage: s.Usage, Cost: s.Cost, Trace: s.Trace, ToolCalls: s.Planned, Reasoning: s.Reasoning}
	for _, o := range s.Open {
		res.Pending = append(res.Pending, o.ToolCall)
	}
	switch f := s.Finished; {
	case f != nil:
		res.Reason, res.Answer, res.Blank = f.Reason, f.Answer, f.Blank
		if f.ErrorCode != "" {
			res.Err = lathe.Code(f.ErrorCode).Errorf("agent: run "+runID, "the run has failed")
		}
	case s.Paused == "":
		return nil, lathe.CodeUnavailable.Errorf("agent: run "+runID, "this process does not execute the run: Agent.Recover resumes the runs of a process that has stopped")
	}
	return res, nil
}

// Cancel ends a run with reason cancelled. A parked run ends at once, and a run that this process executes ends when its calls in progress
// have returned. Otherwise the run ends as soon as its process reads the request from the store. Cancel does not wait for the end: see
// [Agent.Wait]. The error has the code not_found if the store does not contain the run. It wraps [lathe.ErrConflict] if the run has ended,
// or if the store already has a request to cancel it.
func (a *Agent) Cancel(ctx context.Context, runID string) error {
	if a.supervisor.Cancel(runID) {
		return nil
	}
	if _, err := a.engine.Cancel(ctx, a.loop, runID); lathe.CodeOf(err) != lathe.CodeConflict {
		return err
	}
	return a.runs.(store.SignalStore).PutSignal(ctx, store.Signal{RunID: runID, Kind: store.SignalCancel})
}

// Close accepts no more runs and blocks until the runs of this process have ended or are parked. Without a deadline in ctx, that takes as
// long as the longest run (run_timeout, by default 15 minutes). If ctx is done earlier, Close stops the remaining runs, stores none of
// their further events, and returns their number; [Agent.Recover] of the next process resumes them. Close does not close the store. It may
// be called more than once.
func (a *Agent) Close(ctx context.Context) (left int) {
	a.mu.Lock()
	if a.stop != nil {
		a.stop()
	}
	for _, t := range a.timers {
		t.Stop()
	}
	clear(a.timers)
	a.mu.Unlock()
	a.serving.Wait()
	return a.supervisor.Drain(ctx)
}

// A withdrawal removes the requests of runs that have ended from the queue.
type withdrawal struct{ queue *approval.Queue }

// Emit implements [event.Sink].
func (w withdrawal) Emit(_ context.Context, e event.Event) {
	if _, ok := e.Data.(*event.RunFinished); ok {
		w.queue.Withdraw(e.RunID)
	}
}
