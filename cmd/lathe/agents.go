package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/audit"
	"github.com/lathe-run/lathe/config"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/sim"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/agenttool"
)

// agents runs the agents of tools.run. Its tools exist before what runs them does: open completes it.
type agents struct {
	engine func() *engine.Engine // which may not exist before the first call
	loop   func(model string) (*loop.Loop, error)

	mu    sync.Mutex
	loops map[string]*loop.Loop // by model entry
}

// errNoAgents is the failure of an agent's call in a command that has no model.
var errNoAgents = errors.New("agents run within lathe run and lathe serve")

// open sets what runs the agents, and makes their loops: a model that cannot be made is an error now, not at a call.
func (a *agents) open(cfg *config.Config, e func() *engine.Engine, newLoop func(model string) (*loop.Loop, error)) error {
	a.engine, a.loop, a.loops = e, newLoop, map[string]*loop.Loop{}
	for _, name := range slices.Sorted(maps.Keys(cfg.Tools.Run)) {
		if _, err := a.loopOf(cfg.Tools.Run[name].Model); err != nil {
			return fmt.Errorf("tools.run.%s: %w", name, err)
		}
	}
	return nil
}

func (a *agents) loopOf(model string) (*loop.Loop, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l := a.loops[model]; l != nil {
		return l, nil
	}
	l, err := a.loop(model)
	if err == nil {
		a.loops[model] = l
	}
	return l, err
}

// tools makes the agents that the configuration describes. Without a they are listed, and a call of one fails.
func (a *agents) tools(cfg *config.Config) ([]lathe.Tool, error) {
	var out []lathe.Tool
	for _, name := range slices.Sorted(maps.Keys(cfg.Tools.Run)) {
		c := cfg.Tools.Run[name]
		start := func(ctx context.Context, in *loop.Input) (*lathe.Result, error) {
			if a == nil || a.engine == nil {
				return nil, errNoAgents
			}
			l, err := a.loopOf(c.Model)
			if err != nil {
				return nil, err
			}
			e := a.engine()
			in.Run.RunID = e.NewRunID() // the event of the call names it
			return e.Run(ctx, l, in)
		}
		t, err := agenttool.New(name, c.Description, start, &agenttool.Options{Instructions: c.Instructions, Tools: c.Tools, Limits: c.Limits,
			Effect: c.Effect, Timeout: c.Timeout, Target: c.Model})
		if err != nil {
			return nil, &exitError{exitConfig, fmt.Errorf("tools.run.%s: %w", name, causeOf(err))}
		}
		out = append(out, t)
	}
	return out, nil
}

// checkAgents reports tools of agents that the configuration does not have. Names of MCP servers, modules and workers are
// known only when these have started.
func checkAgents(cfg *config.Config, known []string) (problems []config.Problem) {
	if cfg.Tools.WASM.Dir != "" || len(cfg.Workers) > 0 {
		return nil
	}
	known = slices.Concat(known, slices.Collect(maps.Keys(cfg.Tools.Run)))
	for _, name := range slices.Sorted(maps.Keys(cfg.Tools.Run)) {
		for _, t := range cfg.Tools.Run[name].Tools {
			if server, _, of := strings.Cut(t, "__"); t == agenttool.AllTools || slices.Contains(known, t) || of && cfg.Tools.MCP[server] != nil {
				continue
			}
			problems = append(problems, config.Problem{Key: "tools.run." + name + ".tools",
				Message: fmt.Sprintf("no tool %q: %s", t, didYouMean(t, known, "`lathe tools list` names them"))})
		}
	}
	return problems
}

// openAgents completes the agents of one run. An agent without a model of its own has that of the run. Its calls are
// approved by the person at the terminal; where there is none, calls that need an approval are not offered to it.
func (f *runFlags) openAgents(cfg *config.Config, path string, running *agents, e *engine.Engine, entry *config.Model, model lathe.Model,
	set *tool.Set, person lathe.Approver, trail *audit.Log, log *slog.Logger) error {
	if len(cfg.Tools.Run) == 0 {
		return nil
	}
	simOpts, err := buildSim(cfg, path, f.script, f.replay)
	if err != nil {
		return err
	}
	if _, waits := person.(parking); waits {
		person = nil // a call of an agent cannot wait for a later command
	}
	runner := buildRunner(cfg, set, person, trail, log)
	named := newLoopOf(cfg, runner, simOpts, log)
	return running.open(cfg, func() *engine.Engine { return e }, func(name string) (*loop.Loop, error) {
		if name == "" {
			return newLoop(cfg, entry, model, runner)
		}
		return named(name)
	})
}

// newLoopOf returns what makes a loop of a model entry over the runner.
func newLoopOf(cfg *config.Config, runner *tool.Runner, simOpts *sim.Options, log *slog.Logger) func(model string) (*loop.Loop, error) {
	return func(model string) (*loop.Loop, error) {
		entry, err := cfg.Model(model)
		if err != nil {
			return nil, &exitError{exitConfig, causeOf(err)}
		}
		chat, err := buildModel(entry, simOpts, log)
		if err == nil {
			chat, err = buildDialect(chat, entry, cfg)
		}
		if err != nil {
			return nil, err
		}
		return newLoop(cfg, entry, chat, runner)
	}
}

// newLoop makes the loop of a model entry.
func newLoop(cfg *config.Config, entry *config.Model, model lathe.Model, runner *tool.Runner) (*loop.Loop, error) {
	l, err := loop.New(model, runner,
		&loop.Options{Settings: cfg.SettingsFor(entry), Limits: cfg.Limits(), Policy: buildPolicy(cfg), Overrides: overrides(entry), Retention: retentionOf(cfg)})
	if err != nil {
		return nil, &exitError{exitConfig, causeOf(err)}
	}
	return l, nil
}
