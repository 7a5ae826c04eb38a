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
func (h *Handler) noteLost(c *conn) {
	c.mu.Lock()
	id, registered := c.id, !c.draining && !c.announced.IsZero()
	left := &lostCalls{instance: c.instance, refs: slices.Collect(maps.Keys(c.held)), at: time.Now()}
	c.mu.Unlock()
	if id == "" {
		return
	}
	h.storeLost(id, left)
	if !registered || slices.ContainsFunc(h.all(), func(other *conn) bool { return other != c && other.hasID(id) }) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), returnTime)
	defer cancel()
	// The worker may have connected to another gateway with other tools, or have drained there; ShortenWorker does not change such a
	// registration.
	_ = h.opts.Queue.ShortenWorker(ctx, id, forgetLost*h.opts.Lease) // on failure, the registration expires later
}

// storeLost stores the calls of a worker for returnLost, and removes those of other workers whose leases have expired.
func (h *Handler) storeLost(id string, left *lostCalls) {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.lost, func(_ string, l *lostCalls) bool { return time.Since(l.at) > h.opts.Lease })
	if len(left.refs) > 0 && left.instance != "" && len(h.lost) < h.opts.MaxWorkers {
		h.lost[id] = left
	}
}

// returnLost returns calls to the queue that were sent to the process of c on an earlier connection and that it does not list as
// received. Their frames were lost with that connection.
func (h *Handler) returnLost(c *conn, held []workers.Ref) {
	h.mu.Lock()
	left := h.lost[c.id]
	delete(h.lost, c.id)
	h.mu.Unlock()
	if left == nil || left.instance != c.instance {
		return
	}
	for _, r := range left.refs {
		if !slices.Contains(held, r) {
			_ = h.opts.Queue.ReturnCall(c.ctx, c.ref(r)) // a call that has ended, or that another worker has, is not changed
		}
	}
}
