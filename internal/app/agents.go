package app

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/budget"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/agenttool"
)

// agents runs the agents of tools.run. Their tools are added to the set before the engine and the loops exist; open sets the engine and the
// loops.
type agents struct {
	engine func() *engine.Engine // may return nil before the first call
	loop   func(model string) (*loop.Loop, error)

	mu    sync.Mutex
	loops map[string]*loop.Loop // by name of the model entry
}

// errNoAgents is the error of a call of an agent in a program that has no engine.
var errNoAgents = errors.New("agents run within lathe run and lathe serve")

// open sets the engine and the loops of the agents. It makes the loops of all models, so that an invalid model is an error at the start and
// not at a call.
func (a *agents) open(cfg *config.Config, e func() *engine.Engine, newLoop func(model string) (*loop.Loop, error)) error {
	a.engine, a.loop, a.loops = e, newLoop, map[string]*loop.Loop{}
	for name, agent := range text.ByName(cfg.Tools.Run) {
		if _, err := a.loopOf(agent.Model); err != nil {
			return at("tools.run."+name, err)
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

// tools returns the agents of the configuration as tools. If a is nil, their calls fail.
func (a *agents) tools(cfg *config.Config) ([]lathe.Tool, error) {
	var out []lathe.Tool
	for name, c := range text.ByName(cfg.Tools.Run) {
		start := func(ctx context.Context, in *loop.Input) (*event.Result, error) {
			if a == nil || a.engine == nil {
				return nil, errNoAgents
			}
			l, err := a.loopOf(c.Model)
			if err != nil {
				return nil, err
			}
			e := a.engine()
			in.Run.RunID = e.NewRunID() // the event of the call contains the run id
			return e.Run(ctx, l, in, nil)
		}
		t, err := agenttool.New(name, c.Description, start, &agenttool.Options{Instructions: c.Instructions, Tools: c.Tools, Limits: c.Limits,
			Effect: c.Effect, Timeout: c.Timeout, Target: c.Model})
		if err != nil {
			return nil, invalidConfig("tools.run.%s: %w", name, Cause(err))
		}
		out = append(out, t)
	}
	return out, nil
}

// checkAgents reports tools in tools.run that the configuration does not have. It skips names of tools of MCP servers, and everything if
// there are modules or workers: their tools are known only after the start.
func checkAgents(cfg *config.Config, known []string) (problems []config.Problem) {
	if cfg.Tools.WASM.Dir != "" || len(cfg.Workers) > 0 {
		return nil
	}
	known = slices.Concat(known, slices.Collect(maps.Keys(cfg.Tools.Run)))
	for name, agent := range text.ByName(cfg.Tools.Run) {
		for _, t := range agent.Tools {
			if _, _, of := cfg.Tools.MCPTool(t); of || t == agenttool.AllTools || slices.Contains(known, t) {
				continue
			}
			problems = append(problems, problem("tools.run."+name+".tools", "no tool %q: %s", t, text.Suggest(t, known, "`lathe tools list` names them")))
		}
	}
	return problems
}

// newLoops returns a function that makes the loop of a model entry with the runner. meter is as in newLoop.
func newLoops(cfg *config.Config, runner *tool.Runner, opts *ModelOptions, meter *budget.Meter) func(model string) (*loop.Loop, error) {
	return func(model string) (*loop.Loop, error) {
		entry, err := cfg.Model(model)
		if err != nil {
			return nil, configError(Cause(err))
		}
		chat, err := NewModel(cfg, entry, opts)
		if err != nil {
			return nil, err
		}
		return newLoop(cfg, entry, chat, runner, meter)
	}
}
