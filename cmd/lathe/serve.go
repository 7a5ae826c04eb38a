package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/audit"
	"github.com/lathe-run/lathe/config"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/gateway"
	"github.com/lathe-run/lathe/mcpserve"
	"github.com/lathe-run/lathe/observe"
)

type serveFlags struct {
	addr, metricsAddr, store, log, logFormat, script, replay string
}

func serveCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve OpenAI's API over HTTP, with tools that run here",
		Long: `Serves the configured models on OpenAI's wire, to any of its clients. Tools that are configured here run
inside a request, unseen; calls to tools that the client declares are handed to it. Chat pages are served at
/api/chat, and / shows a page with models, tools, a chat and the last runs.

Without keys in lathe.yaml only this machine can be listened on, and everybody on it may call. Without a model
configured the simulated one answers. Tools that only read are allowed, and the rest waits for an approval;
policy.tools in lathe.yaml decides by name. Runs are kept in memory, unless a store is named.

SIGHUP reads the configuration again: runs that go on keep the old one, and a bad file changes nothing.
SIGTERM lets requests finish.`,
		Example: `  lathe serve
  curl -s http://127.0.0.1:8700/v1/chat/completions -d '{"model":"sim/demo","messages":[{"role":"user","content":"What is 7 + 35?"}]}'
  lathe serve --store sqlite:runs.db --metrics-addr 127.0.0.1:9090`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return f.serve(cmd) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.addr, "addr", "", "`address` to listen on (default serve.addr: 127.0.0.1:8700); port 0 picks a free one")
	fl.StringVar(&f.metricsAddr, "metrics-addr", "", "`address` that serves /metrics, /livez and /readyz alone (default serve.metrics_addr)")
	fl.StringVar(&f.store, "store", "", "keep runs in a `store`: memory, sqlite:PATH, postgres://USER@HOST/DATABASE, or none (default $"+storeVariable+", else serve.store,\nelse memory)")
	fl.StringVar(&f.log, "log", "info", "log to stderr from this `level` up: debug, info, warn, error")
	logFormatFlag(cmd, &f.logFormat)
	group(cmd, "Simulated model:", func(fs *pflag.FlagSet) { scriptFlags(fs, &f.script, &f.replay) })
	return cmd
}

// A daemon is what `lathe serve` runs.
type daemon struct {
	flags   *serveFlags
	cmd     *cobra.Command
	file    string // the configuration file; "": none was found
	addr    string // that the daemon listens on
	hup     chan os.Signal
	log     *slog.Logger
	store   runStore        // nil: nothing is kept
	traces  *observe.Traces // nil: nobody is told
	trail   *audit.Log      // nil: none is kept
	metrics *observe.Metrics
	desk    *approval.Desk // where approvals wait, of runs that are kept
	engine  *engine.Engine
	crew    *engine.Crew
	gateway *gateway.Gateway
	sinks   []lathe.Sink
	tools   *mcpserve.Server // for MCP clients
	// workshop has tools executed elsewhere.
	workshop *workshop
	now      *generation
	keep     atomic.Pointer[config.Keep] // of the configuration in force
	retired  []chan struct{}             // one for each generation that was replaced; closed when it is closed
}

