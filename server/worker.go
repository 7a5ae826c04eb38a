package server

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/lathe-run/lathe"
	problems "github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/wire/workers"
	"github.com/lathe-run/lathe/observe"
	"github.com/lathe-run/lathe/remote"
)

// A WorkerRegistry decides which tools of workers are registered. The methods may be called from several goroutines at
// once.
type WorkerRegistry interface {
	// Announce stores the description of a worker for the time ttl. It returns the reason for each of its tools that is
	// refused, by name.
	Announce(ctx context.Context, w *remote.Worker, ttl time.Duration) (refused map[string]string, err error)
	// Refused returns the refused tools of a worker as they are now.
	Refused(worker string) map[string]string
}

// WorkerOptions are the options of [NewWorkers], which copies them.
type WorkerOptions struct {
	Queue    remote.Queue   // required
	Registry WorkerRegistry // required
	Pools    []WorkerPool
	// Lease is 10 s: the time without a frame from a worker after which its calls are given to other workers, or end with
	// an unknown outcome.
	Lease        time.Duration
	MaxWorkers   int           // 1 024 connections
	WriteTimeout time.Duration // 10 s for one frame; a slower worker is disconnected
	HelloTimeout time.Duration // 10 s for the first frame
	Poll         time.Duration // 1 s between queries for calls, in case a notification was lost
	Log          *slog.Logger  // logs connections of workers and results that do not count; nil: nothing is logged
}

const (
	// forgetAfter is the number of leases for which a worker and its tools stay registered after its gateway has crashed.
	forgetAfter = 6
	// forgetLost is that number after the worker itself has been lost. A worker that has connected to another gateway
	// meanwhile has been registered again there by then.
	forgetLost = 2
)

// Workers serves the connections of workers and gives them the calls of a queue. It is the handler of [workers.Path].
type Workers struct {
	opts WorkerOptions

	mu      sync.Mutex
	pools   *workerPools
	conns   map[*workerConn]struct{}
	counts  map[string]*observe.WorkerCount // of past events, by worker pool
	lost    map[string]*lostCalls           // by worker
	closing bool
	serving sync.WaitGroup // of connections
}

