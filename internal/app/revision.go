package app

import (
	"context"
	"encoding/hex"
	"slices"
	"time"

	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/tool"
)

// A revision has everything that one configuration describes: models, tools, and the servers of the tools. A reload makes a new revision;
// requests and runs that began with the previous one use it until they end.
type revision struct {
	cfg    *config.Config
	runner *tool.Runner
	// unattended has no approver: it executes the calls of agents and of MCP clients.
	unattended *tool.Runner
	models     *servedModels
	tools      *Tools
	catalog    *Catalog
	pools      *workerPools // updates the tools of workers in the set; nil until they are attached
	agents     *agents
	setup      server.Setup
}

// newRevision starts what the configuration describes. If a part fails, it stops the parts that were started and returns the error.
func (a *App) newRevision(cfg *config.Config) (*revision, error) {
	r := &revision{cfg: cfg, agents: &agents{}}
	if err := r.build(a); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// build sets the fields of r one after the other. After an error the caller must close those that are set.
func (r *revision) build(a *App) (err error) {
	cfg := r.cfg
	if a.opts.TemporalTool == nil {
		if err := CheckTemporalTools(cfg); err != nil {
			return err
		}
	}
	if r.catalog, err = OpenCatalog(cfg); err != nil {
		return err
	}
	if err := r.startTools(a); err != nil {
		return err
	}
	set := r.tools.Set
	// A call of an agent cannot wait for a later approval: tools that need an approval are withheld from agents.
	unattended := CallOptions{Audit: a.audit, Log: a.log, disabled: a.switches.policy()}
	if r.unattended, err = NewRunner(cfg, set, &unattended); err != nil {
		return err
	}
	r.runner = r.unattended
	if a.store != nil {
		attended := unattended
		attended.Approver = a.approvals
		if r.runner, err = NewRunner(cfg, set, &attended); err != nil {
			return err
		}
	}
	if err := checkDefinitions(cfg, r.runner); err != nil {
		return err
	}
	for _, problem := range RefusedKeys(cfg, set) {
		a.log.Warn("the tools of a key exceed a limit", "problem", problem)
	}
	simOpts, err := SimOptions(cfg, a.opts.Script, a.opts.Replay)
	if err != nil {
		return err
	}
	simOpts.Now = time.Now
	modelOpts := &ModelOptions{Sim: simOpts, Log: a.log}
	r.models = newServedModels(cfg, r.runner, modelOpts, a.opts.Aliases, a.meter)
	if err := r.models.makeConfigured(); err != nil {
		return err
	}
	if err := warnReduced(a.log, cfg, set); err != nil {
		return err
	}
	if err := r.agents.open(cfg, func() *engine.Engine { return a.engine }, newLoops(cfg, r.unattended, modelOpts, a.meter)); err != nil {
		return err
	}
	if r.setup, err = newSetup(cfg, &a.identities, r.models, servedTools{set, r.runner, a.audit}); err != nil {
		return err
	}
	// newSetup returns what the configuration alone determines. The rest needs the switches of the process and the other fields of r.
	r.setup.Policy = policy.All(r.setup.Policy, *unattended.disabled)
	r.setup.State = &served{app: a, rev: r, policy: r.setup.Policy}
	r.setup.Replay = r.replayer(a.log, a.meter)
	if cfg.Serve.Evals != "" {
		r.setup.Evals = evalFolder{besideConfig(cfg, cfg.Serve.Evals)}
	}
	return nil
}

// startTools starts the tools with their servers and modules, attaches the tools of workers, and logs what is probably not intended.
func (r *revision) startTools(a *App) (err error) {
	ctx := context.Background() // requests that began before a shutdown still use the servers and modules
	opts := &ServerOptions{Environ: a.opts.Environ, Log: a.log, Observers: a.observers()}
	if r.tools, err = startTools(ctx, r.cfg, r.agents, a.opts.TemporalTool, a.opts.Tools, opts); err != nil {
		return err
	}
	for _, warning := range r.tools.Servers.Warnings() {
		a.log.Warn(warning)
	}
	set := r.tools.Set
	if err := a.pools.tools.Attach(ctx, set); err != nil {
		return err
	}
	for _, name := range UnknownSearchTools(r.cfg, set) {
		a.log.Warn("tools.search.always names a tool that does not exist now", "tool", name)
	}
	if decision, withheld := SearchWithheld(r.cfg); withheld {
		a.log.Warn("policy does not allow tool_search, so that runs send the definitions of all tools; policy.tools.tool_search: allow lets them search", "decision", decision.String())
	}
	r.pools = a.pools
	return nil
}

// close stops the servers and modules of the revision. No request and no run may use it.
func (r *revision) close() {
	if r.pools != nil {
		r.pools.tools.Detach(r.tools.Set)
	}
	if r.catalog != nil {
		r.catalog.Close()
	}
	if r.tools != nil {
		r.tools.Close()
	}
}

// keysOf returns the keys of clients: those of the configuration, and those of its keys file.
func keysOf(cfg *config.Config) []server.Key {
	budgets := budgetsOf(cfg)
	profiles := map[string]server.Key{}
	var keys []server.Key
	for name, k := range text.ByName(cfg.Keys) {
		b := budgets[name]
		models, tools := cfg.Grants(name)
		key := server.Key{
			Name: name, Secret: k.Key.Secret(),
			Admin: k.Admin, Metrics: k.Metrics,
			Models: models, Tools: tools,
			VendorObjects: k.VendorObjects, VendorTools: k.VendorTools,
			// An empty list stays empty: nil would let the key decide about its own runs.
			Approve: presentKeys(cfg, append([]string{}, k.Approve...), server.ApproveOwn, server.ApproveOthers),
			Group:   b.Group, Budget: &b.Budget, GroupBudget: &b.GroupBudget,
			Limits: k.Limits, RequestsPerMinute: k.RequestsPerMinute, Concurrency: k.Concurrency}
		_, _ = hex.Decode(key.Hash[:], []byte(k.SHA256)) // the configuration has checked the text; without one the hash is zero
		profiles[name] = key
		noKey := k.Key.IsZero() && k.SHA256 == "" && !cfg.Serve.OIDC.IsSet()
		if noKey && cfg.FileKeys != nil {
			continue // the entry is only a profile for the keys file; without a keys file the server refuses such an entry
		}
		keys = append(keys, key)
	}
	for name, f := range text.ByName(cfg.FileKeys) {
		key := profiles[f.Profile]
		key.Name, key.Secret, key.Hash = name, secret.Secret{}, f.SHA256
		keys = append(keys, key)
	}
	return keys
}

// presentKeys removes names from a list that are neither keys nor one of the words, if there is a keys file: [config.Config.Warnings]
// reports them. Without a keys file such a configuration is refused. A nil list remains nil and an empty one remains empty, since they differ
// in meaning.
func presentKeys(cfg *config.Config, list []string, words ...string) []string {
	if cfg.FileKeys == nil {
		return list
	}
	return slices.DeleteFunc(list, func(name string) bool { return !slices.Contains(words, name) && !cfg.HasKey(name) })
}

// newSetup returns the part of the configuration that the server replaces at each reload. It checks keys, hosts, origins and worker pools.
func newSetup(cfg *config.Config, identities *identities, models server.Models, tools server.Tools) (server.Setup, error) {
	pol, err := NewPolicy(cfg)
	if err != nil {
		return server.Setup{}, err
	}
	s := server.Setup{Models: models, Tools: tools, Policy: pol, Hosts: cfg.Serve.Hosts, Origins: cfg.Serve.Origins, PublicURL: cfg.Serve.PublicURL,
		WaitingText: cfg.Approval.WaitingText, Hold: cfg.Approval.Hold, Keys: keysOf(cfg), RequireKey: cfg.RequiresKey()}
	for _, w := range cfg.Warnings() {
		s.Warnings = append(s.Warnings, w.String())
	}
	if cfg.Serve.OIDC.IsSet() {
		if s.Identity, err = identities.of(cfg); err != nil {
			return s, configError(err)
		}
	}
	if err = s.Check(); err == nil {
		err = server.CheckWorkerPools(poolsOf(cfg))
	}
	if err != nil {
		return s, configError(Cause(err))
	}
	return s, nil
}
