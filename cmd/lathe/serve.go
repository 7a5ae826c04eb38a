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
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lathe-run/lathe/app"
	"github.com/lathe-run/lathe/config"
	"github.com/lathe-run/lathe/server"
)

type serveFlags struct {
	addr, metricsAddr, store, log, logFormat, script, replay string
	// upstream holds the flags of the model that needs no lathe.yaml.
	upstream runFlags
	ready    bool // ask a daemon, and start none
}

func serveCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve OpenAI's API over HTTP, with tools that run here",
		Long: `Serves the configured models on OpenAI's wire, to any of its clients. Tools that are configured here run
inside a request, unseen; calls to tools that the client declares are handed to it. Chat pages are served at
/api/chat, and / shows a page with models, tools, a chat and the last runs.

Without keys in lathe.yaml only this machine can be listened on, and every user of it may call. Without a model
configured the simulated one answers. Tools that only read are allowed, and the rest waits for an approval;
policy.tools in lathe.yaml decides by name. Runs are kept in memory, unless a store is named.

SIGHUP, or POST /api/reload with an admin key, reads the configuration again: runs in progress keep the old one, and
a bad file changes nothing.
SIGTERM lets requests finish.`,
		Example: `  lathe serve
  curl -s http://127.0.0.1:8700/v1/chat/completions -d '{"model":"sim/demo","messages":[{"role":"user","content":"What is 7 + 35?"}]}'
  lathe serve --base-url http://127.0.0.1:11434/v1 --model qwen3
  lathe serve --store sqlite:runs.db --metrics-addr 127.0.0.1:9090
  lathe serve --ready --addr 127.0.0.1:8700`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.ready {
				return f.askReady(cmd)
			}
			return f.serve(cmd)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.addr, "addr", "", "`address` to listen on (default serve.addr: 127.0.0.1:8700); port 0 picks a free one")
	fl.StringVar(&f.metricsAddr, "metrics-addr", "", "`address` that serves /metrics, /livez and /readyz alone (default serve.metrics_addr)")
	fl.BoolVar(&f.ready, "ready", false, "start nothing: ask the daemon at --addr for /readyz, print ready, and exit with 1 if it is not")
	f.upstream.upstreamFlags(cmd)
	fl.StringVar(&f.store, "store", "", "keep runs in a `store`: memory, sqlite:PATH, postgres://USER@HOST/DATABASE, or none (default $"+storeVariable+", else serve.store,\nelse memory)")
	fl.StringVar(&f.log, "log", "info", "log to stderr from this `level` up: debug, info, warn, error")
	logFormatFlag(cmd, &f.logFormat)
	group(cmd, "Simulated model:", func(fs *pflag.FlagSet) { scriptFlags(fs, &f.script, &f.replay) })
	return cmd
}

// A daemon is what `lathe serve` runs.
type daemon struct {
	flags *serveFlags
	cmd   *cobra.Command
	file  string // the configuration file; "": none was found
	addr  string // that the daemon listens on
	// terminal reports whether a person reads the standard error.
	terminal bool
	hup      chan os.Signal
	log      *slog.Logger
	app      *app.App
	manager  *notifier // the service manager that started the daemon

	reloading sync.Mutex // held while the configuration is read again
}

