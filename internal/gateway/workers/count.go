package workers

import (
	"maps"
	"slices"

	"github.com/lathe-run/lathe/internal/wire/workers"
	"github.com/lathe-run/lathe/observe"
)

// Count returns the connections, calls in progress, free capacity and event counts of each worker pool, in no particular order.
func (w *Handler) Count() []observe.WorkerCount {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := map[string]observe.WorkerCount{}
	for _, p := range w.pools.all {
		name := p.Name
		now[name] = observe.WorkerCount{Pool: name}
	}
	for name, c := range w.counts {
		now[name] = *c
	}
	for c := range w.conns {
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
func (w *Handler) note(name string, what func(*observe.WorkerCount)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.pools.named(name) {
		return
	}
	c := w.counts[name]
	if c == nil {
		c = &observe.WorkerCount{Pool: name}
		w.counts[name] = c
	}
	what(c)
}

// settled counts a call whose end its worker has reported. taken is false if the result was not accepted.
func (w *Handler) settled(name string, f *workers.Frame, taken bool) {
	w.note(name, func(c *observe.WorkerCount) {
		switch {
		case !taken:
			c.Late++
		case f.Type == workers.Error && f.NotRun:
			c.NotRun++
		case failed(f):
			c.Failed++
		default:
			c.OK++
		}
	})
}

func failed(f *workers.Frame) bool {
	return f.Type == workers.Error || f.Output == nil || f.Output.IsError
}
