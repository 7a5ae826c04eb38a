// Package daemon runs `lathe serve` after its flags have been parsed: it opens the store, starts the application, listens, reloads the
// configuration, notifies the service manager and stops. Its errors are those of package app: their code determines the exit code.
package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/config"
)

// StoreVariable is the environment variable that names the store if the flag --store is absent.
const StoreVariable = "LATHE_STORE"

// NamedStore returns the name of the store and its source: the flag --store, else StoreVariable, else serve.store.
func NamedStore(flag, configured string) (name, from string) {
	if flag != "" {
		return flag, "--store"
	}
	if name := os.Getenv(StoreVariable); name != "" {
		return name, StoreVariable
	}
	return configured, "serve.store"
}

// Options are the options of [Run]. Stderr, Load and Find are required.
type Options struct {
	Addr, MetricsAddr, Store string // values of flags; "": use the configuration
	LogLevel, LogFormat      string // arguments of [NewLog]
	Stderr                   io.Writer
	Terminal                 bool // Stderr is a terminal
	// Find returns the path of the configuration file, or "" if no file exists. Load reads the file and applies the flags. Both are also
	// called for each reload.
	Find func() (string, error)
	Load func(file string) (*config.Config, error)
	// Starting, if set, reports on w that the application is starting, until stop is called.
	Starting func(w io.Writer, cfg *config.Config) (stop func())
	// Listening, if set, is called once, after the gateway has begun to listen and has printed its address.
	Listening func()
	// Prepare, if set, completes the options of the application. close, which may be nil, is called after the application has stopped.
	Prepare func(log *slog.Logger, opts *app.Options) (close func(), err error)
	// App are the options of the application. Log, Reload, Store, NoStore and SeparateMetrics are set by Run.
	App app.Options
}

func (o *Options) readConfig() (*config.Config, error) {
	file, err := o.Find()
	if err != nil {
		return nil, err
	}
	return o.Load(file)
}

// A daemon is the state of [Run].
type daemon struct {
	opts    *Options
	stderr  io.Writer
	addr    string // address on which the gateway listens
	hup     chan os.Signal
	log     *slog.Logger
	app     *app.App
	manager *notifier // connection to the service manager that started the gateway

	reloading sync.Mutex // locked during a reload of the configuration
}

// The errors of the package; the code of each determines the exit code.

func misconfigured(err error) error {
	return lathe.CodeInvalidConfig.Wrap(app.Op, app.Cause(err))
}

func usage(format string, args ...any) error {
	return lathe.CodeInvalidRequest.Errorf(app.Op, format, args...)
}

func failed(err error) error {
	return lathe.CodeInternal.Wrap(app.Op, err)
}

// join joins err and a later error. Without a later error it returns err unchanged, because the callers of Run print its cause.
func join(err, after error) error {
	if after == nil {
		return err
	}
	return errors.Join(err, after)
}

// Run runs the gateway until ctx is done or a listener fails.
func Run(ctx context.Context, opts *Options) (err error) {
	d := &daemon{opts: opts, hup: make(chan os.Signal, 1)}
	signal.Notify(d.hup, syscall.SIGHUP) // first of all: a signal during the start must not end the process
	defer signal.Stop(d.hup)
	stderr := &gatheredLog{w: opts.Stderr}
	defer stderr.flush()
	d.stderr = stderr.direct()
	if d.log, err = NewLog(stderr, opts.LogLevel, opts.LogFormat); err != nil {
		return err
	}
	d.log = stderr.logger(d.log)
	if d.manager, err = newNotifier(); err != nil {
		return err
	}
	defer TakeStandardLog(d.log)()
	cfg, err := opts.readConfig()
	if err != nil {
		return err
	}
	own := opts.App
	own.Log, own.SeparateMetrics = d.log, opts.MetricsAddr != ""
	own.Reload = func(context.Context) error { return d.reload("POST /api/reload") }
	if opts.Prepare != nil {
		done, err := opts.Prepare(d.log, &own)
		if done != nil {
			defer done()
		}
		if err != nil {
			return err
		}
	}
	closeStore, err := d.openStore(cfg, &own)
	if err != nil {
		return err
	}
	defer func() { err = join(err, closeStore()) }()
	stop := func() {}
	if opts.Starting != nil {
		stop = opts.Starting(d.stderr, cfg)
	}
	d.app, err = app.New(cfg, &own)
	stop()
	if err != nil {
		return err
	}
	defer func() { err = join(err, d.app.Close()) }()
	if node := d.app.Node(); node != "" {
		fmt.Fprintf(d.stderr, "note: this is %s among the processes that share the store\n", node)
	}
	if n := d.app.Recovered(); n > 0 {
		fmt.Fprintf(d.stderr, "note: resuming %d runs that an earlier process left\n", n)
	}
	return d.listen(ctx, cfg)
}

// openStore opens the store that --store or the environment names. It leaves serve.store to the application.
func (d *daemon) openStore(cfg *config.Config, opts *app.Options) (closeStore func() error, err error) {
	closeStore = func() error { return nil }
	name, from := NamedStore(d.opts.Store, cfg.Serve.Store.Reveal())
	switch {
	case name == "none":
		opts.NoStore = true
	case name == "", name == "memory":
		fmt.Fprintln(d.stderr, "note: runs are kept in memory and end with this process: --store sqlite:PATH keeps them")
		opts.Store = app.NewMemoryStore()
	case from != "serve.store":
		if opts.Store, err = app.OpenStore(name, &app.StoreOptions{From: from}); err == nil {
			closeStore = opts.Store.Close
		}
	}
	return closeStore, err
}

