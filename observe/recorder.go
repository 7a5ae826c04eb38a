package observe

import (
	"context"
	"slices"
	"sync"

	"github.com/lathe-run/lathe"
)

var _ lathe.Sink = (*Recorder)(nil)

// A Recorder keeps every event it sees, deltas too, with no limit: it is for tests and replays.
// The zero value is ready. It may be used by several goroutines at once.
type Recorder struct {
	mu     sync.Mutex
	events []lathe.Event
}

// Emit implements [lathe.Sink].
func (r *Recorder) Emit(_ context.Context, e lathe.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, keep(e))
}

// Events returns what was seen so far, in order. The slice is the caller's; the events must not be changed.
func (r *Recorder) Events() []lathe.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// Types returns the type names of the stored events seen so far, in order; deltas are left out.
func (r *Recorder) Types() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, e := range r.events {
		if !lathe.IsDelta(e.Data) {
			out = append(out, e.Data.EventType())
		}
	}
	return out
}
