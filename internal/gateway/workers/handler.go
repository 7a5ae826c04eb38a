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
	counts  map[string]*observe.WorkerCount // event counts of each pool of pools, by name
	lost    map[string]*lostCalls           // by worker id
	closing bool
	serving sync.WaitGroup // connections being served
}

// New returns a handler, or an error if the options are not valid. The caller must call [Handler.Serve].
func New(opts *Options) (*Handler, error) {
	if opts == nil || opts.Queue == nil || opts.Registry == nil {
		return nil, errors.New("a queue and a registry are required")
	}
	h := &Handler{opts: *opts, conns: map[*conn]struct{}{}, lost: map[string]*lostCalls{}}
	if err := setting.Check(&h.opts); err != nil {
		return nil, err
	}
	setting.Fill(&h.opts)
	h.opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	return h, h.Reload(opts.Pools)
}

// CheckPools returns the error that [New] and [Handler.Reload] return for the worker pools.
func CheckPools(in []Pool) error {
	_, err := newPools(in)
	return err
}

// Reload replaces all worker pools. If it returns an error, none has changed. It disconnects the workers whose pool has changed, which then
// reconnect.
func (h *Handler) Reload(in []Pool) error {
	next, err := newPools(in)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pools = next
	counts := map[string]*observe.WorkerCount{}
	for _, p := range next.all {
		counts[p.Name] = cmp.Or(h.counts[p.Name], &observe.WorkerCount{Pool: p.Name})
	}
	h.counts = counts
	for c := range h.conns {
		if !next.has(&c.pool) {
			c.end(websocket.StatusPolicyViolation, "the token has changed")
		}
	}
	return nil
}

// Authenticate returns the pool whose token the request has, or a problem with status 401.
func (h *Handler) Authenticate(r *http.Request) (*Pool, *problem.Problem) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pools.authenticate(r)
}

// Connect serves the connection of a worker of a pool until it ends. If it returns a problem, nothing was written and the caller must
// respond with it.
func (h *Handler) Connect(rw http.ResponseWriter, r *http.Request, pool *Pool) *problem.Problem {
	c, p := h.admit(pool)
	if p != nil {
		return p
	}
	defer h.serving.Done()
	defer close(c.done)
	defer h.remove(c)
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
func (h *Handler) admit(pool *Pool) (*conn, *problem.Problem) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closing:
		return nil, problem.New(http.StatusServiceUnavailable, "draining", "The gateway is about to stop; try again.")
	case len(h.conns) >= h.opts.MaxWorkers:
		return nil, problem.New(http.StatusServiceUnavailable, "overloaded", "The gateway has too many workers.")
	}
	c := newConn(h, pool)
	if !h.pools.has(pool) { // the pools were reloaded after the token was checked
		return nil, problem.New(http.StatusUnauthorized, "invalid_worker_token", "The token has changed.")
	}
	h.conns[c] = struct{}{}
	h.serving.Add(1)
	return c, nil
}

func (h *Handler) remove(c *conn) {
	h.noteLost(c)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.conns, c)
}

// all returns the current connections.
func (h *Handler) all() []*conn {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.conns))
}

// Serve handles calls whose lease or time limit has expired (it ends them or returns them to the queue), and notifies connections of
// waiting calls, until ctx is done. It handles expired calls only after one lease, so that the workers of a restarted gateway can reconnect
// with their calls first. The caller calls Serve once.
func (h *Handler) Serve(ctx context.Context) {
	var watching sync.WaitGroup
	watching.Go(func() { h.watch(ctx) })
	defer watching.Wait()
	select {
	case <-time.After(h.opts.Lease):
	case <-ctx.Done():
		return
	}
	tick := time.Tick(max(h.opts.Lease/10, 50*time.Millisecond))
	for {
		if _, err := h.opts.Queue.ExpireCalls(ctx); err != nil && ctx.Err() == nil {
			h.opts.Log.Warn("the calls of lost workers cannot be dealt with for the moment", "code", lathe.CodeOf(err))
		}
		select {
		case <-tick:
		case <-ctx.Done():
			return
		}
	}
}

// watch passes the notifications of the queue to notify until ctx is done.
func (h *Handler) watch(ctx context.Context) {
	for ctx.Err() == nil {
		if err := h.opts.Queue.WatchCalls(ctx, h.notify); err != nil && ctx.Err() == nil {
			h.opts.Log.Warn("hints of calls are lost for the moment", "code", lathe.CodeOf(err))
		}
		select {
		case <-time.After(h.opts.Poll):
		case <-ctx.Done():
		}
	}
}

// notify passes a notification of the queue to the connections concerned: a cancellation to all, and a waiting call to the first connection
// that can claim it.
func (h *Handler) notify(n remote.Notification) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.conns {
		if n.Cancelled {
			c.wantCancelled(n.Key)
		} else if n.Definition != "" && c.wakeFor(n.Definition) {
			return
		}
	}
}

// Close requests that the workers connect to other gateways, and refuses new connections. If ctx is done before all workers have
// disconnected, it closes the remaining connections. Workers continue the calls in progress and send their results to another gateway.
func (h *Handler) Close(ctx context.Context) {
	h.mu.Lock()
	h.closing = true
	h.mu.Unlock()
	var sending sync.WaitGroup
	for _, c := range h.all() {
		sending.Go(c.sendAway)
	}
	ended := make(chan struct{})
	go func() {
		sending.Wait()
		h.serving.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return
	case <-ctx.Done():
	}
	for _, c := range h.all() {
		c.end(websocket.StatusGoingAway, "the gateway stops")
	}
	<-ended
}