// listen serves until ctx is done or a listener fails, and then stops the application.
func (d *daemon) listen(ctx context.Context, cfg *config.Config) error {
	addr := cmp.Or(d.opts.Addr, cfg.Serve.Addr)
	if err := app.CheckAddr(cfg, addr); err != nil {
		return misconfigured(err)
	}
	ln, err := Listen(ctx, addr, "--addr")
	if err != nil {
		return err
	}
	d.addr = ln.Addr().String()
	var servers []*http.Server
	ended := make(chan error, 3) // the result of each server; there are at most three
	serve := func(ln net.Listener, h http.Handler) {
		srv := d.app.HTTPServer(h)
		servers = append(servers, srv)
		go func() { ended <- srv.Serve(ln) }()
	}
	handler := d.app.Handler()
	serve(d.app.Listener(ln), handler)
	abort := func(err error) error { // another listener cannot be opened: ends the first server
		_ = servers[0].Close() // no request has been served yet
		return join(err, ignoreClosed(<-ended))
	}
	store, from := NamedStore(d.opts.Store, cfg.Serve.Store.Reveal())
	if remove, err := d.leaveNote(store, from, ln.Addr()); err != nil {
		d.log.Warn("the address could not be left beside the store: lathe runs wants --server", "error", err)
	} else {
		defer remove()
	}
	if addr := cmp.Or(d.opts.MetricsAddr, cfg.Serve.MetricsAddr); addr != "" {
		metrics, err := Listen(ctx, addr, "--metrics-addr")
		if err != nil {
			return abort(err)
		}
		serve(metrics, d.app.MetricsHandler())
		fmt.Fprintf(d.stderr, "metrics are served on http://%s/metrics\n", metrics.Addr())
	}
	page := ln.Addr()
	if cfg.Serve.Console.Listen != "" {
		console, err := d.listenConsole(ctx, cfg)
		if err != nil {
			return abort(err)
		}
		serve(d.app.Listener(console), d.app.ConsoleHandler())
		page = console.Addr()
	}
	d.announce(cfg, page)
	if d.opts.Listening != nil {
		d.opts.Listening()
	}
	releasePages()
	d.notify("READY=1")
	unwatch := d.manager.watch(context.WithoutCancel(ctx), handler, func(err error) {
		d.log.Error("the watchdog of the service manager got no message", "error", err)
	})
	err = d.wait(ctx, ended)
	d.notify("STOPPING=1")
	d.stop(ctx, servers)
	unwatch()
	for range servers {
		err = cmp.Or(err, ignoreClosed(<-ended))
	}
	return err
}

// announce prints the addresses of the gateway; page is that of the console.
func (d *daemon) announce(cfg *config.Config, page net.Addr) {
	scheme := "http"
	if d.app.TLS() {
		scheme = "https"
	}
	if len(cfg.Models) == 0 {
		fmt.Fprintf(d.stderr, "note: no model is configured: the simulated %s answers, and others that `lathe sim list` names\n", config.SimModel)
	}
	if cfg.Serve.Console.Enabled {
		d.announceConsole(cfg, scheme, page.String())
	}
	fmt.Fprintf(d.stderr, "base URLs: OpenAI %[1]s://%[2]s/v1, Anthropic %[1]s://%[2]s, Gemini %[1]s://%[2]s; `lathe connect` sets up agents\n", scheme, d.addr)
	fmt.Fprintf(d.stderr, "lathe serves on %s://%s/v1 (stop with Ctrl-C)\n", scheme, d.addr)
}

// ignoreClosed returns the error of an HTTP server, or nil if the server was shut down.
func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Listen listens on an address. flag is the setting that the error suggests to change.
func Listen(ctx context.Context, addr, flag string) (net.Listener, error) {
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		if op := (*net.OpError)(nil); errors.As(err, &op) {
			err = op.Err // without the address, which stands before it
		}
		return nil, failed(fmt.Errorf("cannot listen on %s: %w; choose another address with %s", addr, err, flag))
	}
	return ln, nil
}

// wait reloads the configuration at each SIGHUP, until ctx is done or a server fails.
func (d *daemon) wait(ctx context.Context, ended chan error) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			ended <- err // listen receives the result of each server, this one too
			return failed(err)
		case <-d.hup:
			_ = d.reload("SIGHUP") // reload logs the error
		}
	}
}

// notify sends a state to the service manager and logs a failure.
func (d *daemon) notify(state string) {
	if err := d.manager.send(state); err != nil {
		d.log.Error("the service manager was not notified", "state", state, "error", err)
	}
}

// reload reads the configuration again and activates it; if it returns an error, nothing changes. It logs the result and by, the source of
// the request. Concurrent calls run one after the other.
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

// readAgain reads the configuration and activates it.
func (d *daemon) readAgain() error {
	cfg, err := d.opts.readConfig()
	if err != nil {
		return err
	}
	// The listener does not change: without keys its address must be a loopback address, whatever serve.addr is now.
	if err := app.CheckAddr(cfg, d.addr); err != nil {
		return app.Cause(err)
	}
	if err := d.app.Reload(cfg); err != nil {
		return app.Cause(err)
	}
	return nil
}

// stop waits for requests and runs to finish, for at most serve.drain_timeout.
func (d *daemon) stop(ctx context.Context, servers []*http.Server) {
	fmt.Fprintln(d.stderr, "stopping: requests that are at work may finish")
	if left := d.app.Shutdown(context.WithoutCancel(ctx), servers...); left > 0 {
		fmt.Fprintf(d.stderr, "note: %d runs are left for the next process\n", left)
	}
	fmt.Fprintln(d.stderr, "stopped")
}