func (f *serveFlags) serve(cmd *cobra.Command) (err error) {
	d := &daemon{flags: f, cmd: cmd, hup: make(chan os.Signal, 1), desk: approval.NewDesk(nil)}
	signal.Notify(d.hup, syscall.SIGHUP) // before anything else: one that arrives during the start must not end the process
	defer signal.Stop(d.hup)
	stderr := gatherLog(cmd.ErrOrStderr())
	defer stderr.flush()
	cmd.SetErr(stderr.direct())
	if d.log, err = buildLog(stderr, f.log, f.logFormat); err != nil {
		return err
	}
	d.log = stderr.logger(d.log)
	defer takeStandardLog(d.log)()
	if d.file, err = findConfig(configPath(cmd)); err != nil {
		return err
	}
	cfg, err := loadConfig(d.file, nil)
	if err != nil {
		return err
	}
	d.warn(cfg)
	if d.store, err = openDaemonStore(f.store, cfg.Serve.Store.Reveal()); err != nil {
		return err
	}
	for _, path := range tightened(d.store) {
		d.log.Warn("others than its owner could open a file of the store: they cannot any more", "file", path)
	}
	if _, ok := d.store.(memoryStore); ok {
		fmt.Fprintln(cmd.ErrOrStderr(), "note: runs are kept in memory and end with this process: --store sqlite:PATH keeps them")
	}
	if d.store != nil {
		defer func() {
			d.storeRest()
			err = errors.Join(err, d.store.Close())
		}()
	}
	if d.trail, err = openAudit(cfg, d.file, d.log); err != nil {
		return err
	}
	if d.trail != nil {
		defer func() {
			d.log.Info("the audit log ends", "head", d.trail.Head().String())
			err = errors.Join(err, d.trail.Close())
		}()
	}
	if err := d.openWorkshop(cfg); err != nil {
		return err
	}
	defer d.workshop.close()
	if d.traces, err = openTraces(cfg, d.log); err != nil {
		return err
	}
	if d.traces != nil {
		defer closeTraces(cmd.Context(), d.traces, d.log)
	}
	if d.now, err = d.generation(cfg); err != nil {
		return err
	}
	defer func() {
		for _, closed := range d.retired {
			<-closed
		}
		d.now.close()
	}()
	if err := d.open(cfg); err != nil {
		return err
	}
	d.keep.Store(&cfg.Keep)
	d.recover()
	tending, stop := context.WithCancel(cmd.Context())
	var tended sync.WaitGroup
	tended.Go(func() { d.gateway.Tend(tending) })
	if d.store != nil {
		tended.Go(func() { retain(tending, d.store, d.keep.Load, d.log) })
		compactor := &compactor{store: d.store, retryWindow: cfg.Serve.RetryWindow, log: d.log} // which changes with a restart only
		tended.Go(func() { compactor.run(tending, d.metrics.AddCompacted) })
	}
	defer func() {
		stop()
		tended.Wait()
	}()
	return d.listen(cfg)
}

// warn logs what is valid in the configuration and probably not meant.
func (d *daemon) warn(cfg *config.Config) {
	for _, w := range cfg.Warnings() {
		d.log.Warn("the configuration may not say what is meant", "place", w.File, "key", w.Key, "problem", w.Message)
	}
}

// storeRest waits for the runs that ended a moment ago to be stored, each of which has a bounded time for that.
func (d *daemon) storeRest() {
	if d.engine != nil {
		_ = d.engine.Settle(context.Background(), "") // that context has no end
	}
}

// open puts the engine and the gateway together.
func (d *daemon) open(cfg *config.Config) error {
	v := currentVersion()
	d.metrics = observe.NewMetrics(&observe.MetricsOptions{Version: v.Version, Revision: v.Revision, Process: true})
	d.metrics.CountWorkers(d.workshop.workers.Count)
	bus := observe.NewBus(&observe.BusOptions{Dropped: d.metrics.AddDropped})
	d.sinks = []lathe.Sink{d.metrics, observe.NewSlog(d.log), bus}
	if d.traces != nil {
		d.sinks = append(d.sinks, d.traces)
	}
	opts := &engine.Options{Sinks: d.sinks, Log: d.log, Lease: cfg.Cluster.Lease}
	out := &gateway.Options{Setup: d.now.setup(), Metrics: d.metrics, NoMetrics: d.metricsAddr(cfg) != "", Log: d.log,
		SumUsage: cfg.Serve.Usage == "sum",
		Limits: gateway.Limits{MaxBody: cfg.Serve.MaxBodyBytes, MaxMessages: cfg.Serve.MaxMessages, MaxParts: cfg.Serve.MaxParts, MaxCalls: cfg.Serve.MaxCalls, MaxText: cfg.Serve.MaxText,
			MaxConcurrent: cfg.Serve.MaxConcurrent, MaxWatchers: cfg.Serve.MaxWatchers, MaxIdle: cfg.Serve.MaxIdle, KeepAlive: cfg.Serve.KeepAlive,
			RetryWindow: windowOf(cfg.Serve.RetryWindow), RepeatWindow: cfg.Serve.RepeatWindow}}
	if d.store != nil {
		opts.Store, out.Index, out.Bus, out.Desk = d.store, d.store, bus, d.desk
		_, opts.StoreAtOnce = d.store.(memoryStore)
	}
	if d.shared() {
		out.Cluster = gateway.Cluster{Key: cfg.Cluster.Key.Secret(), Address: cfg.Serve.Advertise}
	}
	if d.trail != nil {
		opts.Audit, out.Removing = d.trail.Event, d.trail.Remove
	}
	d.engine = engine.New(opts)
	d.crew = engine.NewCrew(d.engine, 0)
	out.Engine, out.Crew = d.engine, d.crew
	var err error
	if s, ok := d.store.(interface{ Check(context.Context) error }); ok {
		out.Ready = s.Check
	}
	out.MCP = http.HandlerFunc(d.serveMCP)
	if d.gateway, err = gateway.New(out); err != nil {
		return &exitError{exitConfig, causeOf(err)}
	}
	d.serveTools(d.now, out.Setup.Keys)
	return nil
}

