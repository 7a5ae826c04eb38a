package gateway

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
	"github.com/lathe-run/lathe/internal/wire/fleet"
	"github.com/lathe-run/lathe/observe"
)

// A Roster says what becomes of the tools that workers offer. The methods may be called from several goroutines at once.
type Roster interface {
	// Announce keeps what a worker says of itself for as long as ttl, and returns which of its tools are
	// refused, and why.
	Announce(ctx context.Context, w *lathe.Worker, ttl time.Duration) (refused map[string]string, err error)
	// Refused returns that at another time.
	Refused(worker string) map[string]string
}

// WorkerOptions say how workers are served. They are copied.
type WorkerOptions struct {
	Queue  lathe.CallQueue // required
	Roster Roster          // required
	Fleets []Fleet
	// Lease is how long a worker may say nothing before its calls are given to others, or are unknown: 10 s.
	Lease        time.Duration
	MaxWorkers   int           // 1 024 connections
	WriteTimeout time.Duration // 10 s for one frame; who takes longer is cut
	HelloTimeout time.Duration // 10 s for the first frame
	Poll         time.Duration // 1 s until a call is found without a hint
	Log          *slog.Logger  // of workers that come and go, and of results that do not count; nil: nothing is logged
}

const (
	// forgetAfter is how many leases a worker is remembered, with its tools, after its gateway has gone without a word.
	forgetAfter = 6
	// forgetLost is how many that is after the worker itself has. One that has come to another gateway meanwhile has been
	// put again there by then.
	forgetLost = 2
)

// Workers takes the connections of workers, and gives them the calls of a queue. It is the handler of
// [fleet.Path].
type Workers struct {
	opts WorkerOptions

	mu      sync.Mutex
	fleets  *fleets
	conns   map[*workerConn]struct{}
	counts  map[string]*observe.WorkerCount // of what was, by fleet
	lost    map[string]*lostCalls           // by worker
	closing bool
	serving sync.WaitGroup // of connections
}

// NewWorkers makes the handler.
func NewWorkers(opts *WorkerOptions) (*Workers, error) {
	if opts == nil || opts.Queue == nil || opts.Roster == nil {
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
	return w, w.Reload(opts.Fleets)
}

// CheckFleets returns an error if [NewWorkers] or [Workers.Reload] would refuse the fleets.
func CheckFleets(fleets []Fleet) error {
	if _, err := newFleets(fleets); err != nil {
		return invalid("workers", err)
	}
	return nil
}

// Reload replaces the fleets, all or, with an error, none. Workers whose fleet has changed are cut: they come back.
func (w *Workers) Reload(in []Fleet) error {
	next, err := newFleets(in)
	if err != nil {
		return invalid("workers", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fleets = next
	maps.DeleteFunc(w.counts, func(name string, _ *observe.WorkerCount) bool { return !next.named(name) })
	for c := range w.conns {
		if !next.has(&c.fleet) {
			c.end(websocket.StatusPolicyViolation, "the token has changed")
		}
	}
	return nil
}

// ServeHTTP takes the connection of a worker, and returns when it has ended.
func (w *Workers) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	c, p := w.admit(r)
	if p != nil {
		if p.Status == http.StatusUnauthorized {
			rw.Header().Set("WWW-Authenticate", `Bearer realm="lathe workers"`)
		}
		http.Error(rw, p.Message, p.Status)
		return
	}
	defer w.serving.Done()
	defer close(c.done)
	defer w.remove(c)
	defer c.cancel(nil)
	ws, err := websocket.Accept(rw, r, &websocket.AcceptOptions{Subprotocols: []string{fleet.Protocol},
		CompressionMode: websocket.CompressionDisabled, InsecureSkipVerify: true}) // no Origin has come this far
	if err != nil {
		return // answered
	}
	c.serve(ws)
}

// admit says whether the request may become a connection. One that may is counted.
func (w *Workers) admit(r *http.Request) (*workerConn, *problem) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.fleets.of(r)
	switch {
	case r.Method != http.MethodGet:
		return nil, &problem{Status: http.StatusMethodNotAllowed, Message: "Workers connect with GET."}
	case r.Header.Get("Origin") != "":
		return nil, &problem{Status: http.StatusForbidden, Message: "Workers are no pages: a request with an Origin is refused."}
	case f == nil:
		return nil, &problem{Status: http.StatusUnauthorized, Message: "Send the token of a worker: Authorization: Bearer TOKEN. It stands under workers in lathe.yaml."}
	case w.closing:
		return nil, &problem{Status: http.StatusServiceUnavailable, Message: "The server is about to stop; try again."}
	case len(w.conns) >= w.opts.MaxWorkers:
		return nil, &problem{Status: http.StatusServiceUnavailable, Message: "The server has too many workers."}
	}
	c := newWorkerConn(w, f)
	w.conns[c] = struct{}{}
	w.serving.Add(1)
	return c, nil
}

func (w *Workers) remove(c *workerConn) {
	w.lose(c)
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

// Serve deals with the calls whose lease or time has ended, and tells connections of calls that wait,
// until ctx is done. It begins with that after one lease: workers whose gateway was gone need it to come
// back with the calls that they have. It is called once.
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
		if _, err := w.opts.Queue.ReapCalls(ctx); err != nil && ctx.Err() == nil {
			w.opts.Log.Warn("the calls of lost workers cannot be dealt with for the moment", "code", string(lathe.CodeOf(err)))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// hint passes a hint to whom it is for. A call that waits needs one worker.
func (w *Workers) hint(h lathe.CallHint) {
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

// Close sends the workers to other gateways and takes no more. When ctx is done before all have gone,
// the rest is cut. Calls that are on their way stay with their workers, who tell the results elsewhere.
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
