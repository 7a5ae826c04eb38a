package enginetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
)

// An Environment is the environment of one scenario of [Conform]: the model, the tools, and the sinks of all processes. It outlives them.
type Environment struct {
	scenario *scenario
	world    *World

	mu    sync.Mutex
	born  int              // number of processes so far
	holds map[string]*hold // by the name of a tool, or "model"
	tails map[string]*Tail // by run
}

func newEnvironment(sc *scenario) *Environment {
	return &Environment{scenario: sc, world: newWorld(), holds: map[string]*hold{}, tails: map[string]*Tail{}}
}

// A hold blocks the calls of a tool, or of the model, until the call is cancelled or its process is killed.
type hold struct {
	begun chan struct{} // receives once for each blocked call
	over  chan struct{} // closed: the calls return
}

// hold makes the calls of a tool block from now on. release ends that for calls that follow.
func (s *Environment) hold(name string) *hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &hold{begun: make(chan struct{}, 100), over: make(chan struct{})}
	s.holds[name] = h
	return h
}

func (s *Environment) release(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.holds, name)
}

// block blocks if calls of that name are held. It then returns the error with which the call ends.
func (s *Environment) block(ctx context.Context, h *Host, name string) error {
	s.mu.Lock()
	held := s.holds[name]
	s.mu.Unlock()
	if held != nil {
		held.begun <- struct{}{}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-h.killed:
		case <-held.over:
		}
	}
	if h.Killed() {
		return errDead
	}
	return nil
}

// tail returns what the sinks of all processes received of a run.
func (s *Environment) tail(runID string) Tail {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := Tail{RunID: runID, Whole: true}
	if got := s.tails[runID]; got != nil {
		t.IDs, t.Lines = slices.Clone(got.IDs), slices.Clone(got.Lines)
	}
	return t
}

// A Host holds what a process of an [Engine] executes runs with. After Kill, nothing that the process does reaches the store, a tool
// or a sink.
type Host struct {
	Name      string
	Loop      *loop.Loop
	Store     HostStore // it also is a [store.Shared] if the store that it was made of is one
	Approvals *approval.Queue

	environment *Environment
	killed      chan struct{}
	once        sync.Once
}

// A HostStore is the store of a process: it keeps runs with their index and their signals.
type HostStore interface {
	store.RunIndex
	store.SignalStore
}

