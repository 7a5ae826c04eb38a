// Package app makes the gateway that `lathe serve` runs out of a configuration file: models, tools, policy, approvals, store, telemetry, HTTP API
// and MCP. A program serves lathe.yaml with Go tools of its own:
//
//	cfg, err := app.LoadConfig("lathe.yaml", nil)
//	a, err := app.New(cfg, &app.Options{Tools: []lathe.Tool{weather}})
//	srv := a.HTTPServer(a.Handler())
//	go srv.Serve(a.Listener(ln))
//	…
//	a.Shutdown(ctx, srv)
//	err = a.Close()
//
// The package prints nothing, reads no flags and keeps no global state. A program without a configuration file uses packages server, engine,
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

// A Config is a configuration that was read and checked. docs/config.md lists its keys.
type Config struct{ c *config.Config }

// LoadOptions are the options of [LoadConfig]. The zero value is usable.
type LoadOptions struct {
	// Environ is the environment in which ${NAME} and LATHE_ variables are looked up, as os.Environ returns it. nil: that of
	// the process; an empty slice: none.
	Environ []string
	// Settings are set over file and environment, by key, such as "tools.builtin": "calculator".
	Settings map[string]string
}

// LoadConfig reads the configuration file at path and checks everything that can be checked without connecting to a server or starting a
// process. An empty path is an empty file. The error lists every problem with its place.
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

// A Store keeps runs: a file, a database that several processes use, or memory. Those of store/sqlite and store/postgres are such stores.
type Store interface {
	store.Retainer
	store.Compactor
	store.SignalStore
	Close() error
}

// Options are the options of [New]. The zero value is usable.
type Options struct {
	Log   *slog.Logger // nil: discards
	Tools []lathe.Tool // besides those of the configuration; a reload keeps them
	Sinks []event.Sink // that get the events of all runs, besides metrics and log
	// Store keeps the runs in place of serve.store. The caller closes it after [App.Close]. nil: serve.store is opened.
	Store Store
	// NoStore keeps no runs, whatever serve.store is.
	NoStore bool
	// Version and Revision are reported by metrics, traces and the MCP server.
	Version, Revision string
	// Reload reads the configuration again and calls [App.Reload]. It is called for POST /api/reload, by several goroutines at
	// once, and the client, which has an admin key, reads the text of its error. nil: that path answers 404.
	Reload func(ctx context.Context) error
	// Environ is the environment of MCP servers that are programs (PATH, HOME, LANG) and of the OTEL_ variables, as os.Environ
	// returns it; nil: that of the process.
	Environ []string
}

// An App serves the models and tools of a configuration. Its methods may be called from several goroutines at once.
type App struct{ app *parts.App }

// New starts what the configuration needs: MCP servers, WebAssembly modules, the store, and the maintenance of runs. It resumes the runs that
// an earlier process left in the store. Nothing listens yet: serve [App.Handler]. Without an error Close must be called.
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

// Handler returns the handler of the HTTP API, the page, MCP and workers. A configuration without keys lets every request
// with a local Host header pass: listen on a loopback address then.
func (a *App) Handler() http.Handler { return a.app.Handler() }

// ConsoleHandler returns the handler of serve.console.listen: the page, and the API that it calls.
func (a *App) ConsoleHandler() http.Handler { return a.app.ConsoleHandler() }

// MetricsHandler returns the handler of /metrics, /livez and /readyz, for a listener of its own. It asks for no key.
func (a *App) MetricsHandler() http.Handler { return a.app.MetricsHandler() }

// HTTPServer returns a server of h with the limits that [App.Handler] needs: on the size of request headers and the time
// to send them, and on idle connections. It has no limit on the time of a response, which would cut streams.
func (a *App) HTTPServer(h http.Handler) *http.Server { return a.app.HTTPServer(h) }

// Listener returns ln, or, with serve.tls, a listener that serves TLS 1.2 or later on it, with the certificate in force: without it, a server
// of the program speaks plain HTTP, whatever serve.tls is.
func (a *App) Listener(ln net.Listener) net.Listener { return a.app.Listener(ln) }

// Reload replaces models, tools and policy by those of cfg. Requests that have begun end with those they began with. An error says what
// needs a restart or is not possible; the former configuration then stays.
func (a *App) Reload(cfg *Config) error { return a.app.Reload(cfg.c) }

// Shutdown lets requests and runs finish, shuts the servers down and returns the number of runs that are left in the store for the next
// process. What has not finished within serve.drain_timeout, or when ctx is done, is interrupted. Close must be called after it.
func (a *App) Shutdown(ctx context.Context, servers ...*http.Server) (left int) {
	return a.app.Shutdown(ctx, servers...)
}

// Close stops everything that New has started. It interrupts requests and runs that have not ended. Further calls do nothing.
func (a *App) Close() error { return a.app.Close() }
