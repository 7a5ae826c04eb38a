package gateway

import (
	"maps"
	"slices"

	"github.com/lathe-run/lathe/internal/wire/fleet"
	"github.com/lathe-run/lathe/observe"
)

// Count says how the workers of each fleet stand.
func (w *Workers) Count() []observe.WorkerCount {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := map[string]observe.WorkerCount{}
	for i := range w.fleets.all {
		name := w.fleets.all[i].Name
		now[name] = observe.WorkerCount{Fleet: name}
	}
	for name, c := range w.counts {
		now[name] = *c
	}
	for c := range w.conns {
		c.mu.Lock()
		n := now[c.fleet.Name]
		if n.Fleet = c.fleet.Name; c.id != "" {
			n.Connected++
			n.InFlight += len(c.held)
			if !c.draining {
				n.Credit += c.credit
			}
		}
		now[n.Fleet] = n
		c.mu.Unlock()
	}
	return slices.Collect(maps.Values(now))
}

// note has something counted of a fleet, unless the configuration has it no more.
func (w *Workers) note(name string, what func(*observe.WorkerCount)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.fleets.named(name) {
		return
	}
	c := w.counts[name]
	if c == nil {
		c = &observe.WorkerCount{Fleet: name}
		w.counts[name] = c
	}
	what(c)
}

// settled counts a call that its worker has told the end of.
func (w *Workers) settled(name string, f *fleet.Frame, taken bool) {
	w.note(name, func(c *observe.WorkerCount) {
		switch {
		case !taken:
			c.Late++
		case f.Type == fleet.Error && f.NotRun:
			c.NotRun++
		case failed(f):
			c.Failed++
		default:
			c.OK++
		}
	})
}

func failed(f *fleet.Frame) bool { return f.Type == fleet.Error || f.Output == nil || f.Output.IsError }
