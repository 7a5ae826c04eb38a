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
func (a *App) newServer(cfg *config.Config) error {
	a.metrics.CountWorkers(a.pools.workers.Count)
	bus := observe.NewBus(&observe.BusOptions{Dropped: a.metrics.AddDropped})
	a.sinks = append([]event.Sink{a.metrics, observe.NewSlog(a.log), bus}, a.opts.Sinks...)
	if a.traces != nil {
		a.sinks = append(a.sinks, a.traces)
	}
	var err error
	if a.webhook, err = newWebhook(cfg, a.log); err != nil {
		return err
	}
	if a.webhook != nil {
		a.sinks = append(a.sinks, a.webhook)
	}
	c := &cfg.Serve
	runs := &engine.Options{Sinks: a.sinks, Log: a.log, Lease: cfg.Cluster.Lease}
	out := &server.Options{Now: a.opts.now, Setup: a.current.setup, Metrics: a.metrics, NoMetrics: a.opts.SeparateMetrics || c.MetricsAddr != "", Log: a.log,
		NoPage: !c.Console.Enabled, Switches: a.switches, SeparateConsole: c.Console.Listen != "", SumUsage: c.Usage == "sum", Limits: server.Limits{MaxBody: c.MaxBodyBytes, MaxInflightBytes: inflightBytes(c.MaxInflightBytes), MaxMessages: c.MaxMessages, MaxParts: c.MaxParts, MaxCalls: c.MaxCalls, MaxTools: c.MaxTools, MaxText: c.MaxText,
			MaxConcurrent: c.MaxConcurrent, MaxWatchers: c.MaxWatchers, MaxIdle: c.MaxIdle, KeepAlive: c.KeepAlive,
			RetryWindow: cmp.Or(c.RetryWindow, -1), RepeatWindow: c.RepeatWindow, SessionLife: c.Console.SessionLife},
		MCP: http.HandlerFunc(a.serveMCP), Workers: a.pools.workers,
		SealKey: c.SealKey.Secret(), PreviousSealKey: c.PreviousSealKey.Secret()}
	if a.opts.Reload != nil {
		out.Reload = a.reloadFor
	}
	if a.store != nil {
		runs.Store, out.Index, out.Bus, out.Approvals = a.store, a.store, bus, a.approvals
		_, runs.FlushBeforeEnd = a.store.(memoryStore)
	}
	if a.meter != nil {
		out.Ledger = a.meter.Reports()
	}
	if a.shared() {
		out.Cluster = server.Cluster{Key: cfg.Cluster.Key.Secret(), Address: c.Advertise}
	}
	if a.audit != nil {
		runs.Audit, out.Removing = a.audit.Event, a.audit.Remove
	}
	if s, ok := a.store.(interface{ Check(context.Context) error }); ok {
		out.Ready = s.Check
	}
	if a.engine, err = engine.New(runs); err != nil {
		return err
	}
	if a.supervisor, err = engine.NewSupervisor(a.engine, &engine.SupervisorOptions{MaxRuns: c.MaxRuns}); err != nil {
		return err
	}
	if err := a.newExecutor(); err != nil {
		return err
	}
	if a.executor != nil { // otherwise out.Executor would be an interface that is not nil
		out.Executor = a.executor
	}
	out.Engine, out.Supervisor = a.engine, a.supervisor
	if a.server, err = server.New(out); err != nil {
		return configError(Cause(err))
	}
	a.offerTools(a.current)
	return nil
}
