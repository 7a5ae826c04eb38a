package workers

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

// A conn is the connection of one worker.
type conn struct {
	handler *Handler
	pool    Pool
	*frameConn
	log     *slog.Logger
	work    sync.WaitGroup
	kick    chan struct{} // wakes dispatch; capacity 1
	keeping chan struct{} // one element for each result that is being stored

	done chan struct{} // closed when all goroutines of the connection have ended

	mu       sync.Mutex
	id       string // POOL/NAME; "" until the hello is received
	instance string // id of the worker's process; "": not given
	tools    []remote.Tool
	serves   []string          // definitions of the tools that the worker serves
	refused  map[string]string // reason by name of each tool that is not served
	credit   int
	held     map[workers.Ref]time.Time // calls assigned to the worker, with the time of assignment
	unwanted []string                  // keys of calls whose cancellation was requested
	draining bool
	pause    time.Time // no calls are claimed before this time
	put      time.Time // time of the last Announce
}

func newConn(w *Handler, f *Pool) *conn {
	return &conn{handler: w, pool: *f, kick: make(chan struct{}, 1), done: make(chan struct{}), keeping: make(chan struct{}, maxKeeping), frameConn: newFrameConn(w.opts.WriteTimeout), held: map[workers.Ref]time.Time{}, log: w.opts.Log}
}

