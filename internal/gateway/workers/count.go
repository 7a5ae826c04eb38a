package workers

import (
	"maps"
	"slices"

	"github.com/lathe-run/lathe/internal/wire/workers"
	"github.com/lathe-run/lathe/observe"
)

// Count returns the connections, calls in progress, free capacity and event counts of each worker pool, in no particular order.
func (h *Handler) Count() []observe.WorkerCount {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := map[string]observe.WorkerCount{}
	for name, c := range h.counts {
		now[name] = *c
	}
	for c := range h.conns {
		c.mu.Lock()
		n := now[c.pool.Name]
		n.Pool = c.pool.Name
		if c.id != "" {
			n.Connected++
			n.InFlight += len(c.held)
			if !c.draining {
				n.Credit += c.credit
			}
		}
		now[n.Pool] = n
		c.mu.Unlock()
	}
	return slices.Collect(maps.Values(now))
}

// note increments one counter of a worker pool. It does nothing if the pool has been removed from the configuration.
func (h *Handler) note(name string, what func(*observe.WorkerCount)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.counts[name]; c != nil {
		what(c)
	}
}

// settled counts a call whose end its worker has reported. accepted is false if the result was refused.
func (h *Handler) settled(name string, f *workers.Frame, accepted bool) {
	h.note(name, func(c *observe.WorkerCount) {
		switch {
		case !accepted:
			c.Late++
		case isNotRun(f):
			c.NotRun++
		case f.Type == workers.Error || f.Output == nil || f.Output.IsError:
			c.Failed++
		default:
			c.OK++
		}
	})
}
