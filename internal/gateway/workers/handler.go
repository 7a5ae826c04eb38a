package workers

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/setting"
	"github.com/lathe-run/lathe/internal/wire/workers"
	"github.com/lathe-run/lathe/observe"
	"github.com/lathe-run/lathe/remote"
)

// A Registry determines which tools of workers are registered. Its methods may be called from several goroutines at once.
type Registry interface {
	// Announce stores the description of a worker for the time ttl. It returns the reason for each of its tools that is
	// refused, by name.
	Announce(ctx context.Context, w *remote.Worker, ttl time.Duration) (refused map[string]string, err error)
	// Refused returns the currently refused tools of a worker, with the reason by name.
	Refused(worker string) map[string]string
}

// Options are the options of [New], which copies them.
type Options struct {
	Queue        remote.Queue // required
	Registry     Registry     // required
	Pools        []Pool
	Lease        time.Duration `key:"lease" default:"10s"`         // 10 s: the time without a frame from a worker until its calls are given to others
	MaxWorkers   int           `key:"max_workers" default:"1024"`  // 1,024 connections
	WriteTimeout time.Duration `key:"write_timeout" default:"10s"` // 10 s for one frame; a slower worker is disconnected
	HelloTimeout time.Duration `key:"hello_timeout" default:"10s"` // 10 s for the first frame
	Poll         time.Duration `key:"poll" default:"1s"`           // 1 s between queries for calls, in case a notification was lost
	Log          *slog.Logger  // nil: nothing is logged
}

const (
	// forgetAfter is the number of leases for which a worker and its tools remain registered after its gateway has crashed.
	forgetAfter = 6
	// forgetLost is the number of leases for which they remain registered after the connection to the worker was lost. By then, a worker
	// that has connected to another gateway has been registered there again.
	forgetLost = 2
)

// A Handler serves the connections of workers and assigns calls of a queue to them. Its methods may be called from several goroutines at
// once.
type Handler struct {
	opts Options

	mu      sync.Mutex
	pools   *pools
	conns   map[*conn]struct{}
	counts  map[string]*observe.WorkerCount // event counts by worker pool
	lost    map[string]*lostCalls           // by worker id
	closing bool
	serving sync.WaitGroup // connections being served
}

// New returns a handler, or an error if the options are not valid. The caller must call [Handler.Serve].
func New(opts *Options) (*Handler, error) {
	if opts == nil || opts.Queue == nil || opts.Registry == nil {
		return nil, errors.New("a queue and a registry are required")
	}
	w := &Handler{opts: *opts, conns: map[*conn]struct{}{}, counts: map[string]*observe.WorkerCount{}, lost: map[string]*lostCalls{}}
	if err := setting.Check(&w.opts); err != nil {
		return nil, err
	}
	setting.Fill(&w.opts)
	w.opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	return w, w.Reload(opts.Pools)
}

// CheckPools returns the error that [New] and [Handler.Reload] return for the worker pools.
func CheckPools(in []Pool) error {
	_, err := newPools(in)
	return err
}

// Reload replaces all worker pools. If it returns an error, none has changed. It disconnects the workers whose pool has changed, which then
// reconnect.
func (w *Handler) Reload(in []Pool) error {
	next, err := newPools(in)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pools = next
	maps.DeleteFunc(w.counts, func(name string, _ *observe.WorkerCount) bool { return !next.named(name) })
	for c := range w.conns {
		if !next.has(&c.pool) {
			c.end(websocket.StatusPolicyViolation, "the token has changed")
		}
	}
	return nil
}

// Authenticate returns the pool whose token the request has, or a problem with status 401.
func (w *Handler) Authenticate(r *http.Request) (*Pool, *problem.Problem) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pools.authenticate(r)
}

