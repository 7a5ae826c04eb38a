package observe_test

import (
	"context"
	"slices"
	"sync"

	"github.com/lathe-run/lathe/event"
)

// A recorder stores every event that it receives, with deltas.
type recorder struct {
	mu     sync.Mutex
	events []event.Event
}

// Emit implements [event.Sink].
func (r *recorder) Emit(_ context.Context, e event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// Events returns the events so far, in order. The caller owns the slice; the events must not be changed.
func (r *recorder) Events() []event.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// Types returns the type names of the events so far, in order, without deltas.
func (r *recorder) Types() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, e := range r.events {
		if !event.IsDelta(e.Data) {
			out = append(out, e.Data.EventType())
		}
	}
	return out
}
