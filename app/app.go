// Package app builds the gateway that `lathe serve` runs from a configuration file: models, tools, policy, approvals, store, telemetry,
// HTTP API and MCP. A program can serve lathe.yaml together with Go tools of its own:
//
//	cfg, err := app.LoadConfig("lathe.yaml", nil)
//	a, err := app.New(cfg, &app.Options{Tools: []lathe.Tool{weather}})
//	srv := a.HTTPServer(a.Handler())
//	go srv.Serve(a.Listener(ln))
//	…
//	a.Shutdown(ctx, srv)
//	err = a.Close()
//
// The package prints nothing, reads no flags and has no global state. A program without a configuration file uses packages server, engine,
// loop and tool.
package app

import (
	"context"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	parts "github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/store"
)

// A Config is a configuration that [LoadConfig] has read and checked. docs/config.md lists its keys.
type Config struct{ c *config.Config }

// LoadOptions are the options of [LoadConfig]. The zero value is usable.
type LoadOptions struct {
	// Environ is the environment in which ${NAME} and LATHE_ variables are looked up, in the form of os.Environ. nil: the environment of
	// the process; an empty slice: no variables.
	Environ []string
	// Settings override LATHE_ variables, which override the file. The map goes from keys of the configuration to values, such as from
	// "tools.builtin" to "calculator". An unknown key is an error.
	Settings map[string]string
}

// LoadConfig reads the configuration file at path and checks everything that can be checked without connecting to a server or starting a
// process. path "" is an empty file: the environment and opts.Settings apply. opts may be nil. The error lists every problem with its
// position.
func LoadConfig(path string, opts *LoadOptions) (*Config, error) {
	if opts == nil {
		opts = &LoadOptions{}
	}
	load := &parts.LoadOptions{Environ: opts.Environ}
	for _, key := range slices.Sorted(maps.Keys(opts.Settings)) {
		load.Overrides = append(load.Overrides, config.Override{From: key, Key: key, Value: opts.Settings[key]})
	}
	c, err := parts.LoadConfig(path, load)
	if err != nil {
		return nil, err
	}
	return &Config{c}, nil
}

// A Store stores runs: in a file, in a database that several processes share, or in memory. The stores of store/sqlite and store/postgres
// implement it.
type Store interface {
	store.Retainer
	store.Compactor
	store.SignalStore
	Close() error
}

// Options are the options of [New]. The zero value is usable.
type Options struct {
	Log   *slog.Logger // receives log records; nil: nothing is logged
	Tools []lathe.Tool // added to the tools of the configuration; a reload does not remove them
	Sinks []event.Sink // receive the events of all runs, in addition to metrics and log
	// Store is used instead of the store that the setting serve.store names; nil: New opens that one. The caller must close Store after
	// [App.Close].
	Store Store
	// NoStore turns the storing of runs off. Store and the setting serve.store are then ignored.
	NoStore bool
	// Version and Revision are the version and the source revision of the program. Metrics, traces and the MCP server report them.
	Version, Revision string // "": metrics report "unknown"
	// Reload must read the configuration again and call [App.Reload]. Each request POST /api/reload, which requires an admin key, calls
	// Reload, possibly from several goroutines at once. The response contains the text of its error. nil: POST /api/reload returns 404.
	Reload func(ctx context.Context) error
	// Environ is an environment in the form of os.Environ; nil: that of the process. MCP servers that are started as programs get its PATH,
	// HOME and LANG, and telemetry reads its OTEL_ variables.
	Environ []string
}

// An App serves the models and tools of a configuration. Its methods may be called from several goroutines at once.
type App struct{ app *parts.App }

// New starts what the configuration needs: MCP servers, WebAssembly modules, the store, and the maintenance of runs. It resumes the runs
// that an earlier process left in the store; these runs continue in the background. It opens no listener: the caller serves [App.Handler]. opts
// may be nil. If New returns an error, it has stopped what it had started; otherwise the caller must call Close.
func New(cfg *Config, opts *Options) (*App, error) {
	if opts == nil {
		opts = &Options{}
	}
	a, err := parts.New(cfg.c, &parts.Options{Log: opts.Log, Tools: opts.Tools, Sinks: opts.Sinks, Store: opts.Store, NoStore: opts.NoStore, Version: opts.Version,
		Revision: opts.Revision, Reload: opts.Reload, Environ: opts.Environ})
	if err != nil {
		return nil, err
	}
	return &App{a}, nil
}

// Handler returns the handler of the HTTP API, the console, MCP and workers. If the configuration has no API keys, the handler accepts
// every request with a local Host header; the caller must then serve it on a loopback address only.
func (a *App) Handler() http.Handler { return a.app.Handler() }

// ConsoleHandler returns the handler for a second listener, at the address of the setting serve.console.listen. It serves the console and
// the API requests that the console makes.
func (a *App) ConsoleHandler() http.Handler { return a.app.ConsoleHandler() }

// MetricsHandler returns the handler of /metrics, /livez and /readyz, for a separate listener. It requires no key.
func (a *App) MetricsHandler() http.Handler { return a.app.MetricsHandler() }

// HTTPServer returns a server for h with the limits of the configuration on the size of request headers, the time to receive them, and
// idle connections. The time of a response is not limited, because a limit would cut streams.
func (a *App) HTTPServer(h http.Handler) *http.Server { return a.app.HTTPServer(h) }

// Listener returns a listener on ln that serves TLS 1.2 or later with the current certificate if serve.tls is set, and ln itself if not. A
// program that passes ln to its server directly serves plain HTTP even if serve.tls is set.
func (a *App) Listener(ln net.Listener) net.Listener { return a.app.Listener(ln) }

// Reload activates a new configuration. Requests and runs that began with the previous one use it until they end; then its MCP servers and
// WebAssembly modules are closed. Store, audit log, telemetry collector, limits of the HTTP server, addresses, and whether TLS is used,
// change only with a restart. If Reload returns an error, nothing has changed; the error says which part of cfg is not valid or cannot be
// activated. Concurrent calls take effect one after the other. After [App.Close], Reload returns an error.
func (a *App) Reload(cfg *Config) error { return a.app.Reload(cfg.c) }

// Shutdown stops accepting work and blocks until requests and runs have finished. Then it shuts servers down. /readyz fails at once, and
// requests that would begin a run get 503; the wait begins after serve.drain_delay. Shutdown interrupts what has not finished within
// serve.drain_timeout, or when ctx is done, and returns the number of runs that another process must resume from the store. The caller must
// call Close afterwards.
func (a *App) Shutdown(ctx context.Context, servers ...*http.Server) (left int) {
	return a.app.Shutdown(ctx, servers...)
}

// Close stops everything that New has started. It interrupts requests and runs that have not ended, and blocks until the events of ended
// runs are stored. It returns the joined errors of closing the audit log, recording the usage of model calls and closing the store. Further
// calls return nil.
func (a *App) Close() error { return a.app.Close() }