// Connect serves the connection of a worker of a pool until it ends. If it returns a problem, nothing was written and the caller must
// respond with it.
func (w *Handler) Connect(rw http.ResponseWriter, r *http.Request, pool *Pool) *problem.Problem {
	c, p := w.admit(pool)
	if p != nil {
		return p
	}
	defer w.serving.Done()
	defer close(c.done)
	defer w.remove(c)
	defer c.cancel(nil)
	ws, err := websocket.Accept(rw, r, &websocket.AcceptOptions{Subprotocols: []string{workers.Protocol},
		CompressionMode: websocket.CompressionDisabled, InsecureSkipVerify: true}) // requests with an Origin header were refused before
	if err != nil {
		return nil // Accept has responded
	}
	c.serve(ws)
	return nil
}

// admit adds a connection of the pool, unless the handler is closing or has too many connections.
func (w *Handler) admit(f *Pool) (*conn, *problem.Problem) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closing:
		return nil, problem.New(http.StatusServiceUnavailable, "draining", "The gateway is about to stop; try again.")
	case len(w.conns) >= w.opts.MaxWorkers:
		return nil, problem.New(http.StatusServiceUnavailable, "overloaded", "The gateway has too many workers.")
	}
	c := newConn(w, f)
	if !w.pools.has(f) { // the pools were reloaded after the token was checked
		return nil, problem.New(http.StatusUnauthorized, "invalid_worker_token", "The token has changed.")
	}
	w.conns[c] = struct{}{}
	w.serving.Add(1)
	return c, nil
}

func (w *Handler) remove(c *conn) {
	w.noteLost(c)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, c)
}

// all returns the current connections.
func (w *Handler) all() []*conn {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.conns))
}

// Serve handles calls whose lease or time limit has expired (it ends them or returns them to the queue), and notifies connections of
// waiting calls, until ctx is done. It handles expired calls only after one lease, so that the workers of a restarted gateway can reconnect
// with their calls first. The caller calls Serve once.
func (w *Handler) Serve(ctx context.Context) {
	var watching sync.WaitGroup
	watching.Go(func() {
		for ctx.Err() == nil {
			if err := w.opts.Queue.WatchCalls(ctx, w.hint); err != nil && ctx.Err() == nil {
				w.opts.Log.Warn("hints of calls are lost for the moment", "code", lathe.CodeOf(err))
			}
			select {
			case <-time.After(w.opts.Poll):
			case <-ctx.Done():
			}
		}
	})
	defer watching.Wait()
	select {
	case <-time.After(w.opts.Lease):
	case <-ctx.Done():
		return
	}
	tick := time.Tick(max(w.opts.Lease/10, 50*time.Millisecond))
	for {
		if _, err := w.opts.Queue.ExpireCalls(ctx); err != nil && ctx.Err() == nil {
			w.opts.Log.Warn("the calls of lost workers cannot be dealt with for the moment", "code", lathe.CodeOf(err))
		}
		select {
		case <-tick:
		case <-ctx.Done():
			return
		}
	}
}

// hint passes a notification of the queue to the connections concerned: a cancellation to all, and a waiting call to the first connection
// that can take it.
func (w *Handler) hint(h remote.Notification) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.conns {
		switch {
		case h.Cancelled:
			c.wantCancelled(h.Key)
		case h.Definition != "" && c.takes(h.Definition):
			return
		}
	}
}

// Close requests that the workers connect to other gateways, and refuses new connections. If ctx is done before all workers have
// disconnected, it closes the remaining connections. Workers continue the calls in progress and send their results to another gateway.
func (w *Handler) Close(ctx context.Context) {
	w.mu.Lock()
	w.closing = true
	w.mu.Unlock()
	var telling sync.WaitGroup
	for _, c := range w.all() {
		telling.Go(c.sendAway)
	}
	over := make(chan struct{})
	go func() {
		telling.Wait()
		w.serving.Wait()
		close(over)
	}()
	select {
	case <-over:
		return
	case <-ctx.Done():
	}
	for _, c := range w.all() {
		c.end(websocket.StatusGoingAway, "the gateway stops")
	}
	<-over
}
