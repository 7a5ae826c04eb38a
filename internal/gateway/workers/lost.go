package workers

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/lathe-run/lathe/internal/wire/workers"
)

// lostCalls are the calls assigned to a worker process when its connection ended.
type lostCalls struct {
	instance string // id of the process
	refs     []workers.Ref
	at       time.Time
}

// noteLost records the calls assigned to a connection that has ended, which its process may not have received. Unless the worker has
// reconnected or drained, it also shortens the time for which the worker remains registered.
func (w *Handler) noteLost(c *conn) {
	c.mu.Lock()
	left := &lostCalls{instance: c.instance, refs: slices.Collect(maps.Keys(c.held)), at: time.Now()}
	id, silent := c.id, !c.draining && !c.put.IsZero()
	c.mu.Unlock()
	if id == "" {
		return
	}
	w.mu.Lock()
	for other, l := range w.lost {
		if time.Since(l.at) > w.opts.Lease { // the leases of their calls have expired
			delete(w.lost, other)
		}
	}
	if len(left.refs) > 0 && left.instance != "" && len(w.lost) < w.opts.MaxWorkers {
		w.lost[id] = left
	}
	again := false
	for other := range w.conns {
		other.mu.Lock()
		again = again || other != c && other.id == id
		other.mu.Unlock()
	}
	w.mu.Unlock()
	if !silent || again {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), returnTime)
	defer cancel()
	// The worker may have connected to another gateway with other tools, or have drained there; ShortenWorker does not change such a
	// registration.
	_ = w.opts.Queue.ShortenWorker(ctx, id, forgetLost*w.opts.Lease) // on failure, the registration expires later
}

// returnLost returns calls to the queue that were sent to this worker process on an earlier connection and that it does not list as
// received. Their frames were lost with that connection.
func (c *conn) returnLost(held []workers.Ref) {
	w := c.handler
	w.mu.Lock()
	left := w.lost[c.id]
	delete(w.lost, c.id)
	w.mu.Unlock()
	if left == nil || left.instance != c.instance {
		return
	}
	for _, r := range left.refs {
		if !slices.Contains(held, r) {
			_ = w.opts.Queue.ReturnCall(c.ctx, c.ref(r)) // a call that has ended, or that another worker has, is not changed
		}
	}
}
