package workers

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire/workers"
	"github.com/lathe-run/lathe/observe"
	"github.com/lathe-run/lathe/remote"
)

// A conn is the connection of one worker. The goroutine of serve reads its frames: a hello, which greet answers, and then those of listen.
// dispatch claims calls, beat sends beats, sendPosts sends the frames of outbox, and each result is stored by a goroutine of its own.
type conn struct {
	handler *Handler
	opts    *Options // of the handler
	pool    Pool
	*frameConn
	work    sync.WaitGroup // the goroutines that serve has started
	kick    chan struct{}  // wakes dispatch; capacity 1
	storing chan struct{}  // one element for each result that is being stored
	done    chan struct{}  // closed when all goroutines of the connection have ended

	mu sync.Mutex // guards all fields below

	// Only the goroutine of serve sets these fields, so it reads them without the lock. id and instance do not change after greet.
	id        string // POOL/NAME; "" until the hello is received
	instance  string // id of the worker's process; "": not given
	tools     []remote.Tool
	serves    []string          // definitions of the tools that the worker serves
	refused   map[string]string // reason by name of each tool that is not served
	announced time.Time         // time of the last Announce
	credit    int               // the maximum of len(held)

	held     map[workers.Ref]time.Time // calls assigned to the worker, with the time of assignment
	unwanted []string                  // keys of calls whose cancellation was requested
	draining bool                      // the worker gets no more calls
	pause    time.Time                 // no calls are claimed before this time
}

func newConn(h *Handler, pool *Pool) *conn {
	return &conn{
		handler: h, opts: &h.opts, pool: *pool, frameConn: newFrameConn(h.opts.WriteTimeout),
		kick: make(chan struct{}, 1), storing: make(chan struct{}, maxStoring), done: make(chan struct{}),
		held: map[workers.Ref]time.Time{},
	}
}

// serve exchanges frames with the worker until the connection ends.
func (c *conn) serve(ws *websocket.Conn) {
	c.ws = ws
	ws.SetReadLimit(workers.MaxHello)
	var closing sync.WaitGroup
	closing.Go(c.closeWhenDone)
	err := c.greet()
	if err == nil {
		ws.SetReadLimit(workers.MaxFrame)
		c.handler.note(c.pool.Name, func(n *observe.WorkerCount) { n.Connects++ })
		c.opts.Log.Info("a worker has come", "worker", c.id, "tools", len(c.serves), "refused", len(c.refused))
		c.work.Go(c.sendPosts)
		c.work.Go(c.dispatch)
		c.work.Go(func() { c.beat(c.opts.Lease / 3) }) // so that the worker can detect a lost gateway
		err = c.listen()
	}
	var end *closeError
	if !errors.As(err, &end) { // the worker or the network has ended the connection
		end = &closeError{reason: "the worker has gone", cut: true}
	}
	c.cancel(end)
	c.work.Wait()
	closing.Wait()
	if c.id != "" {
		c.opts.Log.Info("a worker has gone", "worker", c.id, "why", context.Cause(c.ctx).Error(), "held", len(c.held))
	}
}

// greet receives the hello frame, assigns the calls that the worker already has, registers its tools and answers with welcome.
func (c *conn) greet() error {
	f, err := c.hello(c.opts.HelloTimeout)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.id, c.instance = c.pool.Name+"/"+f.Worker, f.Instance
	c.mu.Unlock()
	c.handler.replace(c)
	c.handler.returnLost(c, f.Held)
	c.setCredit(f.Credits)
	c.mu.Lock()
	for _, ref := range f.Held {
		c.held[ref] = time.Now()
	}
	c.mu.Unlock()
	cancelled, err := c.renewCalls(f.Held)
	if err != nil {
		return c.unavailable("keep the calls of", err)
	}
	if err := c.offer(f.Offers); err != nil {
		return err
	}
	// The worker sends no other frame until it has received welcome.
	if !c.write(&workers.Frame{Type: workers.Welcome, LeaseMS: c.opts.Lease.Milliseconds(), AtMS: c.at(), Refused: c.refused}) {
		return context.Cause(c.ctx)
	}
	c.postCancel(cancelled)
	return nil
}

// renewCalls renews the leases of calls of the worker, and returns those of which a cancellation was requested.
func (c *conn) renewCalls(held []workers.Ref) (cancelled []remote.Ref, err error) {
	refs := make([]remote.Ref, len(held))
	for i, r := range held {
		refs[i] = c.ref(r)
	}
	return c.opts.Queue.RenewCalls(c.ctx, c.id, refs, c.opts.Lease)
}