// serve exchanges frames with the worker until the connection ends.
func (c *conn) serve(ws *websocket.Conn) {
	c.ws = ws
	ws.SetReadLimit(workers.MaxHello)
	var closing sync.WaitGroup
	closing.Go(func() {
		<-c.ctx.Done()
		if e := (*closed)(nil); errors.As(context.Cause(c.ctx), &e) && !e.cut {
			_ = ws.Close(e.status, text.Cut(e.reason, 120)) // waits briefly for the close frame of the worker
		}
		_ = ws.CloseNow()
	})
	err := c.greet()
	if err == nil {
		ws.SetReadLimit(workers.MaxFrame)
		c.handler.note(c.pool.Name, func(n *observe.WorkerCount) { n.Connects++ })
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

// greet receives the hello frame, assigns the calls that the worker already has, registers its tools and answers with welcome.
func (c *conn) greet() error {
	if c.ws.Subprotocol() != workers.Protocol {
		return &closed{status: websocket.StatusPolicyViolation, reason: "the subprotocol has to be " + workers.Protocol}
	}
	f, err := c.read(c.handler.opts.HelloTimeout)
	if err != nil {
		return err
	}
	if f.Type != workers.Hello || !workers.ValidName(f.Worker) {
		return &closed{status: websocket.StatusPolicyViolation, reason: "the first frame is a hello with the name of the worker: 1 to 64 of a-z, A-Z, 0-9, _, - and dots"}
	}
	c.mu.Lock()
	c.id, c.instance = c.pool.Name+"/"+f.Worker, f.Instance
	c.mu.Unlock()
	c.handler.replace(c)
	c.returnLost(f.Held)
	c.setCredit(f.Credits)
	held := make([]remote.Ref, len(f.Held))
	c.mu.Lock()
	for i, ref := range f.Held {
		held[i] = c.ref(ref)
		c.held[ref] = time.Now()
	}
	c.mu.Unlock()
	stop, err := c.handler.opts.Queue.RenewCalls(c.ctx, c.id, held, c.handler.opts.Lease)
	if err != nil {
		return c.unavailable("keep the calls of", err)
	}
	if err := c.offer(f.Offers); err != nil {
		return err
	}
	// The worker sends no other frame until it has received welcome.
	if !c.write(&workers.Frame{Type: workers.Welcome, LeaseMS: c.handler.opts.Lease.Milliseconds(), AtMS: c.at(), Refused: c.refused}) {
		return context.Cause(c.ctx)
	}
	c.postCancel(stop)
	return nil
}

// unavailable logs err and returns the error that ends the connection with the status "try again later". The worker then reconnects.
func (c *conn) unavailable(what string, err error) error {
	c.log.Warn("cannot "+what+" a worker", "worker", c.id, "code", lathe.CodeOf(err))
	return &closed{status: websocket.StatusTryAgainLater, reason: "the gateway cannot reach its store"}
}

// replace ends an older connection of the same worker, which has lost it even if the connection is still open, and waits for its end.
func (w *Handler) replace(c *conn) {
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

func (c *conn) ref(r workers.Ref) remote.Ref {
	return remote.Ref{Key: r.Key, Attempt: r.Attempt, Worker: c.id}
}

func (c *conn) setCredit(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.credit = max(min(n, workers.MaxHeld), 0)
	if c.pool.MaxConcurrency > 0 {
		c.credit = min(c.credit, c.pool.MaxConcurrency)
	}
}

// offer registers the tools that the worker offers, and records which of them it serves and which are refused.
func (c *conn) offer(offers []remote.Tool) error {
	tools, refused := c.pool.admit(offers)
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

func (c *conn) announce(tools []remote.Tool) (refused map[string]string, err error) {
	now := time.Now()
	refused, err = c.handler.opts.Registry.Announce(c.ctx, &remote.Worker{ID: c.id, Pool: c.pool.Name, Tools: tools}, forgetAfter*c.handler.opts.Lease)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put = now
	return refused, err
}

// listen handles frames until the connection ends. If no frame is received for one lease, the worker is considered lost.
func (c *conn) listen() error {
	for {
		f, err := c.read(c.handler.opts.Lease)
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
		case workers.Started, workers.Progress: // any frame shows that the worker is alive; only beats renew the leases
		}
		if err != nil {
			return err
		}
	}
}

// heard handles a beat: it renews the leases of the calls that the worker reports and, once per lease, the registration of the worker.
func (c *conn) heard(held []workers.Ref) error {
	refs := make([]remote.Ref, len(held))
	for i, r := range held {
		refs[i] = c.ref(r)
	}
	stop, err := c.handler.opts.Queue.RenewCalls(c.ctx, c.id, refs, c.handler.opts.Lease)
	if err != nil {
		return c.unavailable("renew the calls of", err)
	}
	c.postCancel(stop)
	c.mu.Lock()
	lost := time.Now().Add(-c.handler.opts.Lease)
	maps.DeleteFunc(c.held, func(r workers.Ref, since time.Time) bool { return since.Before(lost) && !slices.Contains(held, r) })
	due := !c.draining && time.Since(c.put) >= c.handler.opts.Lease
	tools, refused := c.tools, c.refused
	c.mu.Unlock()
	if !due {
		return nil
	}
	if _, err := c.announce(tools); err != nil {
		return c.unavailable("keep", err)
	}
	next := map[string]string{}
	maps.Copy(next, c.handler.opts.Registry.Refused(c.id))
	for name, why := range refused { // tools that the token does not allow are not in tools
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

// drain stops assigning calls to the worker and removes its registration. Tools that no other worker serves are thereby removed.
func (c *conn) drain() error {
	c.mu.Lock()
	c.draining = true
	c.mu.Unlock()
	if _, err := c.handler.opts.Registry.Announce(c.ctx, &remote.Worker{ID: c.id, Pool: c.pool.Name}, 0); err != nil {
		return c.unavailable("forget", err)
	}
	return nil
}

// beat sends a beat frame three times per lease, so that the worker can detect a lost gateway.
func (c *conn) beat() {
	tick := time.Tick(c.handler.opts.Lease / 3)
	for {
		select {
		case <-tick:
			c.write(&workers.Frame{Type: workers.Beat, AtMS: c.at()})
		case <-c.ctx.Done():
			return
		}
	}
}

// sendAway requests that the worker connect to another gateway.
func (c *conn) sendAway() {
	c.mu.Lock()
	known := c.id != ""
	c.draining = true
	c.mu.Unlock()
	if known {
		c.write(&workers.Frame{Type: workers.Drain})
	} else {
		c.end(websocket.StatusGoingAway, "the gateway stops")
	}
}