// Host returns the parts of a new process over a store, which must be a [store.SignalStore]. now is its clock; nil: time.Now.
func (s *Environment) Host(kept store.RunIndex, now func() time.Time) (*Host, error) {
	signals, ok := kept.(store.SignalStore)
	if !ok {
		return nil, errors.New("enginetest: the store keeps no signals")
	}
	s.mu.Lock()
	s.born++
	h := &Host{Name: fmt.Sprintf("p%d", s.born), environment: s, killed: make(chan struct{})}
	s.mu.Unlock()
	if shared, ok := kept.(store.Shared); ok {
		h.Store = &mortalShared{shared, h}
	} else {
		h.Store = &mortalStore{kept, signals, h}
	}
	h.Approvals = approval.NewQueue(&approval.QueueOptions{Now: now, Signals: h.Store})
	var tools []lathe.Tool
	for _, name := range slices.Sorted(maps.Keys(environmentEffects)) {
		p := &prop{host: h, spec: lathe.ToolSpec{Name: name, Description: "does " + name, Effect: environmentEffects[name], Allowlist: []string{"did"},
			Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}`)}}
		if name == Book {
			tools = append(tools, &ledgerProp{p})
		} else {
			tools = append(tools, p)
		}
	}
	set, err := tool.NewSet(tools...)
	if err != nil {
		return nil, err
	}
	secrets := &tool.Secrets{Known: map[string]secret.Secret{"KEY": secret.New(environmentSecret)}}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: environmentJudge{}, Approver: h.Approvals, Now: now, Secrets: secrets})
	if err != nil {
		return nil, err
	}
	h.Loop, err = loop.New(&environmentModel{h}, runner, &loop.Options{Now: now})
	return h, err
}

// Kill ends the process: its calls return, and what it does afterwards has no effect.
func (h *Host) Kill() { h.once.Do(func() { close(h.killed) }) }

// Killed reports whether Kill was called.
func (h *Host) Killed() bool {
	select {
	case <-h.killed:
		return true
	default:
		return false
	}
}

// Emit implements [event.Sink].
func (h *Host) Emit(_ context.Context, e event.Event) {
	if h.Killed() || event.IsDelta(e.Data) {
		return
	}
	line, err := e.MarshalJSON()
	if err != nil {
		line = []byte(err.Error()) // the check finds it
	}
	s := h.environment
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tails[e.RunID]
	if t == nil {
		t = &Tail{}
		s.tails[e.RunID] = t
	}
	t.IDs, t.Lines = append(t.IDs, e.ID), append(t.Lines, string(line))
}

// environmentSecret is what [Tell] returns, and the model must not see.
const environmentSecret = "correct-horse-battery"

// environmentEffects are the tools of the environment.
var environmentEffects = func() map[string]lathe.Effect {
	m := maps.Clone(effects)
	m[Book], m[Tell], m[Never] = lathe.Writes, lathe.ReadOnly, lathe.Writes
	return m
}()

// environmentJudge is the policy of every process.
type environmentJudge struct{ judge }

// Call implements [lathe.Policy].
func (j environmentJudge) Call(c *lathe.CallInfo) lathe.Verdict {
	if c.Tool.Name == Never {
		return lathe.Verdict{Decision: lathe.Deny, Rule: "sim"}
	}
	return j.judge.Call(c)
}

// A prop is a tool of one process. Its executions are in the world, which outlives the process.
type prop struct {
	host *Host
	spec lathe.ToolSpec
}

// Spec implements [lathe.Tool].
func (p *prop) Spec() *lathe.ToolSpec { return &p.spec }

// Call implements [lathe.Tool]. The effect comes before the point at which the call is held.
func (p *prop) Call(ctx context.Context, args json.RawMessage) (*lathe.Output, error) {
	if p.host.Killed() {
		return nil, errDead
	}
	meta := lathe.CallMetaFrom(ctx)
	p.host.environment.world.do(&Deed{RunID: meta.RunID, CallID: meta.CallID, Tool: p.spec.Name, Key: meta.IdempotencyKey, Args: bytes.Clone(args), Process: p.host.Name})
	if err := p.host.environment.block(ctx, p.host, p.spec.Name); err != nil {
		return nil, err
	}
	return p.output(meta), nil
}

func (p *prop) output(meta *lathe.CallMeta) *lathe.Output {
	did := meta.CallID
	if p.spec.Name == Tell {
		did = "the key is " + environmentSecret
	}
	return &lathe.Output{Data: json.RawMessage(fmt.Sprintf(`{"did":%q,"hidden":"not for the model"}`, did))}
}

// A ledgerProp is a prop that knows which of its calls were executed.
type ledgerProp struct{ *prop }

var _ tool.OutcomeChecker = (*ledgerProp)(nil)

// CheckOutcome implements [tool.OutcomeChecker].
func (p *ledgerProp) CheckOutcome(_ context.Context, call *lathe.CallMeta) (tool.Recovery, error) {
	for _, d := range p.host.environment.world.made(call.RunID) {
		if d.Key == call.IdempotencyKey {
			return tool.Recovery{Outcome: tool.RecoveryDone, Output: p.output(call)}, nil
		}
	}
	return tool.Recovery{Outcome: tool.RecoveryNotRun}, nil
}

// An environmentModel is the model of one process. The script of the scenario says what it answers.
type environmentModel struct{ host *Host }

// Describe implements [lathe.Model].
func (*environmentModel) Describe() lathe.ModelInfo {
	return lathe.ModelInfo{Provider: "sim", Model: "script"}
}

// Generate implements [lathe.Model].
func (m *environmentModel) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		s := m.host.environment
		if err := s.block(ctx, m.host, "model"); err != nil {
			yield(lathe.Delta{}, err)
			return
		}
		t := s.scenario.script.next(req)
		t.deliver(req, yield)
	}
}

// A mortalStore is the store of one process. It refuses all changes once the process is killed.
type mortalStore struct {
	store.RunIndex
	signals store.SignalStore
	host    *Host
}

var _ store.SignalStore = (*mortalStore)(nil)

// alive returns an error if the process is killed: it no longer reaches its store.
func (h *Host) alive() error {
	if h.Killed() {
		return unreachable(errDead)
	}
	return nil
}

// Append implements [store.Store].
func (m *mortalStore) Append(ctx context.Context, runID string, last int64, events ...event.Event) (int64, error) {
	if err := m.host.alive(); err != nil {
		return 0, err
	}
	return m.RunIndex.Append(ctx, runID, last, events...)
}

// PutSignal implements [store.SignalStore].
func (m *mortalStore) PutSignal(ctx context.Context, f store.Signal) error {
	if err := m.host.alive(); err != nil {
		return err
	}
	return m.signals.PutSignal(ctx, f)
}

// Signals implements [store.SignalStore].
func (m *mortalStore) Signals(ctx context.Context, runID string) ([]store.Signal, error) {
	return m.signals.Signals(ctx, runID)
}

// A mortalShared is a mortalStore that several processes use.
type mortalShared struct {
	store.Shared
	host *Host
}

var _ store.Shared = (*mortalShared)(nil)

// AppendAs implements [store.Shared].
func (m *mortalShared) AppendAs(ctx context.Context, c store.Claim, last int64, events ...event.Event) (int64, error) {
	if err := m.host.alive(); err != nil {
		return 0, err
	}
	return m.Shared.AppendAs(ctx, c, last, events...)
}

// Claim implements [store.Shared].
func (m *mortalShared) Claim(ctx context.Context, node string, lease time.Duration, limit int) ([]store.Claim, error) {
	if err := m.host.alive(); err != nil {
		return nil, err
	}
	return m.Shared.Claim(ctx, node, lease, limit)
}

// ClaimRun implements [store.Shared].
func (m *mortalShared) ClaimRun(ctx context.Context, node, runID string, lease time.Duration) (store.Claim, error) {
	if err := m.host.alive(); err != nil {
		return store.Claim{}, err
	}
	return m.Shared.ClaimRun(ctx, node, runID, lease)
}

// Renew implements [store.Shared].
func (m *mortalShared) Renew(ctx context.Context, node string, lease time.Duration) ([]store.Claim, error) {
	if err := m.host.alive(); err != nil {
		return nil, err
	}
	return m.Shared.Renew(ctx, node, lease)
}

// Release implements [store.Shared].
func (m *mortalShared) Release(ctx context.Context, c store.Claim, seen int64) error {
	if err := m.host.alive(); err != nil {
		return err
	}
	return m.Shared.Release(ctx, c, seen)
}

// PutSignal implements [store.SignalStore].
func (m *mortalShared) PutSignal(ctx context.Context, f store.Signal) error {
	if err := m.host.alive(); err != nil {
		return err
	}
	return m.Shared.PutSignal(ctx, f)
}
