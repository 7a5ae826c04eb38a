package gateway

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
	"github.com/lathe-run/lathe/internal/wire/fleet"
	"github.com/lathe-run/lathe/observe"
)

// A workerConn is the connection of one worker.
type workerConn struct {
	workers *Workers
	fleet   Fleet
	began   time.Time
	ctx     context.Context
	cancel  context.CancelCauseFunc
	ws      *websocket.Conn
	log     *slog.Logger
	work    sync.WaitGroup
	kick    chan struct{} // there may be something to do; room for one
	keeping chan struct{} // one for each result that is being kept
	// outbox has what the goroutine that reads has to say: if it wrote, two sides that write could wait for each other.
	outbox chan *fleet.Frame

	done chan struct{} // closed when nothing of the connection is at work any more

	mu       sync.Mutex
	id       string // fleet/name; "" until the hello
	instance string // of the process; "": it does not say
	tools    []lathe.WorkerTool
	serves   []string // definitions
	refused  map[string]string
	credit   int
	held     map[fleet.Ref]time.Time // since when
	unwanted []string                // keys of calls that somebody wants cancelled
	draining bool
	pause    time.Time // no claim before
	put      time.Time // when the worker was put last
}

// closed is why a connection ends.
type closed struct {
	status websocket.StatusCode
	reason string
	cut    bool // the worker does not listen: there is no use in telling it
}

func (e *closed) Error() string { return e.reason }

func newWorkerConn(w *Workers, f *Fleet) *workerConn {
	c := &workerConn{workers: w, fleet: *f, began: time.Now(), kick: make(chan struct{}, 1), done: make(chan struct{}), keeping: make(chan struct{}, maxKeeping), outbox: make(chan *fleet.Frame, maxOutbox), held: map[fleet.Ref]time.Time{}, log: w.opts.Log}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	return c
}

// end ends the connection; only the first reason counts.
func (c *workerConn) end(status websocket.StatusCode, reason string) {
	c.cancel(&closed{status: status, reason: reason})
}

// cut ends the connection without a word.
func (c *workerConn) cut(reason string) { c.cancel(&closed{reason: reason, cut: true}) }

// serve speaks with the worker until the connection ends.
func (c *workerConn) serve(ws *websocket.Conn) {
	c.ws = ws
	ws.SetReadLimit(fleet.MaxHello)
	var closing sync.WaitGroup
	closing.Go(func() {
		<-c.ctx.Done()
		if e := (*closed)(nil); errors.As(context.Cause(c.ctx), &e) && !e.cut {
			_ = ws.Close(e.status, clip(e.reason, 120)) // waits a little for the other side
		}
		_ = ws.CloseNow()
	})
	err := c.greet()
	if err == nil {
		ws.SetReadLimit(fleet.MaxFrame)
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

// read takes the next frame, which has to come within the time. The end of the connection ends it.
func (c *workerConn) read(within time.Duration) (*fleet.Frame, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	kind, b, err := c.ws.Read(ctx)
	switch {
	case c.ctx.Err() != nil:
		return nil, context.Cause(c.ctx)
	case ctx.Err() != nil:
		return nil, &closed{reason: "nothing was heard of the worker in its time", cut: true}
	case err != nil:
		return nil, err
	case kind != websocket.MessageText:
		return nil, &closed{status: websocket.StatusUnsupportedData, reason: "frames are text"}
	}
	f, err := fleet.Decode(b)
	if err != nil {
		return nil, &closed{status: websocket.StatusInvalidFramePayloadData, reason: err.Error()}
	}
	if f.Type == fleet.Tools && len(b) > fleet.MaxHello {
		return nil, &closed{status: websocket.StatusMessageTooBig, reason: "the definitions are too large"}
	}
	return f, nil
}

// write sends a frame. Where that fails, or takes too long, the connection is cut.
func (c *workerConn) write(f *fleet.Frame) bool {
	b, err := fleet.Encode(f)
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), c.workers.opts.WriteTimeout)
		err = c.ws.Write(ctx, websocket.MessageText, b)
		cancel()
	}
	if err != nil {
		c.cut("the worker does not take what it is sent")
	}
	return err == nil
}

// post sends a frame later. A worker that does not take what it is sent is cut.
func (c *workerConn) post(f *fleet.Frame) {
	select {
	case c.outbox <- f:
	default:
		c.cut("the worker does not take what it is sent")
	}
}

func (c *workerConn) sendPosts() {
	for {
		select {
		case f := <-c.outbox:
			c.write(f)
		case <-c.ctx.Done():
			return
		}
	}
}

// at is the time on the clock of the connection.
func (c *workerConn) at() int64 { return time.Since(c.began).Milliseconds() }