func (f *serveFlags) serve(cmd *cobra.Command) (err error) {
	d := &daemon{flags: f, cmd: cmd, hup: make(chan os.Signal, 1)}
	signal.Notify(d.hup, syscall.SIGHUP) // before anything else: one that arrives during the start must not end the process
	defer signal.Stop(d.hup)
	d.terminal = isTerminal(cmd.ErrOrStderr())
	stderr := gatherLog(cmd.ErrOrStderr())
	defer stderr.flush()
	cmd.SetErr(stderr.direct())
	if d.log, err = buildLog(stderr, f.log, f.logFormat); err != nil {
		return err
	}
	d.log = stderr.logger(d.log)
	if d.manager, err = newNotifier(); err != nil {
		return err
	}
	defer takeStandardLog(d.log)()
	if d.file, err = findConfig(configPath(cmd)); err != nil {
		return err
	}
	cfg, err := d.loadConfig(d.file)
	if err != nil {
		return err
	}
	v := currentVersion()
	opts := &app.Options{Log: d.log, Version: v.Version, Revision: v.Revision, SeparateMetrics: f.metricsAddr != "", Aliases: f.aliases(), Script: f.script, Replay: f.replay,
		Reload: func(context.Context) error { return d.reload("POST /api/reload") }}
	closeStore, err := d.openStore(cfg, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	starting := startingServers(cmd.ErrOrStderr(), cfg, nil, false)
	d.app, err = app.New(cfg, opts)
	starting.Stop()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.app.Close()) }()
	if node := d.app.Node(); node != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "note: this is %s among the processes that share the store\n", node)
	}
	if n := d.app.Recovered(); n > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "note: resuming %d runs that an earlier process left\n", n)
	}
	return d.listen(cfg)
}

// openStore opens the store that --store or the environment names; serve.store is opened with the application.
func (d *daemon) openStore(cfg *config.Config, opts *app.Options) (closeStore func() error, err error) {
	closeStore = func() error { return nil }
	name, from := namedStore(d.flags.store, cfg.Serve.Store.Reveal())
	switch {
	case name == "none":
		opts.NoStore = true
	case name == "", name == "memory":
		fmt.Fprintln(d.cmd.ErrOrStderr(), "note: runs are kept in memory and end with this process: --store sqlite:PATH keeps them")
		opts.Store = app.NewMemoryStore()
	case from != "serve.store":
		if opts.Store, err = app.OpenStore(name, &app.StoreOptions{From: from}); err == nil {
			closeStore = opts.Store.Close
		}
	}
	return closeStore, err
}

func (d *daemon) metricsAddr(cfg *config.Config) string {
	if d.flags.metricsAddr != "" {
		return d.flags.metricsAddr
	}
	return cfg.Serve.MetricsAddr
}

func (d *daemon) listen(cfg *config.Config) error {
	addr := cfg.Serve.Addr
	if d.flags.addr != "" {
		addr = d.flags.addr
	}
	if err := server.CheckAddr(addr, len(cfg.Keys)); err != nil {
		return &exitError{exitConfig, app.Cause(err)}
	}
	ln, err := listenOn(d.cmd.Context(), addr, "--addr")
	if err != nil {
		return err
	}
	d.addr = ln.Addr().String()
	scheme := "http"
	if d.app.TLS() {
		scheme = "https"
	}
	failed := make(chan error, 3)
	srv := d.app.HTTPServer(d.app.Handler())
	go func() { failed <- srv.Serve(d.app.Listener(ln)) }()
	store, from := namedStore(d.flags.store, cfg.Serve.Store.Reveal())
	if remove, err := d.leaveNote(store, from, ln.Addr()); err != nil {
		d.log.Warn("the address could not be left beside the store: lathe runs wants --server", "error", err)
	} else {
		defer remove()
	}
	servers := []*http.Server{srv}
	if m := d.metricsAddr(cfg); m != "" {
		mln, err := listenOn(d.cmd.Context(), m, "--metrics-addr")
		if err != nil {
			_ = srv.Close() // nothing was served yet
			return errors.Join(err, ignoreClosed(<-failed))
		}
		msrv := d.app.HTTPServer(d.app.MetricsHandler())
		go func() { failed <- msrv.Serve(mln) }()
		servers = append(servers, msrv)
		fmt.Fprintf(d.cmd.ErrOrStderr(), "metrics are served on http://%s/metrics\n", mln.Addr())
	}
	page := ln.Addr()
	if own := cfg.Serve.Console.Listen; own != "" {
		cln, err := d.listenConsole(own, len(cfg.Keys))
		if err != nil {
			_ = srv.Close() // nothing was served yet
			return errors.Join(err, ignoreClosed(<-failed))
		}
		csrv := d.app.HTTPServer(d.app.ConsoleHandler())
		go func() { failed <- csrv.Serve(d.app.Listener(cln)) }()
		servers, page = append(servers, csrv), cln.Addr()
	}
	if len(cfg.Models) == 0 {
		fmt.Fprintf(d.cmd.ErrOrStderr(), "note: no model is configured: the simulated %s answers, and others that `lathe sim list` names\n", config.SimModel)
	}
	if cfg.Serve.Console.Enabled {
		d.announceConsole(cfg, scheme+"://"+page.String())
	}
	fmt.Fprintf(d.cmd.ErrOrStderr(), "base URLs: OpenAI %[1]s://%[2]s/v1, Anthropic %[1]s://%[2]s, Gemini %[1]s://%[2]s; `lathe connect` sets up agents\n", scheme, ln.Addr())
	fmt.Fprintf(d.cmd.ErrOrStderr(), "lathe serves on %s://%s/v1 (stop with Ctrl-C)\n", scheme, ln.Addr())
	releasePages()
	d.notify("READY=1")
	unwatch := d.manager.watch(context.WithoutCancel(d.cmd.Context()), srv.Handler, func(err error) {
		d.log.Error("the watchdog of the service manager got no message", "error", err)
	})
	err = d.wait(failed)
	d.notify("STOPPING=1")
	d.stop(servers)
	unwatch()
	for range servers {
		if serr := ignoreClosed(<-failed); err == nil {
			err = serr
		}
	}
	return err
}

