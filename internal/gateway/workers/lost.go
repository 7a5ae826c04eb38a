package workers

import (
	"context"
	"slices"
	"time"

	"github.com/lathe-run/lathe/internal/wire/workers"
)

// lostCalls are those that a process had when its connection ended.
type lostCalls struct {
	instance string // of the process
	refs     []workers.Ref
	at       time.Time
}

// noteLost notes what a connection leaves: calls that its process may not have got, and tools that are remembered
// for a shorter time unless it comes back. A worker that went in order leaves nothing.
func (w *Handler) noteLost(c *conn) {
	c.mu.Lock()
	left := &lostCalls{instance: c.instance, at: time.Now()}
	for r := range c.held {
		left.refs = append(left.refs, r)
	}
	id, silent := c.id, !c.draining && !c.put.IsZero()
	c.mu.Unlock()
	if id == "" {
		return
	}
	w.mu.Lock()
	for other, l := range w.lost {
		if time.Since(l.at) > w.opts.Lease { // their leases have ended
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
	// It may be with another gateway by now, with other tools, or have gone there in order: what is known of it stays.
	_ = w.opts.Queue.ShortenWorker(ctx, id, forgetLost*w.opts.Lease) // else it is forgotten later
}

// returnLost returns calls to the queue that were sent to this worker process on an earlier connection and that it does
// not list among those that it holds: their frame was lost, because the worker does not read that connection any more.
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
			_ = w.opts.Queue.ReturnCall(c.ctx, c.ref(r)) // one that is another's by now, or done, stays so
		}
	}
}
