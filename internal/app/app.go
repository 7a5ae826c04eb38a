package app

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/audit"
	"github.com/lathe-run/lathe/internal/budget"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/gateway/mcp"
	"github.com/lathe-run/lathe/internal/webhook"
	"github.com/lathe-run/lathe/observe"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
)

// Options configure an [App]. The zero value is usable.
type Options struct {
	Log   *slog.Logger // nil: discards
	Tools []lathe.Tool // added to the tools of the configuration; a reload does not remove them
	Sinks []event.Sink // receive the events of all runs, in addition to metrics and log

	// Store replaces the store that serve.store names, and is closed by the caller after [App.Close]; nil: New opens that of serve.store.
	Store Store
	// NoStore turns storing of runs off, whatever serve.store is.
	NoStore bool

	// Version and Revision are reported by metrics, traces and the MCP server.
	Version, Revision string
	// SeparateMetrics removes /metrics from [App.Handler], as serve.metrics_addr does: [App.MetricsHandler] serves it.
	SeparateMetrics bool
	// Reload, if not nil, reads the configuration again and calls [App.Reload]. POST /api/reload calls it, possibly concurrently, and
	// returns the text of its error to the client, which has an admin key. nil: POST /api/reload returns 404.
	Reload func(ctx context.Context) error
	// Environ is the environment of MCP servers that are started as programs (PATH, HOME, LANG) and the source of the OTEL_ variables, in
	// the form of os.Environ. nil: the environment of the process.
	Environ []string
	// Aliases maps names of model entries to the names that clients use. An entry without an alias has its own name.
	Aliases map[string]string
	// Script and Replay are the files of [SimOptions] for the model sim/script.
	Script, Replay string

	// Executor, if not nil, returns what executes detached runs; it requires a store that outlives the process. nil: this process executes
	// them.
	Executor func(*ExecutorParts) (Executor, error)

	// TemporalTool, if not nil, returns the tool for an entry of tools.temporal, which runs in steps of the Executor. nil: such an entry is
	// an error.
	TemporalTool func(*lathe.ToolSpec, *config.TemporalTool) (lathe.Tool, error)

	now func() time.Time // clock for budgets; nil: time.Now
}

// An App serves the models and tools of a configuration. Its methods may be called from several goroutines at once. New sets the fields;
// after that only those behind tasks change.
type App struct {
	opts Options
	log  *slog.Logger

	storage
	telemetry
	approvals  *approval.Queue    // pending approvals of stored runs
	switches   *toolSwitches      // tools that operators have disabled
	pools      *workerPools       // pools of workers
	identities identities         // verifies the tokens of callers
	engine     *engine.Engine     // nil until newServer
	supervisor *engine.Supervisor // owns the runs that continue without a request
	executor   Executor           // executes detached runs; nil: the supervisor does
	server     *server.Server     // nil until newServer
	mcp        *mcp.Server        // nil until newServer
	started    time.Time          // when New was called
	recovered  int                // number of runs of an earlier process that were resumed
	stopTasks  context.CancelFunc
	tasks      sync.WaitGroup

	keep        atomic.Pointer[config.Keep]     // retention settings of the current configuration
	certificate atomic.Pointer[tls.Certificate] // current TLS certificate; nil: no TLS
	revisions
}

// A storage contains the store, the audit log and the meter of an App.
type storage struct {
	store    Store         // nil: runs are not stored
	ownStore bool          // New has opened the store, and Close closes it
	audit    *audit.Log    // nil: no audit log
	meter    *budget.Meter // counts model calls; nil: the store has no ledger
}

// A telemetry contains the sinks that report the events of an App to other systems.
type telemetry struct {
	traces  *observe.Traces   // sends spans; nil: no collector is configured
	webhook *webhook.Notifier // nil: no webhook is configured
	metrics *observe.Metrics
	sinks   []event.Sink // receive every event
}

// revisions contains the revisions of the configuration that an App uses.
type revisions struct {
	mu      sync.Mutex // guards the fields below, and is locked during a reload
	current *revision
	retired []chan struct{} // one for each replaced revision; closed together with the revision
	closed  bool
}