// NewWorkers returns the handler, or an error if the options are not valid. [Workers.Serve] must be called.
func NewWorkers(opts *WorkerOptions) (*Workers, error) {
	if opts == nil || opts.Queue == nil || opts.Registry == nil {
		return nil, invalid("workers", errors.New("a queue and a roster are required"))
	}
	w := &Workers{opts: *opts, conns: map[*workerConn]struct{}{}, counts: map[string]*observe.WorkerCount{}, lost: map[string]*lostCalls{}}
	o := &w.opts
	for _, d := range []struct {
		p   *time.Duration
		def time.Duration
	}{{&o.Lease, 10 * time.Second}, {&o.WriteTimeout, 10 * time.Second}, {&o.HelloTimeout, 10 * time.Second}, {&o.Poll, time.Second}} {
		if *d.p <= 0 {
			*d.p = d.def
		}
	}
	if o.MaxWorkers <= 0 {
		o.MaxWorkers = 1_024
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return w, w.Reload(opts.Pools)
}

// CheckWorkerPools returns an error if [NewWorkers] or [Workers.Reload] would refuse the worker pools.
func CheckWorkerPools(workerPools []WorkerPool) error {
	if _, err := newWorkerPools(workerPools); err != nil {
		return invalid("workers", err)
	}
	return nil
}

// Reload replaces all worker pools; if it returns an error, none has changed. It disconnects the workers whose pool has
// changed; they reconnect.
func (w *Workers) Reload(in []WorkerPool) error {
	next, err := newWorkerPools(in)
	if err != nil {
		return invalid("workers", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pools = next
	maps.DeleteFunc(w.counts, func(name string, _ *observe.WorkerCount) bool { return !next.named(name) })
	for c := range w.conns {
		if !next.has(&c.fleet) {
			c.end(websocket.StatusPolicyViolation, "the token has changed")
		}
	}
	return nil
}

// ServeHTTP serves the connection of a worker and returns when it has ended. It is for programs that serve only workers;
// to serve them beside the other routes, behind the server's middleware, set [Options].Workers.
func (w *Workers) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	c := &caller{form: problems.Text}
	p := refusePages(r)
	if p == nil && r.Method != http.MethodGet {
		p = &problem{Status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Message: "Workers connect with GET."}
	}
	if p == nil {
		c.pool, p = w.authenticate(r)
	}
	if p != nil {
		c.fail(rw, p)
		return
	}
	w.connect(rw, r, c)
}

// authenticate returns the pool whose token the request has.
func (w *Workers) authenticate(r *http.Request) (*WorkerPool, *problem) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pools.authenticate(r)
}

// connect serves the connection of a worker of the caller's pool until it ends.
func (w *Workers) connect(rw http.ResponseWriter, r *http.Request, caller *caller) {
	c, p := w.admit(caller.pool)
	if p != nil {
		caller.fail(rw, p)
		return
	}
	defer w.serving.Done()
	defer close(c.done)
	defer w.remove(c)
	defer c.cancel(nil)
	ws, err := websocket.Accept(rw, r, &websocket.AcceptOptions{Subprotocols: []string{workers.Protocol},
		CompressionMode: websocket.CompressionDisabled, InsecureSkipVerify: true}) // requests with an Origin were refused
	if err != nil {
		return // Accept has answered
	}
	c.serve(ws)
}

// admit counts a connection of the pool, unless there are too many.
func (w *Workers) admit(f *WorkerPool) (*workerConn, *problem) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closing:
		return nil, &problem{Status: http.StatusServiceUnavailable, Code: "draining", Message: "The server is about to stop; try again."}
	case len(w.conns) >= w.opts.MaxWorkers:
		return nil, &problem{Status: http.StatusServiceUnavailable, Code: "overloaded", Message: "The server has too many workers."}
	}
	c := newWorkerConn(w, f)
	if !w.pools.has(f) { // replaced since the token was checked
		return nil, &problem{Status: http.StatusUnauthorized, Code: "invalid_worker_token", Message: "The token has changed."}
	}
	w.conns[c] = struct{}{}
	w.serving.Add(1)
	return c, nil
}

func (w *Workers) remove(c *workerConn) {
	w.noteLost(c)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, c)
}

// all returns the connections.
func (w *Workers) all() []*workerConn {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]*workerConn, 0, len(w.conns))
	for c := range w.conns {
		out = append(out, c)
	}
	return out
}

// Serve ends or returns to the queue the calls whose lease or time limit has expired, and notifies connections of waiting
// calls, until ctx is done. It begins with the expired calls after one lease, so that workers of a gateway that has
// restarted can reconnect with the calls that they hold. The caller calls it once.
func (w *Workers) Serve(ctx context.Context) {
	var watching sync.WaitGroup
	watching.Go(func() {
		for ctx.Err() == nil {
			if err := w.opts.Queue.WatchCalls(ctx, w.hint); err != nil && ctx.Err() == nil {
				w.opts.Log.Warn("hints of calls are lost for the moment", "code", string(lathe.CodeOf(err)))
			}
			select {
			case <-time.After(w.opts.Poll):
			case <-ctx.Done():
			}
		}
	})
	defer watching.Wait()
	back := time.NewTimer(w.opts.Lease)
	defer back.Stop()
	select {
	case <-back.C:
	case <-ctx.Done():
		return
	}
	tick := time.NewTicker(max(w.opts.Lease/10, 50*time.Millisecond))
	defer tick.Stop()
	for {
		if _, err := w.opts.Queue.ExpireCalls(ctx); err != nil && ctx.Err() == nil {
			w.opts.Log.Warn("the calls of lost workers cannot be dealt with for the moment", "code", string(lathe.CodeOf(err)))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// hint passes a notification to the connections that it concerns: a cancellation to all, a waiting call to the first one
// that takes it.
func (w *Workers) hint(h remote.Notification) {
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

// Close asks the workers to connect to other gateways and refuses new connections. If ctx is done before all workers have
// disconnected, it closes the remaining connections. Workers keep the calls in progress and send their results to
// another gateway.
func (w *Workers) Close(ctx context.Context) {
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
		c.end(websocket.StatusGoingAway, "the server stops")
	}
	<-over
}
