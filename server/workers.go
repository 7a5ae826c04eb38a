package server

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/lathe-run/lathe"
	problems "github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/gateway/workers"
	"github.com/lathe-run/lathe/observe"
	"github.com/lathe-run/lathe/remote"
	"github.com/lathe-run/lathe/secret"
)

// A WorkerRegistry registers workers and their tools; *remotetool.Catalogue is one. The methods may be called from several goroutines at
// once.
type WorkerRegistry interface {
	// Announce registers a worker for ttl. It returns the worker's tools that are refused, with reasons by tool name.
	Announce(ctx context.Context, w *remote.Worker, ttl time.Duration) (refused map[string]string, err error)
	// Refused returns the worker's tools that are refused at present, with reasons by tool name.
	Refused(worker string) map[string]string
}

// WorkerOptions configure [Workers]. Zero numbers and times have the default in the comment.
type WorkerOptions struct {
	Queue    remote.Queue   // required
	Registry WorkerRegistry // required
	Pools    []WorkerPool   // nil: no worker can connect
	// Lease is the time without a frame from a worker after which its calls are assigned to another worker, or end with an unknown outcome.
	// Default: 10 s.
	Lease        time.Duration
	MaxWorkers   int           // maximum number of connections; default 1,024
	WriteTimeout time.Duration // of one frame, after which the worker is disconnected; default 10 s
	HelloTimeout time.Duration // for a worker to send its first frame; default 10 s
	Poll         time.Duration // interval at which the queue is read in case a notification was lost; default 1 s
	Log          *slog.Logger  // connections and discarded results; nil: no logging
}

// A WorkerPool describes the workers that authenticate with one token, and what they may do.
type WorkerPool struct {
	Name  string
	Token secret.Secret
	// Tools are the tools that workers of the pool may serve: names, or prefixes that end with *. nil: none.
	Tools []string
	// Effects are the effects that workers may declare for their tools. A tool that declares another one counts as one that writes.
	Effects []lathe.Effect
	// Keys are the names of the keys whose runs may use the tools; for other runs the tools do not exist. nil: all keys.
	Keys []string
	// MaxConcurrency limits the concurrent calls of each worker; 0: the limit that the worker requests.
	MaxConcurrency int
}

// Workers is an http.Handler that serves the connections of workers and assigns calls of a queue to them. Its methods may be called from
// several goroutines at once.
type Workers struct{ handler *workers.Handler }

// NewWorkers returns a handler. The caller must call [Workers.Serve] and, at the end, [Workers.Close]. The error has the code
// invalid_config.
func NewWorkers(opts *WorkerOptions) (*Workers, error) {
	if opts == nil {
		opts = &WorkerOptions{}
	}
	h, err := workers.New(&workers.Options{Queue: opts.Queue, Registry: opts.Registry, Pools: poolsOf(opts.Pools), Lease: opts.Lease,
		MaxWorkers: opts.MaxWorkers, WriteTimeout: opts.WriteTimeout, HelloTimeout: opts.HelloTimeout, Poll: opts.Poll, Log: opts.Log})
	if err != nil {
		return nil, invalid("workers", err)
	}
	return &Workers{h}, nil
}

func poolsOf(in []WorkerPool) []workers.Pool {
	out := make([]workers.Pool, len(in))
	for i := range in {
		out[i] = workers.Pool(in[i])
	}
	return out
}

// CheckWorkerPools returns the error that [NewWorkers] or [Workers.Reload] would return for these pools, or nil.
func CheckWorkerPools(workerPools []WorkerPool) error {
	if err := workers.CheckPools(poolsOf(workerPools)); err != nil {
		return invalid("workers", err)
	}
	return nil
}

// Reload replaces all worker pools; on an error, of code invalid_config, nothing changes. Workers of changed and of removed pools are
// disconnected; those of changed pools reconnect by themselves.
func (w *Workers) Reload(in []WorkerPool) error {
	if err := w.handler.Reload(poolsOf(in)); err != nil {
		return invalid("workers", err)
	}
	return nil
}

// ServeHTTP serves the connection of one worker until it ends. It is for programs that serve only workers; beside the other routes, set
// [Options].Workers instead.
func (w *Workers) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	c := &caller{form: problems.Text}
	p := refusePages(r)
	if p == nil && r.Method != http.MethodGet {
		p = problems.New(http.StatusMethodNotAllowed, "method_not_allowed", "Workers connect with GET.")
	}
	if p == nil {
		c.pool, p = w.handler.Authenticate(r)
	}
	if p == nil {
		p = w.connect(rw, r, c)
	}
	if p != nil {
		c.fail(rw, p)
	}
}

// connect serves the connection of a worker of the pool c.pool until it ends.
func (w *Workers) connect(rw http.ResponseWriter, r *http.Request, c *caller) *problem {
	return w.handler.Connect(rw, r, c.pool)
}

// Serve assigns waiting calls, and ends or requeues calls whose lease or time limit has expired, until ctx is done. It handles expired
// calls only after one lease, so that after a restart workers can reconnect with their calls. Call it once.
func (w *Workers) Serve(ctx context.Context) { w.handler.Serve(ctx) }

// Count returns the connections and calls of each worker pool, for [observe.Metrics.CountWorkers], in no particular order.
func (w *Workers) Count() []observe.WorkerCount { return w.handler.Count() }

// Close refuses new connections, asks connected workers to reconnect to another gateway, and blocks until all have disconnected; when ctx
// is done, it closes the remaining connections. Workers continue their calls and send the results to the other gateway.
func (w *Workers) Close(ctx context.Context) { w.handler.Close(ctx) }