// New makes an application from the configuration and starts what it needs: MCP servers, WebAssembly modules, the store, and maintenance.
// It resumes runs that an earlier process left in the store. It opens no listener: the caller serves [App.Handler]. opts may be nil. The
// caller must call Close unless New returns an error.
func New(cfg *config.Config, opts *Options) (_ *App, err error) {
	a := &App{started: time.Now(), log: slog.New(slog.DiscardHandler), approvals: approval.NewQueue(nil), stopTasks: func() {}}
	if opts != nil {
		a.opts = *opts
	}
	a.metrics = observe.NewMetrics(&observe.MetricsOptions{Version: a.opts.Version, Revision: a.opts.Revision, Process: true,
		Conventions: conventions(lookup(environOf(a.opts.Environ))), Names: observe.MetricNames(cfg.Telemetry.MetricNames)})
	if a.opts.Log != nil {
		a.log = slog.New(observe.CountLostLines(a.opts.Log.Handler(), a.metrics.AddLostLines))
	}
	defer func() {
		if err != nil {
			err = join(err, a.Close())
		}
	}()
	a.warn(cfg)
	cert, err := loadCertificate(cfg)
	if err != nil {
		return nil, err
	}
	a.certificate.Store(cert)
	if err := a.openStore(cfg); err != nil {
		return nil, err
	}
	if err := a.openMeter(cfg); err != nil {
		return nil, err
	}
	if a.audit, err = OpenAudit(cfg, a.log); err != nil {
		return nil, err
	}
	if err := a.openSwitches(context.Background()); err != nil {
		return nil, failed(Cause(err))
	}
	if a.pools, err = newWorkerPools(cfg, a.store, a.log); err != nil {
		return nil, err
	}
	if a.traces, err = OpenTraces(cfg, &TracesOptions{Environ: a.opts.Environ, Version: a.opts.Version, Log: a.log, Lost: a.metrics.AddLostSpans}); err != nil {
		return nil, err
	}
	if a.current, err = a.newRevision(cfg); err != nil {
		return nil, err
	}
	if err := a.newServer(cfg); err != nil {
		return nil, err
	}
	a.start(cfg)
	if a.executor != nil {
		if err := a.executor.Begin(); err != nil {
			return nil, failed(err)
		}
	}
	return a, nil
}

// warn logs the warnings of the configuration: settings that are valid but probably not intended.
func (a *App) warn(cfg *config.Config) {
	for _, w := range cfg.Warnings() {
		a.log.Warn("the configuration may not say what is meant", "place", w.File, "key", w.Key, "problem", w.Message)
	}
}

// openStore sets the store of the options, or opens the one that serve.store names.
func (a *App) openStore(cfg *config.Config) (err error) {
	switch name := cfg.Serve.Store.Reveal(); {
	case a.opts.NoStore:
		return nil
	case a.opts.Store != nil:
		a.store = a.opts.Store
	case name == "none":
		return nil
	case name == "", name == "memory":
		a.store, a.ownStore = NewMemoryStore(), true
	default:
		if a.store, err = OpenStore(name, nil); err != nil {
			return err
		}
		a.ownStore = true
	}
	for _, path := range Tightened(a.store) {
		a.log.Warn("others than its owner could open a file of the store: they cannot any more", "file", path)
	}
	return nil
}

// shared reports whether other processes can execute runs of the store.
func (s *storage) shared() bool {
	_, ok := s.store.(store.Shared)
	return ok
}

// start resumes the runs of an earlier process and starts the maintenance, which stopTasks ends.
func (a *App) start(cfg *config.Config) {
	a.keep.Store(&cfg.Keep)
	ctx, stop := context.WithCancel(context.Background())
	a.stopTasks = stop
	if !a.shared() { // for a shared store, the maintenance finds these runs
		var err error
		if a.recovered, err = a.server.Recover(ctx); err != nil {
			a.log.Error("some runs of an earlier process cannot be resumed", "error", err)
		}
	}
	a.tasks.Go(func() { a.server.Maintain(ctx) })
	a.tasks.Go(func() { a.identities.prepare(ctx, a.log) })
	a.tasks.Go(func() { RefreshTools(ctx, a.mcp) })
	if a.webhook != nil {
		a.tasks.Go(func() { a.webhook.Run(ctx) })
	}
	if a.shared() {
		a.tasks.Go(func() { a.switches.follow(ctx) })
	}
	if a.meter != nil {
		a.tasks.Go(func() { a.meter.Run(ctx, sweepEvery) })
	}
	if a.store != nil {
		a.tasks.Go(func() { retain(ctx, a.store, a.keep.Load, a.log) })
		c := &compactor{store: a.store, retryWindow: cfg.Serve.RetryWindow, log: a.log} // retry_window can change only with a restart
		a.tasks.Go(func() { c.run(ctx, a.metrics.AddCompacted) })
	}
}

// Handler returns the handler of the HTTP API, the console, MCP and workers. If no keys are configured, it serves all requests with a local
// Host header, so listen on a loopback address only: see [CheckAddr].
func (a *App) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.traces != nil {
			r = r.WithContext(observe.RemoteTrace(r.Context(), r.Header))
		}
		a.server.ServeHTTP(w, r)
	})
}

// ConsoleHandler returns the handler for the listener serve.console.listen: the console and its API.
func (a *App) ConsoleHandler() http.Handler { return a.server.Console() }

// SignInLink returns [server.Server.SignInLink].
func (a *App) SignInLink(key string) (fragment string, expires time.Time, err error) {
	return a.server.SignInLink(key)
}

// MetricsHandler returns the handler of /metrics, /livez and /readyz, for a separate listener. It requires no key.
func (a *App) MetricsHandler() http.Handler { return a.server.Metrics() }

// HTTPServer returns a server of h with the limits of [server.Server.HTTPServer].
func (a *App) HTTPServer(h http.Handler) *http.Server {
	srv := a.server.HTTPServer()
	srv.Handler = h
	return srv
}

// Recovered returns the number of runs of an earlier process that New has resumed.
func (a *App) Recovered() int { return a.recovered }

// Node returns the name of this process among those that share the store; "" if the store is not shared.
func (a *App) Node() string {
	if !a.shared() {
		return ""
	}
	return a.engine.Node()
}
