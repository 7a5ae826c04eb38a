package worker

import "github.com/lathe-run/lathe/internal/wire/fleet"

// A Count says how a worker stands, and what came of its calls so far: they have a result, have none, were given back
// unmade, or were another's by the time of their result.
type Count struct {
	Connected                bool
	Credit, InFlight         int
	Connects                 uint64
	OK, Failed, NotRun, Late uint64
}

// Count says how the worker stands.
func (w *Worker) Count() Count {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.count
	c.Connected, c.InFlight = w.now != nil, len(w.held)
	if c.Connected && !w.draining {
		c.Credit = w.opts.Concurrency
	}
	return c
}

// notRun counts a call that is given back.
func (w *Worker) notRun() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count.NotRun++
}

// settled counts a call whose result the gateway has looked at. The caller holds the lock.
func (w *Worker) settled(result *fleet.Frame, taken bool) {
	switch {
	case !taken:
		w.count.Late++
	case result.Type == fleet.Error || result.Output == nil || result.Output.IsError:
		w.count.Failed++
	default:
		w.count.OK++
	}
}
