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

// A WorkerRegistry registers workers and their tools; *remotetool.Catalogue implements it. The methods may be called from several
// goroutines at once.
type WorkerRegistry interface {
	// Announce registers a worker for the duration ttl. It returns those tools of the worker that are refused, with the reasons by tool
	// name.
	Announce(ctx context.Context, w *remote.Worker, ttl time.Duration) (refused map[string]string, err error)
	// Refused returns those tools of the worker that are refused at present, with the reasons by tool name.
	Refused(worker string) map[string]string
}

// WorkerOptions are the options of [NewWorkers]. A zero number or time means the default in the comment.
type WorkerOptions struct {
	Queue    remote.Queue   // the calls that the workers execute; required
	Registry WorkerRegistry // registers the connected workers; required
	Pools    []WorkerPool   // the worker pools; nil: no worker can connect
	// Lease is the time for which a worker may be silent; default: 10 s. After it, the worker's calls are assigned to another worker, or
	// end with an unknown outcome.
	Lease        time.Duration
	MaxWorkers   int           // maximum number of connections; default 1,024
	WriteTimeout time.Duration // time limit of writing one frame, after which the worker is disconnected; default 10 s
	HelloTimeout time.Duration // time limit for the first frame of a worker; default 10 s
	Poll         time.Duration // interval at which the queue is read in case a notification was lost; default 1 s
	Log          *slog.Logger  // logs connections and discarded results; nil: no logging
}

// A WorkerPool says what the workers that authenticate with the same token may do.
type WorkerPool struct {
	Name  string
	Token secret.Secret
	// Tools are the tools that workers of the pool may serve: names, or prefixes that end with *. nil: none.
	Tools []string
	// Effects are the effects that workers may declare for their tools. If a tool declares another effect, it counts as a tool that writes.
	Effects []lathe.Effect
	// Keys are the names of the API keys whose runs may use the tools; for other runs the tools do not exist. nil: all keys.
	Keys []string
	// MaxConcurrency limits the concurrent calls of each worker; 0: the limit that the worker requests.
	MaxConcurrency int
}

// Workers is an http.Handler that serves the connections of workers, and assigns the calls of a queue to them. Its methods may be called
// from several goroutines at once.
type Workers struct{ handler *workers.Handler }

// NewWorkers returns a handler. The caller must call [Workers.Serve] and, at the end, [Workers.Close]. An error has the code
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
	var out []workers.Pool
	for _, p := range in {
		out = append(out, workers.Pool(p))
	}
	return out
}

// CheckWorkerPools returns an error if [NewWorkers] or [Workers.Reload] would refuse these pools.
func CheckWorkerPools(workerPools []WorkerPool) error {
	return invalid("workers", workers.CheckPools(poolsOf(workerPools)))
}

// Reload replaces all worker pools. If one of them is not valid, it returns an error of code invalid_config and changes nothing. Workers of
// changed and of removed pools are disconnected; those of changed pools reconnect by themselves.
func (w *Workers) Reload(in []WorkerPool) error {
	return invalid("workers", w.handler.Reload(poolsOf(in)))
}

// ServeHTTP serves the connection of one worker until it ends. Use it in a program that serves only workers. In a program with a [Server],
// set [Options].Workers instead.
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
// calls only after one lease, so that after a restart workers can reconnect with their calls. It must be called once.
func (w *Workers) Serve(ctx context.Context) { w.handler.Serve(ctx) }

// Count returns a [observe.WorkerCount] for each worker pool, in no particular order, for [observe.Metrics.CountWorkers].
func (w *Workers) Count() []observe.WorkerCount { return w.handler.Count() }

// Close refuses new connections, asks connected workers to reconnect to another gateway, and blocks until all have disconnected. When ctx
// is done, it closes the remaining connections. Workers continue their calls and send the results to the other gateway.
func (w *Workers) Close(ctx context.Context) { w.handler.Close(ctx) }