// greet takes the hello and answers it.
func (c *workerConn) greet() error {
	if c.ws.Subprotocol() != fleet.Protocol {
		return &closed{status: websocket.StatusPolicyViolation, reason: "the subprotocol has to be " + fleet.Protocol}
	}
	f, err := c.read(c.workers.opts.HelloTimeout)
	if err != nil {
		return err
	}
	if f.Type != fleet.Hello || !fleet.ValidName(f.Worker) {
		return &closed{status: websocket.StatusPolicyViolation, reason: "the first frame is a hello with the name of the worker: 1 to 64 of a-z, A-Z, 0-9, _, - and dots"}
	}
	c.mu.Lock()
	c.id, c.instance = c.fleet.Name+"/"+f.Worker, f.Instance
	c.mu.Unlock()
	c.workers.replace(c)
	c.recall(f.Held)
	c.setCredit(f.Credits)
	held := make([]lathe.CallRef, len(f.Held))
	c.mu.Lock()
	for i, ref := range f.Held {
		held[i] = c.ref(ref)
		c.held[ref] = time.Now()
	}
	c.mu.Unlock()
	stop, err := c.workers.opts.Queue.BeatCalls(c.ctx, c.id, held, c.workers.opts.Lease)
	if err != nil {
		return c.unavailable("keep the calls of", err)
	}
	if err := c.offer(f.Offers); err != nil {
		return err
	}
	// The worker says nothing before it has heard this.
	if !c.write(&fleet.Frame{Type: fleet.Welcome, LeaseMS: c.workers.opts.Lease.Milliseconds(), AtMS: c.at(), Refused: c.refused}) {
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

func (c *workerConn) ref(r fleet.Ref) lathe.CallRef {
	return lathe.CallRef{Key: r.Key, Attempt: r.Attempt, Worker: c.id}
}

func (c *workerConn) setCredit(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.credit = max(min(n, fleet.MaxHeld), 0)
	if c.fleet.MaxConcurrency > 0 {
		c.credit = min(c.credit, c.fleet.MaxConcurrency)
	}
}

// offer takes what the worker serves.
func (c *workerConn) offer(offers []lathe.WorkerTool) error {
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

func (c *workerConn) announce(tools []lathe.WorkerTool) (refused map[string]string, err error) {
	now := time.Now()
	refused, err = c.workers.opts.Roster.Announce(c.ctx, &lathe.Worker{ID: c.id, Fleet: c.fleet.Name, Tools: tools}, forgetAfter*c.workers.opts.Lease)
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
		case fleet.Beat:
			err = c.heard(f.Held)
		case fleet.Result, fleet.Error:
			select {
			case c.keeping <- struct{}{}:
			case <-c.ctx.Done():
				return context.Cause(c.ctx)
			}
			c.work.Go(func() {
				c.settle(f)
				<-c.keeping
			})
		case fleet.Tools:
			if err = c.offer(f.Offers); err == nil {
				c.post(&fleet.Frame{Type: fleet.Tools, Refused: c.refused})
				c.nudge()
			}
		case fleet.Credit:
			c.setCredit(f.Credits)
			c.nudge()
		case fleet.Drain:
			err = c.drain()
		case fleet.Started, fleet.Progress: // it lives; the lease is renewed by beats
		}
		if err != nil {
			return err
		}
	}
}

// heard renews what a worker says that it holds, and the worker itself.
func (c *workerConn) heard(held []fleet.Ref) error {
	refs := make([]lathe.CallRef, len(held))
	for i, r := range held {
		refs[i] = c.ref(r)
	}
	stop, err := c.workers.opts.Queue.BeatCalls(c.ctx, c.id, refs, c.workers.opts.Lease)
	if err != nil {
		return c.unavailable("renew the calls of", err)
	}
	c.postCancel(stop)
	c.mu.Lock()
	lost := time.Now().Add(-c.workers.opts.Lease)
	maps.DeleteFunc(c.held, func(r fleet.Ref, since time.Time) bool { return since.Before(lost) && !slices.Contains(held, r) })
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
	maps.Copy(next, c.workers.opts.Roster.Refused(c.id))
	for name, why := range refused { // what the token may not serve is not among the tools
		if !slices.ContainsFunc(tools, func(t lathe.WorkerTool) bool { return t.Name == name }) {
			next[name] = why
		}
	}
	if !maps.Equal(next, refused) {
		c.mu.Lock()
		c.refused = next
		c.mu.Unlock()
		c.post(&fleet.Frame{Type: fleet.Tools, Refused: next})
	}
	return nil
}

// drain has the worker get no more calls, and its tools go where no other worker has them.
func (c *workerConn) drain() error {
	c.mu.Lock()
	c.draining = true
	c.mu.Unlock()
	if _, err := c.workers.opts.Roster.Announce(c.ctx, &lathe.Worker{ID: c.id, Fleet: c.fleet.Name}, 0); err != nil {
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
			c.write(&fleet.Frame{Type: fleet.Beat, AtMS: c.at()})
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
		c.write(&fleet.Frame{Type: fleet.Drain})
	} else {
		c.end(websocket.StatusGoingAway, "the server stops")
	}
}