// windowOf returns the retry window as the gateway takes it: 0 is its default there.
func windowOf(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

func (d *daemon) metricsAddr(cfg *config.Config) string {
	if d.flags.metricsAddr != "" {
		return d.flags.metricsAddr
	}
	return cfg.Serve.MetricsAddr
}

// shared reports whether other processes may carry runs of the store.
func (d *daemon) shared() bool {
	_, ok := d.store.(lathe.SharedStore)
	return ok
}

// recover goes on with the runs whose process ended in the middle of them. Those of a shared store are looked
// for all the time.
func (d *daemon) recover() {
	if d.shared() {
		fmt.Fprintf(d.cmd.ErrOrStderr(), "note: this is %s among the processes that share the store\n", d.engine.Node())
		return
	}
	n, err := d.gateway.Recover(d.cmd.Context())
	if n > 0 {
		fmt.Fprintf(d.cmd.ErrOrStderr(), "note: going on with %d runs that an earlier process left\n", n)
	}
	if err != nil {
		d.log.Error("some runs of an earlier process cannot be gone on with", "error", err)
	}
}

func (d *daemon) listen(cfg *config.Config) error {
	addr := cfg.Serve.Addr
	if d.flags.addr != "" {
		addr = d.flags.addr
	}
	if err := gateway.CheckAddr(addr, len(cfg.Keys)); err != nil {
		return &exitError{exitConfig, causeOf(err)}
	}
	ln, err := listenOn(d.cmd.Context(), addr, "--addr")
	if err != nil {
		return err
	}
	d.addr = ln.Addr().String()
	failed := make(chan error, 2)
	srv := d.gateway.Server()
	srv.Handler = d.workshop.withWorkers(d.handler())
	go func() { failed <- srv.Serve(ln) }()
	store, from := namedStore(d.flags.store, cfg.Serve.Store.Reveal())
	if remove, err := leaveNote(store, from, ln.Addr()); err != nil {
		d.log.Warn("the address could not be left beside the store: lathe runs wants --server", "error", err)
	} else {
		defer remove()
	}
	defer watchTools(d.tools)()
	servers := []*http.Server{srv}
	if m := d.metricsAddr(cfg); m != "" {
		mln, err := listenOn(d.cmd.Context(), m, "--metrics-addr")
		if err != nil {
			_ = srv.Close() // nothing was served yet
			return errors.Join(err, ignoreClosed(<-failed))
		}
		msrv := d.gateway.Server()
		msrv.Handler = d.gateway.Metrics()
		go func() { failed <- msrv.Serve(mln) }()
		servers = append(servers, msrv)
		fmt.Fprintf(d.cmd.ErrOrStderr(), "metrics are served on http://%s/metrics\n", mln.Addr())
	}
	if len(cfg.Models) == 0 {
		fmt.Fprintf(d.cmd.ErrOrStderr(), "note: no model is configured: the simulated %s answers, and others that `lathe sim list` names\n", config.SimModel)
	}
	fmt.Fprintf(d.cmd.ErrOrStderr(), "the page with models, tools, a chat and runs is http://%s/\n", ln.Addr())
	fmt.Fprintf(d.cmd.ErrOrStderr(), "lathe serves on http://%s/v1 (stop with Ctrl-C)\n", ln.Addr())
	settle()
	err = d.wait(failed)
	d.stop(servers)
	for range servers {
		if serr := ignoreClosed(<-failed); err == nil {
			err = serr
		}
	}
	return err
}

// ignoreClosed returns the error of a server that was not told to stop.
func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

func listenOn(ctx context.Context, addr, flag string) (net.Listener, error) {
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, &exitError{exitFailed, fmt.Errorf("cannot listen on %s: %w; choose another address with %s", addr, err, flag)}
	}
	return ln, nil
}

