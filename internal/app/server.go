package app

import (
	"cmp"
	"context"
	"net/http"

	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/observe"
	"github.com/lathe-run/lathe/server"
)

// newServer makes the sinks, the engine and the HTTP server, and serves the tools over MCP.
func (a *App) newServer(cfg *config.Config) (err error) {
	a.metrics.CountWorkers(a.pools.workers.Count)
	bus := observe.NewBus(&observe.BusOptions{Dropped: a.metrics.AddDropped})
	a.sinks = append([]event.Sink{a.metrics, observe.NewSlog(a.log), bus}, a.opts.Sinks...)
	if a.traces != nil {
		a.sinks = append(a.sinks, a.traces)
	}
	if a.webhook, err = newWebhook(cfg, a.log); err != nil {
		return err
	}
	if a.webhook != nil {
		a.sinks = append(a.sinks, a.webhook)
	}
	runs := &engine.Options{Sinks: a.sinks, Log: a.log, Lease: cfg.Cluster.Lease, Store: a.store}
	_, runs.FlushBeforeEnd = a.store.(memoryStore)
	if a.audit != nil {
		runs.Audit = a.audit.Event
	}
	if a.engine, err = engine.New(runs); err != nil {
		return err
	}
	if a.supervisor, err = engine.NewSupervisor(a.engine, &engine.SupervisorOptions{MaxRuns: cfg.Serve.MaxRuns}); err != nil {
		return err
	}
	if err := a.newExecutor(); err != nil {
		return err
	}
	if a.server, err = server.New(a.current.serverOptions(a, bus)); err != nil {
		return configError(Cause(err))
	}
	a.offerTools(a.current)
	return nil
}

// serverOptions returns the options of the HTTP server of a, for the first revision.
func (r *revision) serverOptions(a *App, bus *observe.Bus) *server.Options {
	c := &r.cfg.Serve
	opts := &server.Options{
		Setup: r.setup, Engine: a.engine, Supervisor: a.supervisor, Switches: a.switches, Workers: a.pools.workers, MCP: http.HandlerFunc(a.serveMCP),
		Metrics: a.metrics, NoMetrics: a.opts.SeparateMetrics || c.MetricsAddr != "", Log: a.log, Now: a.opts.now,
		NoPage: !c.Console.Enabled, SeparateConsole: c.Console.Listen != "", SumUsage: c.Usage == "sum",
		Limits: server.Limits{MaxBody: c.MaxBodyBytes, MaxInflightBytes: inflightBytes(c.MaxInflightBytes), MaxMessages: c.MaxMessages, MaxParts: c.MaxParts,
			MaxCalls: c.MaxCalls, MaxTools: c.MaxTools, MaxText: c.MaxText, MaxConcurrent: c.MaxConcurrent, MaxWatchers: c.MaxWatchers, MaxIdle: c.MaxIdle,
			KeepAlive: c.KeepAlive, RetryWindow: cmp.Or(c.RetryWindow, -1), RepeatWindow: c.RepeatWindow, SessionLife: c.Console.SessionLife},
		SealKey: c.SealKey.Secret(), PreviousSealKey: c.PreviousSealKey.Secret(),
	}
	if a.opts.Reload != nil {
		opts.Reload = a.reloadFor
	}
	if a.store != nil {
		opts.Index, opts.Bus, opts.Approvals = a.store, bus, a.approvals
	}
	if a.meter != nil {
		opts.Ledger = a.meter.Reports()
	}
	if a.shared() {
		opts.Cluster = server.Cluster{Key: r.cfg.Cluster.Key.Secret(), Address: c.Advertise}
	}
	if a.audit != nil {
		opts.Removing = a.audit.Remove
	}
	if s, ok := a.store.(interface{ Check(context.Context) error }); ok {
		opts.Ready = s.Check
	}
	if a.executor != nil { // a nil a.executor would make an interface that is not nil
		opts.Executor = a.executor
	}
	return opts
}
