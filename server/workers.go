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

// A WorkerRegistry registers the tools of workers, and may refuse some. The methods may be called from several goroutines
// at once.
type WorkerRegistry interface {
	// Announce stores the description of a worker for the time ttl. It returns, by name, the reason for each tool of the
	// worker that is refused.
	Announce(ctx context.Context, w *remote.Worker, ttl time.Duration) (refused map[string]string, err error)
	// Refused returns, by name, the reason for each tool of the worker that is currently refused.
	Refused(worker string) map[string]string
}

// WorkerOptions are the options of [NewWorkers], which copies them.
type WorkerOptions struct {
	Queue    remote.Queue   // required
	Registry WorkerRegistry // required
	Pools    []WorkerPool
	// Lease is 10 s: the time without a frame from a worker after which its calls are assigned to other workers, or end
	// with an unknown outcome.
	Lease        time.Duration
	MaxWorkers   int           // 1,024 concurrent connections
	WriteTimeout time.Duration // 10 s to write one frame; a slower worker is disconnected
	HelloTimeout time.Duration // 10 s to receive the first frame
	Poll         time.Duration // 1 s between queries for waiting calls, which find those whose notification was lost
	Log          *slog.Logger  // logs connections of workers and results that are discarded; nil: nothing is logged
}

// A WorkerPool is the set of workers that authenticate with the same token, and their rights.
type WorkerPool struct {
	Name  string
	Token secret.Secret
	// Tools are the names of the tools that workers of the pool may serve: exact names, or prefixes that end with *. nil:
	// none.
	Tools []string
	// Effects are the effects that the server accepts from a worker for its tools. A tool with any other effect counts as
	// one that writes.
	Effects []lathe.Effect
	// Keys are the names of the keys whose runs can use the tools; nil: all. In the runs of other keys the tools do not
	// exist.
	Keys []string
	// MaxConcurrency bounds the concurrent calls of each worker; 0: the worker sets its own limit.
	MaxConcurrency int
}

// Workers serves the connections of workers and assigns to them the calls of a queue.
type Workers struct{ handler *workers.Handler }

// NewWorkers returns the handler, or an error if the options are not valid. The caller must call [Workers.Serve].
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

// CheckWorkerPools returns an error if [NewWorkers] or [Workers.Reload] would refuse the worker pools.
func CheckWorkerPools(workerPools []WorkerPool) error {
	if err := workers.CheckPools(poolsOf(workerPools)); err != nil {
		return invalid("workers", err)
	}
	return nil
}

// Reload replaces all worker pools. If it returns an error, none has changed. It disconnects the workers of pools that have
// changed, and they reconnect.
func (w *Workers) Reload(in []WorkerPool) error {
	if err := w.handler.Reload(poolsOf(in)); err != nil {
		return invalid("workers", err)
	}
	return nil
}

// ServeHTTP serves the connection of a worker and returns when it has ended. It is for programs that serve only workers. To
// serve workers in addition to the other routes, behind the server's middleware, set [Options].Workers.
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

// Serve handles calls whose lease or time limit has expired, which end or return to the queue, and notifies connections of
// waiting calls, until ctx is done. It waits one lease before it handles expired calls, so that after a restart of the
// gateway workers can reconnect with the calls that are assigned to them. Call it once.
func (w *Workers) Serve(ctx context.Context) { w.handler.Serve(ctx) }

// Count returns the connections, calls in progress, free capacity and event counts of each worker pool, in no particular
// order.
func (w *Workers) Count() []observe.WorkerCount { return w.handler.Count() }

// Close requests the workers to connect to other gateways and refuses new connections. If ctx is done before all workers
// have disconnected, it closes the remaining connections. Workers continue their calls in progress and send the results to
// another gateway.
func (w *Workers) Close(ctx context.Context) { w.handler.Close(ctx) }