// wait reloads the configuration whenever it is told to, until the daemon is to stop or a server fails.
func (d *daemon) wait(failed chan error) error {
	for {
		select {
		case <-d.cmd.Context().Done():
			return nil
		case err := <-failed:
			failed <- err // counted with the others
			return &exitError{exitFailed, err}
		case <-d.hup:
			if err := d.reload(); err != nil {
				d.log.Error("the configuration was not reloaded, the one before stays in force", "error", err)
			} else {
				d.log.Info("the configuration was reloaded")
			}
		}
	}
}

// reload puts a new configuration in force: all of it, or, with an error, nothing.
func (d *daemon) reload() error {
	file, err := findConfig(d.file) // a file that was removed is an error, not an empty configuration
	if err != nil {
		return err
	}
	cfg, err := loadConfig(file, nil)
	if err != nil {
		return err
	}
	// The listener stays as it is: without keys it must be one that only this machine reaches, whatever serve.addr is now.
	if err := gateway.CheckAddr(d.addr, len(cfg.Keys)); err != nil {
		return causeOf(err)
	}
	d.warn(cfg)
	next, err := d.generation(cfg)
	if err != nil {
		return err
	}
	setup := next.setup()
	if err := d.workshop.workers.Reload(fleetsOf(cfg)); err != nil {
		next.close()
		return causeOf(err)
	}
	former, err := d.gateway.Reload(&setup)
	if err != nil {
		next.close()
		return errors.Join(causeOf(err), d.workshop.workers.Reload(fleetsOf(d.now.cfg)))
	}
	unused := d.serveTools(next, setup.Keys)
	d.keep.Store(&cfg.Keep)
	old, closed := d.now, make(chan struct{})
	d.file, d.now, d.retired = file, next, append(d.retired, closed)
	go func() {
		defer close(closed)
		<-former // runs that began with it may still use its tools
		<-unused // and so may calls of MCP clients
		old.close()
	}()
	return nil
}

// stop lets what is at work finish, within the time for it.
func (d *daemon) stop(servers []*http.Server) {
	d.gateway.Unready()
	cfg := d.now.cfg
	fmt.Fprintln(d.cmd.ErrOrStderr(), "stopping: requests that are at work may finish")
	if cfg.Serve.DrainDelay > 0 {
		time.Sleep(cfg.Serve.DrainDelay)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.cmd.Context()), cfg.Serve.DrainTimeout)
	defer cancel()
	d.gateway.Drain(ctx)
	d.tools.Close() // whose streams would never end by themselves
	for _, s := range servers {
		if err := s.Shutdown(ctx); err != nil {
			_ = s.Close() // what did not finish in time is cut off
		}
	}
	if left := d.crew.Drain(ctx); left > 0 {
		fmt.Fprintf(d.cmd.ErrOrStderr(), "note: %d runs are left for the next process\n", left)
	}
	d.workshop.sendAway() // their results were waited for until now
	fmt.Fprintln(d.cmd.ErrOrStderr(), "stopped")
}
