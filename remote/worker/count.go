package worker

import "github.com/lathe-run/lathe/internal/wire/workers"

// A Count contains the state of a worker's connection and the counters since [New].
type Count struct {
	Connected bool
	// Credit is the number of calls that the worker accepts at once; InFlight is the number of calls that it is executing now.
	Credit, InFlight int
	Connects         uint64 // number of connections, reconnections included
	// OK is the number of calls that succeeded, Failed of those that failed, and NotRun of those that were returned without execution. Late
	// is the number of calls whose result the gateway refused because another worker had claimed the call by then.
	OK, Failed, NotRun, Late uint64
}

// Count returns the worker's state and counters. It may be called from several goroutines at once.
func (w *Worker) Count() Count {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.count
	c.Connected, c.InFlight = w.session != nil, len(w.held)
	if c.Connected && !w.draining {
		c.Credit = w.opts.Concurrency
	}
	return c
}

// countNotRun counts a call that is returned without execution.
func (w *Worker) countNotRun() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count.NotRun++
}

// countResult counts a call whose result the gateway has accepted or refused. The caller holds the lock.
func (w *Worker) countResult(result *workers.Frame, accepted bool) {
	switch {
	case !accepted:
		w.count.Late++
	case result.Type == workers.Error || result.Output == nil || result.Output.IsError:
		w.count.Failed++
	default:
		w.count.OK++
	}
}
