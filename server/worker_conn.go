package server

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/internal/wire/workers"
	"github.com/lathe-run/lathe/observe"
	"github.com/lathe-run/lathe/remote"
)

// A workerConn is the connection of one worker.
type workerConn struct {
	workers *Workers
	fleet   WorkerPool
	*frameConn
	log     *slog.Logger
	work    sync.WaitGroup
	kick    chan struct{} // there may be something to do; of capacity 1
	keeping chan struct{} // one for each result that is being kept

	done chan struct{} // closed when nothing of the connection is at work any more

	mu       sync.Mutex
	id       string // pool/name; "" until the hello
	instance string // of the process; "": it does not say
	tools    []remote.Tool
	serves   []string // definitions
	refused  map[string]string
	credit   int
	held     map[workers.Ref]time.Time // since when
	unwanted []string                  // keys of calls whose cancellation was requested
	draining bool
	pause    time.Time // no claim before
	put      time.Time // when the worker was put last
}

func newWorkerConn(w *Workers, f *WorkerPool) *workerConn {
	return &workerConn{workers: w, fleet: *f, kick: make(chan struct{}, 1), done: make(chan struct{}), keeping: make(chan struct{}, maxKeeping), frameConn: newFrameConn(w.opts.WriteTimeout), held: map[workers.Ref]time.Time{}, log: w.opts.Log}
}

// serve speaks with the worker until the connection ends.
func (c *workerConn) serve(ws *websocket.Conn) {
	c.ws = ws
	ws.SetReadLimit(workers.MaxHello)
	var closing sync.WaitGroup
	closing.Go(func() {
		<-c.ctx.Done()
		if e := (*closed)(nil); errors.As(context.Cause(c.ctx), &e) && !e.cut {
			_ = ws.Close(e.status, text.Cut(e.reason, 120)) // waits a little for the other side
		}
		_ = ws.CloseNow()
	})
	err := c.greet()
	if err == nil {
		ws.SetReadLimit(workers.MaxFrame)
		c.workers.note(c.fleet.Name, func(n *observe.WorkerCount) { n.Connects++ })
		c.log.Info("a worker has come", "worker", c.id, "tools", len(c.serves), "refused", len(c.refused))
		c.work.Go(c.sendPosts)
		c.work.Go(c.dispatch)
		c.work.Go(c.beat)
		err = c.listen()
	}
	gone := &closed{reason: "the worker has gone", cut: true}
	_ = errors.As(err, &gone)
	c.cancel(gone)
	c.work.Wait()
	closing.Wait()
	if c.id != "" {
		c.log.Info("a worker has gone", "worker", c.id, "why", context.Cause(c.ctx).Error(), "held", len(c.held))
	}
}

// greet takes the hello and answers it.
func (c *workerConn) greet() error {
	if c.ws.Subprotocol() != workers.Protocol {
		return &closed{status: websocket.StatusPolicyViolation, reason: "the subprotocol has to be " + workers.Protocol}
	}
	f, err := c.read(c.workers.opts.HelloTimeout)
	if err != nil {
		return err
	}
	if f.Type != workers.Hello || !workers.ValidName(f.Worker) {
		return &closed{status: websocket.StatusPolicyViolation, reason: "the first frame is a hello with the name of the worker: 1 to 64 of a-z, A-Z, 0-9, _, - and dots"}
	}
	c.mu.Lock()
	c.id, c.instance = c.fleet.Name+"/"+f.Worker, f.Instance
	c.mu.Unlock()
	c.workers.replace(c)
	c.returnLost(f.Held)
	c.setCredit(f.Credits)
	held := make([]remote.Ref, len(f.Held))
	c.mu.Lock()
	for i, ref := range f.Held {
		held[i] = c.ref(ref)
		c.held[ref] = time.Now()
	}
	c.mu.Unlock()
	stop, err := c.workers.opts.Queue.RenewCalls(c.ctx, c.id, held, c.workers.opts.Lease)
	if err != nil {
		return c.unavailable("keep the calls of", err)
	}
	if err := c.offer(f.Offers); err != nil {
		return err
	}
	// The worker sends no frame before it has received this one.
	if !c.write(&workers.Frame{Type: workers.Welcome, LeaseMS: c.workers.opts.Lease.Milliseconds(), AtMS: c.at(), Refused: c.refused}) {
		return context.Cause(c.ctx)
	}
	c.postCancel(stop)
	return nil
}

// unavailable is the end of a connection that cannot be served: the worker comes back.
func (c *workerConn) unavailable(what string, err error) error {
	c.log.Warn("cannot "+what+" a worker", "worker", c.id, "code", string(lathe.CodeOf(err)))
	return &closed{status: websocket.StatusTryAgainLater, reason: "the server cannot reach its store"}
}

// replace ends an older connection of the same worker: it is gone, though it may not have ended.
func (w *Workers) replace(c *workerConn) {
	for _, other := range w.all() {
		if other == c {
			continue
		}
		other.mu.Lock()
		same := other.id == c.id
		other.mu.Unlock()
		if same {
			other.cut("the worker has connected again")
			select {
			case <-other.done:
			case <-c.ctx.Done():
			}
		}
	}
}

