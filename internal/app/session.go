package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/audit"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/observe"
	"github.com/lathe-run/lathe/sim"
	"github.com/lathe-run/lathe/tool"
)

// SessionOptions configure a [Session]. The zero value is usable.
type SessionOptions struct {
	Tools []lathe.Tool // added to the tools of the configuration
	// Allow names the tools that runs may use; nil: all. MCP servers that provide none of them are not started.
	Allow []string
	// Approver decides about calls that need an approval; nil: they are denied. AgentApprover does so for calls of agents, whose answers
	// cannot come later; nil: such tools are withheld from agents.
	Approver, AgentApprover lathe.Approver
	// Store stores the runs; the caller closes it. nil: runs are not stored.
	Store Store
	Sinks []event.Sink
	// Sim configures simulated models, see [SimOptions]; nil: no scripts.
	Sim     *sim.Options
	Version string       // version in traces
	Environ []string     // see [Options].Environ
	Log     *slog.Logger // nil: discards
}

// A Session runs prompts with one model of a configuration and its tools, without a server. The caller must call Close.
type Session struct {
	Engine *engine.Engine
	Loop   *loop.Loop
	Tools  *tool.Set

	cfg     *config.Config
	store   Store
	started startedRuns
	tools   *Tools
	runner  *tool.Runner
	sim     *sim.Options
	audit   *audit.Log
	traces  *observe.Traces
	log     *slog.Logger
}

// OpenSession makes the model of the entry and the tools of the configuration, and starts the MCP servers that they need. options may be
// nil.
func OpenSession(ctx context.Context, cfg *config.Config, entry *config.Model, options *SessionOptions) (_ *Session, err error) {
	var opts SessionOptions
	if options != nil {
		opts = *options
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if err := CheckTemporalTools(cfg); err != nil {
		return nil, err
	}
	s := &Session{cfg: cfg, store: opts.Store, sim: opts.Sim, log: opts.Log}
	defer func() {
		if err != nil {
			err = join(err, s.Close(ctx))
		}
	}()
	model, err := NewModel(cfg, entry, &ModelOptions{Sim: opts.Sim, Log: s.log})
	if err != nil {
		return nil, err
	}
	if s.traces, err = OpenTraces(cfg, &TracesOptions{Environ: opts.Environ, Version: opts.Version, Log: s.log}); err != nil {
		return nil, err
	}
	observers := event.MCPObservers(opts.Sinks)
	if s.traces != nil {
		observers = append(observers, s.traces)
	}
	running := &agents{}
	if s.tools, err = startTools(ctx, cfg, running, nil, opts.Tools, &ServerOptions{Only: ServersOf(cfg, opts.Allow), Environ: opts.Environ, Log: s.log, Observers: observers}); err != nil {
		return nil, err
	}
	s.Tools = s.tools.Set
	if s.audit, err = OpenAudit(cfg, s.log); err != nil {
		return nil, err
	}
	if s.runner, err = NewRunner(cfg, s.Tools, &CallOptions{Approver: opts.Approver, Audit: s.audit, Log: s.log}); err != nil {
		return nil, err
	}
	if s.Loop, err = NewLoop(cfg, entry, model, s.runner); err != nil {
		return nil, err
	}
	if err := s.newEngine(opts.Sinks); err != nil {
		return nil, err
	}
	if err := s.openAgents(running, entry, model, &opts); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Session) newEngine(sinks []event.Sink) (err error) {
	opts := &engine.Options{Sinks: append(slices.Clone(sinks), &s.started), Log: s.log, Store: s.store}
	if s.traces != nil {
		opts.Sinks = append(opts.Sinks, s.traces)
	}
	if s.audit != nil {
		opts.Audit = s.audit.Event
	}
	s.Engine, err = engine.New(opts)
	return err
}

// openAgents sets the engine and the loops of the agents. An agent without a model in its configuration uses the model of the session.
func (s *Session) openAgents(running *agents, entry *config.Model, model lathe.Model, opts *SessionOptions) error {
	if len(s.cfg.Tools.Run) == 0 {
		return nil
	}
	runner, err := NewRunner(s.cfg, s.Tools, &CallOptions{Approver: opts.AgentApprover, Audit: s.audit, Log: s.log})
	if err != nil {
		return err
	}
	named := newLoops(s.cfg, runner, &ModelOptions{Sim: opts.Sim, Log: s.log}, nil)
	return running.open(s.cfg, func() *engine.Engine { return s.Engine }, func(name string) (*loop.Loop, error) {
		if name == "" {
			return NewLoop(s.cfg, entry, model, runner)
		}
		return named(name)
	})
}

// Run runs one prompt to its end. See [engine.Engine.Run].
func (s *Session) Run(ctx context.Context, in *loop.Input) (*event.Result, error) {
	return s.Engine.Run(ctx, s.Loop, in, nil)
}

// UseModel makes further runs use the model of the entry, with the same tools. Agents without a model of their own keep the first one. On
// an error, nothing changes. No run may be in progress.
func (s *Session) UseModel(entry *config.Model) error {
	model, err := NewModel(s.cfg, entry, &ModelOptions{Sim: s.sim, Log: s.log})
	if err != nil {
		return err
	}
	l, err := NewLoop(s.cfg, entry, model, s.runner)
	if err != nil {
		return err
	}
	s.Loop = l
	return nil
}

// Warnings returns one line for each MCP server that is not ready, see [Servers.Warnings].
func (s *Session) Warnings() []string { return s.tools.Servers.Warnings() }

// Compact removes from the store the content of the ended runs of the session that tool_calling.retention does not retain.
func (s *Session) Compact(ctx context.Context) error {
	keep := Retention(s.cfg)
	if s.store == nil || keep == nil {
		return nil
	}
	for _, id := range s.started.all() {
		err := compactRun(context.WithoutCancel(ctx), s.store, id, keep, &Compacted{})
		if err != nil && !errors.Is(err, lathe.ErrConflict) && !errors.Is(err, lathe.ErrNotFound) { // conflict: the run is suspended; not found: it was not stored
			return failed(fmt.Errorf("removing content of the run, as tool_calling.retention says: %w", err))
		}
	}
	return nil
}

// Close stops servers and modules and sends the remaining spans. No run may be in progress.
func (s *Session) Close(ctx context.Context) (err error) {
	if s.traces != nil {
		CloseTraces(ctx, s.traces, s.log)
	}
	if s.audit != nil {
		err = s.audit.Close()
	}
	if s.tools != nil {
		s.tools.Close()
	}
	return err
}

// startedRuns is a sink that collects the ids of the runs of a session, those of agents included.
type startedRuns struct {
	mu  sync.Mutex
	ids []string
}

// Emit implements [event.Sink].
func (s *startedRuns) Emit(_ context.Context, e event.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.ids, e.RunID) {
		s.ids = append(s.ids, e.RunID)
	}
}

func (s *startedRuns) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ids)
}
