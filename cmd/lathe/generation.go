package main

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/audit"
	"github.com/lathe-run/lathe/config"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/gateway"
	"github.com/lathe-run/lathe/preset"
	"github.com/lathe-run/lathe/sim"
	"github.com/lathe-run/lathe/tool"
)

// A generation is everything that one reading of the configuration made: models, tools, and the
// servers that the tools need.
type generation struct {
	cfg     *config.Config
	set     *tool.Set
	runner  *tool.Runner
	trail   *audit.Log // nil: none is kept
	models  *servedModels
	running *servers
	modules *modules
	catalog *catalog // what MCP clients find besides tools
	// workshop, when set, keeps the tools of workers in the set.
	workshop *workshop
	agents   *agents
}

// generation starts what the configuration describes. If a part cannot be built, it stops the parts that were
// started and returns the error.
func (d *daemon) generation(cfg *config.Config) (*generation, error) {
	g := &generation{cfg: cfg, trail: d.trail, agents: &agents{}}
	if err := g.build(d); err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

// build sets the fields of g one by one. After an error those that are set must be closed.
func (g *generation) build(d *daemon) (err error) {
	cfg, path := g.cfg, d.file
	if g.set, err = buildToolsWith(cfg, g.agents); err != nil {
		return err
	}
	if g.catalog, err = openCatalog(cfg, path); err != nil {
		return err
	}
	ctx := context.WithoutCancel(d.cmd.Context()) // requests at work still use them while the daemon stops
	if g.running, err = startServers(ctx, cfg, path, g.set, d.log, nil); err != nil {
		return err
	}
	if g.modules, err = startModules(ctx, cfg, path, g.set, d.log); err != nil {
		return err
	}
	for _, text := range g.running.complaints() {
		d.log.Warn(text)
	}
	g.workshop = d.workshop
	if err := d.workshop.tools.Attach(ctx, g.set); err != nil {
		return err
	}
	var approver lathe.Approver
	if d.store != nil {
		approver = d.desk
	}
	g.runner = buildRunner(cfg, g.set, approver, d.trail, d.log)
	simOpts, err := buildSim(cfg, path, d.flags.script, d.flags.replay)
	if err != nil {
		return err
	}
	simOpts.Now = time.Now
	g.models = newServedModels(cfg, g.runner, simOpts, d.log)
	if err := g.models.makeConfigured(); err != nil {
		return err
	}
	// An agent's call cannot wait for an approval that is given later: its runner has no approver, and so what needs one
	// is not offered to it.
	runner := buildRunner(cfg, g.set, nil, d.trail, d.log)
	if err := g.agents.open(cfg, func() *engine.Engine { return d.engine }, newLoopOf(cfg, runner, simOpts, d.log)); err != nil {
		return err
	}
	setup := g.setup()
	return checkSetup(cfg, &setup)
}

// checkSetup checks what the gateway takes from a configuration: keys, hosts, origins, worker pools.
func checkSetup(cfg *config.Config, setup *gateway.Setup) error {
	err := setup.Check()
	if err == nil {
		err = gateway.CheckFleets(fleetsOf(cfg))
	}
	if err != nil {
		return &exitError{exitConfig, causeOf(err)}
	}
	return nil
}

// close ends what the generation runs. Nothing may use it any more.
func (g *generation) close() {
	if g.workshop != nil {
		g.workshop.tools.Detach(g.set)
	}
	if g.catalog != nil {
		g.catalog.close()
	}
	if g.modules != nil {
		g.modules.close()
	}
	if g.running != nil {
		g.running.close()
	}
}

func (g *generation) setup() gateway.Setup {
	s := gateway.Setup{Models: g.models, Tools: servedTools{g.set, g.runner, g.trail}, Policy: buildPolicy(g.cfg), Hosts: g.cfg.Serve.Hosts, Origins: g.cfg.Serve.Origins,
		WaitingText: g.cfg.Approval.WaitingText, Hold: g.cfg.Approval.Hold}
	for _, name := range slices.Sorted(maps.Keys(g.cfg.Keys)) {
		k := g.cfg.Keys[name]
		s.Keys = append(s.Keys, gateway.Key{Name: name, Secret: k.Key.Secret(), Models: k.Models, Tools: k.Tools, Approve: append([]string{}, k.Approve...), Limits: k.Limits,
			RequestsPerMinute: k.RequestsPerMinute, Concurrency: k.Concurrency})
	}
	return s
}

// servedModels are the configured models, or the simulated ones where there are none. A model is made
// once.
type servedModels struct {
	cfg     *config.Config
	runner  *tool.Runner
	simOpts *sim.Options
	log     *slog.Logger

	mu   sync.Mutex
	made map[string]*gateway.Model
}

var _ gateway.Models = (*servedModels)(nil)

func newServedModels(cfg *config.Config, runner *tool.Runner, simOpts *sim.Options, log *slog.Logger) *servedModels {
	return &servedModels{cfg: cfg, runner: runner, simOpts: simOpts, log: log, made: map[string]*gateway.Model{}}
}

// makeConfigured makes all configured models, so that an invalid one fails the start or the reload and not the
// first request. The simulated models of an empty configuration are made on demand.
func (m *servedModels) makeConfigured() error {
	for _, name := range slices.Sorted(maps.Keys(m.cfg.Models)) {
		if _, err := m.Model(name); err != nil {
			return err
		}
	}
	return nil
}

// Names implements [gateway.Models].
func (m *servedModels) Names() []string {
	if len(m.cfg.Models) > 0 {
		return slices.Sorted(maps.Keys(m.cfg.Models))
	}
	return slices.Sorted(slices.Values(sim.New(m.simOpts).Names()))
}

// maxMade bounds the simulated models that are made: their names have no end.
const maxMade = 256

// Model implements [gateway.Models].
func (m *servedModels) Model(name string) (*gateway.Model, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if found := m.made[name]; found != nil {
		return found, nil
	}
	entry, err := m.cfg.Model(name)
	if err == nil && name != "" && len(m.cfg.Models) > 0 && m.cfg.Models[name] == nil {
		err = errors.New("the simulated models are served where none is configured")
	}
	if err != nil {
		return nil, &lathe.Error{Code: lathe.CodeNotFound, Op: "serve: find the model", Err: err}
	}
	chat, err := buildModel(entry, m.simOpts, m.log)
	if err == nil {
		chat, err = buildDialect(chat, entry, m.cfg)
	}
	if err != nil {
		if isSimulated(name) && len(m.cfg.Models) == 0 {
			return nil, &lathe.Error{Code: lathe.CodeNotFound, Op: "serve: find the model", Err: err}
		}
		return nil, err
	}
	l, err := newLoop(m.cfg, entry, chat, m.runner)
	if err != nil {
		return nil, err
	}
	made := &gateway.Model{Loop: l, Settings: m.cfg.SettingsFor(entry), Limits: m.cfg.Limits(), Pass: slices.Concat(preset.Members(entry.Profile), entry.Pass)}
	if len(m.made) < maxMade {
		m.made[name] = made
	}
	return made, nil
}

// servedTools are the tools of a generation, behind its runner.
type servedTools struct {
	set    *tool.Set
	runner *tool.Runner
	trail  *audit.Log // nil: none is kept
}

var _ gateway.Tools = servedTools{}

// Specs implements [gateway.Tools].
func (t servedTools) Specs() []*lathe.ToolSpec { return t.set.Specs() }

// Advertised implements [gateway.Tools].
func (t servedTools) Advertised(run *lathe.RunInfo, allow []string) []*lathe.ToolSpec {
	work := t.runner.Begin(run, &tool.RunOptions{Allow: allow})
	defer work.Close()
	return work.Specs()
}

// Execute implements [gateway.Tools].
func (t servedTools) Execute(ctx context.Context, run *lathe.RunInfo, allow []string, call lathe.ToolCall, emit func(lathe.EventData)) (lathe.ToolResult, error) {
	work := t.runner.Begin(run, &tool.RunOptions{Allow: allow})
	msg := lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{call}}
	work.Adopt(&msg)
	if t.trail != nil {
		emit = audited(ctx, t.trail, run, emit)
	}
	out := work.Execute(ctx, 1, []tool.Call{{ToolCall: msg.Calls()[0]}}, emit)
	for _, m := range out.Messages {
		for _, p := range m.Parts {
			if r, ok := p.(lathe.ToolResult); ok {
				return r, nil
			}
		}
	}
	return lathe.ToolResult{}, &lathe.Error{Code: lathe.CodeApprovalDenied, Op: "serve: call a tool", Err: lathe.ErrPending}
}