// ignoreClosed returns the error of a server, or nil if it was shut down.
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

// wait reloads the configuration at each reload signal, until the daemon is to stop or a server fails.
func (d *daemon) wait(failed chan error) error {
	for {
		select {
		case <-d.cmd.Context().Done():
			return nil
		case err := <-failed:
			failed <- err // counted with the others
			return &exitError{exitFailed, err}
		case <-d.hup:
			_ = d.reload("SIGHUP") // which has logged the error
		}
	}
}

// notify sends a state to the service manager.
func (d *daemon) notify(state string) {
	if err := d.manager.send(state); err != nil {
		d.log.Error("the service manager was not notified", "state", state, "error", err)
	}
}

// reload puts a new configuration in force: all of it, or, with an error, nothing. It logs the outcome and by, the
// source of the request. Concurrent calls run one after the other.
func (d *daemon) reload(by string) error {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	d.notify("RELOADING=1")
	defer d.notify("READY=1")
	if err := d.readAgain(); err != nil {
		d.log.Error("the configuration was not reloaded, the one before stays in force", "error", err, "by", by)
		return err
	}
	d.log.Info("the configuration was reloaded", "by", by)
	return nil
}

func (d *daemon) readAgain() error {
	file, err := findConfig(d.file) // a file that was removed is an error, not an empty configuration
	if err != nil {
		return err
	}
	cfg, err := d.loadConfig(file)
	if err != nil {
		return err
	}
	// The listener stays as it is: without keys it must be one that only this machine reaches, whatever serve.addr is now.
	if err := server.CheckAddr(d.addr, len(cfg.Keys)); err != nil {
		return app.Cause(err)
	}
	if err := d.app.Reload(cfg); err != nil {
		return app.Cause(err)
	}
	d.file = file
	return nil
}

// stop lets requests and runs finish, within serve.drain_timeout.
func (d *daemon) stop(servers []*http.Server) {
	fmt.Fprintln(d.cmd.ErrOrStderr(), "stopping: requests that are at work may finish")
	if left := d.app.Shutdown(context.WithoutCancel(d.cmd.Context()), servers...); left > 0 {
		fmt.Fprintf(d.cmd.ErrOrStderr(), "note: %d runs are left for the next process\n", left)
	}
	fmt.Fprintln(d.cmd.ErrOrStderr(), "stopped")
}