func (c *workerConn) ref(r workers.Ref) remote.Ref {
	return remote.Ref{Key: r.Key, Attempt: r.Attempt, Worker: c.id}
}

func (c *workerConn) setCredit(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.credit = max(min(n, workers.MaxHeld), 0)
	if c.fleet.MaxConcurrency > 0 {
		c.credit = min(c.credit, c.fleet.MaxConcurrency)
	}
}

// offer takes what the worker serves.
func (c *workerConn) offer(offers []remote.Tool) error {
	tools, refused := c.fleet.admit(offers)
	more, err := c.announce(tools)
	if err != nil {
		return c.unavailable("keep", err)
	}
	maps.Copy(refused, more)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tools, c.serves, c.refused = tools, nil, refused
	for i := range tools {
		c.serves = append(c.serves, tools[i].Definition())
	}
	return nil
}

func (c *workerConn) announce(tools []remote.Tool) (refused map[string]string, err error) {
	now := time.Now()
	refused, err = c.workers.opts.Registry.Announce(c.ctx, &remote.Worker{ID: c.id, Pool: c.fleet.Name, Tools: tools}, forgetAfter*c.workers.opts.Lease)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put = now
	return refused, err
}

// listen takes frames until the connection ends. A worker that says nothing for a lease is gone.
func (c *workerConn) listen() error {
	for {
		f, err := c.read(c.workers.opts.Lease)
		if err != nil {
			return err
		}
		switch f.Type {
		case workers.Beat:
			err = c.heard(f.Held)
		case workers.Result, workers.Error:
			select {
			case c.keeping <- struct{}{}:
			case <-c.ctx.Done():
				return context.Cause(c.ctx)
			}
			c.work.Go(func() {
				c.settle(f)
				<-c.keeping
			})
		case workers.Tools:
			if err = c.offer(f.Offers); err == nil {
				c.post(&workers.Frame{Type: workers.Tools, Refused: c.refused})
				c.nudge()
			}
		case workers.Credit:
			c.setCredit(f.Credits)
			c.nudge()
		case workers.Drain:
			err = c.drain()
		case workers.Started, workers.Progress: // it lives; the lease is renewed by beats
		}
		if err != nil {
			return err
		}
	}
}

// heard renews the leases of the calls that the worker holds, and the registration of the worker.
func (c *workerConn) heard(held []workers.Ref) error {
	refs := make([]remote.Ref, len(held))
	for i, r := range held {
		refs[i] = c.ref(r)
	}
	stop, err := c.workers.opts.Queue.RenewCalls(c.ctx, c.id, refs, c.workers.opts.Lease)
	if err != nil {
		return c.unavailable("renew the calls of", err)
	}
	c.postCancel(stop)
	c.mu.Lock()
	lost := time.Now().Add(-c.workers.opts.Lease)
	maps.DeleteFunc(c.held, func(r workers.Ref, since time.Time) bool { return since.Before(lost) && !slices.Contains(held, r) })
	due := !c.draining && time.Since(c.put) >= c.workers.opts.Lease
	tools, refused := c.tools, c.refused
	c.mu.Unlock()
	if !due {
		return nil
	}
	if _, err := c.announce(tools); err != nil {
		return c.unavailable("keep", err)
	}
	next := map[string]string{}
	maps.Copy(next, c.workers.opts.Registry.Refused(c.id))
	for name, why := range refused { // what the token may not serve is not among the tools
		if !slices.ContainsFunc(tools, func(t remote.Tool) bool { return t.Name == name }) {
			next[name] = why
		}
	}
	if !maps.Equal(next, refused) {
		c.mu.Lock()
		c.refused = next
		c.mu.Unlock()
		c.post(&workers.Frame{Type: workers.Tools, Refused: next})
	}
	return nil
}

// drain stops giving calls to the worker. Tools that no other worker serves are removed.
func (c *workerConn) drain() error {
	c.mu.Lock()
	c.draining = true
	c.mu.Unlock()
	if _, err := c.workers.opts.Registry.Announce(c.ctx, &remote.Worker{ID: c.id, Pool: c.fleet.Name}, 0); err != nil {
		return c.unavailable("forget", err)
	}
	return nil
}

// beat lets the worker know that the gateway lives.
func (c *workerConn) beat() {
	tick := time.NewTicker(c.workers.opts.Lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c.write(&workers.Frame{Type: workers.Beat, AtMS: c.at()})
		case <-c.ctx.Done():
			return
		}
	}
}

// sendAway asks the worker to go to another gateway.
func (c *workerConn) sendAway() {
	c.mu.Lock()
	known := c.id != ""
	c.draining = true
	c.mu.Unlock()
	if known {
		c.write(&workers.Frame{Type: workers.Drain})
	} else {
		c.end(websocket.StatusGoingAway, "the server stops")
	}
}