// unavailable logs that the store cannot be reached for what is to be done with the worker, such as "renew the calls of". It returns the error
// that ends the connection with the status "try again later". The worker then reconnects.
func (c *conn) unavailable(what string, err error) error {
	c.opts.Log.Warn("cannot "+what+" a worker", "worker", c.id, "code", lathe.CodeOf(err))
	return closing(websocket.StatusTryAgainLater, "the gateway cannot reach its store")
}

// replace ends an older connection of the same worker, which has lost it even if the connection is still open, and waits for its end.
func (h *Handler) replace(c *conn) {
	for _, other := range h.all() {
		if other == c || !other.hasID(c.id) {
			continue
		}
		other.cut("the worker has connected again")
		select {
		case <-other.done:
		case <-c.ctx.Done():
		}
	}
}

// hasID reports whether c is a connection of the worker with this id.
func (c *conn) hasID(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.id == id
}

func (c *conn) ref(r workers.Ref) remote.Ref {
	return remote.Ref{Key: r.Key, Attempt: r.Attempt, Worker: c.id}
}

func (c *conn) setCredit(n int) {
	most := workers.MaxHeld
	if c.pool.MaxConcurrency > 0 {
		most = min(most, c.pool.MaxConcurrency)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.credit = max(min(n, most), 0)
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

// announce stores the registration of the worker, and returns the reason by name for each tool that the registry refuses.
func (c *conn) announce(tools []remote.Tool) (refused map[string]string, err error) {
	now := time.Now()
	refused, err = c.opts.Registry.Announce(c.ctx, &remote.Worker{ID: c.id, Pool: c.pool.Name, Tools: tools}, forgetAfter*c.opts.Lease)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.announced = now
	return refused, err
}

// listen handles frames until the connection ends. If no frame is received for one lease, the worker is considered lost.
func (c *conn) listen() error {
	for {
		f, err := c.read(c.opts.Lease)
		if err != nil {
			return err
		}
		switch f.Type {
		case workers.Beat:
			if err = c.renew(f.Held); err == nil {
				err = c.register()
			}
		case workers.Result, workers.Error:
			err = c.startSettling(f)
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

// startSettling calls settle for a result. If maxStoring results are being stored, it first waits for one of them.
func (c *conn) startSettling(f *workers.Frame) error {
	select {
	case c.storing <- struct{}{}:
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	}
	c.work.Go(func() {
		c.settle(f)
		<-c.storing
	})
	return nil
}

// renew renews the leases of the calls that the worker reports in a beat, and forgets those that it has not reported for one lease.
func (c *conn) renew(held []workers.Ref) error {
	cancelled, err := c.renewCalls(held)
	if err != nil {
		return c.unavailable("renew the calls of", err)
	}
	c.postCancel(cancelled)
	c.mu.Lock()
	defer c.mu.Unlock()
	lost := time.Now().Add(-c.opts.Lease)
	maps.DeleteFunc(c.held, func(r workers.Ref, since time.Time) bool { return since.Before(lost) && !slices.Contains(held, r) })
	return nil
}

// register renews the registration of the worker once per lease. It sends the worker the refused tools if they have changed.
func (c *conn) register() error {
	c.mu.Lock()
	due := !c.draining && time.Since(c.announced) >= c.opts.Lease
	c.mu.Unlock()
	if !due {
		return nil
	}
	if _, err := c.announce(c.tools); err != nil {
		return c.unavailable("keep", err)
	}
	refused := map[string]string{}
	maps.Copy(refused, c.opts.Registry.Refused(c.id))
	for name, why := range c.refused { // tools that the token does not allow are not in tools
		if !slices.ContainsFunc(c.tools, func(t remote.Tool) bool { return t.Name == name }) {
			refused[name] = why
		}
	}
	if maps.Equal(refused, c.refused) {
		return nil
	}
	c.mu.Lock()
	c.refused = refused
	c.mu.Unlock()
	c.post(&workers.Frame{Type: workers.Tools, Refused: refused})
	return nil
}

// drain stops assigning calls to the worker and removes its registration. Tools that no other worker serves are thereby removed.
func (c *conn) drain() error {
	c.mu.Lock()
	c.draining = true
	c.mu.Unlock()
	if _, err := c.opts.Registry.Announce(c.ctx, &remote.Worker{ID: c.id, Pool: c.pool.Name}, 0); err != nil {
		return c.unavailable("forget", err)
	}
	return nil
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
