package server

import (
	"context"
	"sync"

	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/gateway/memory"
	"github.com/lathe-run/lathe/observe"
)

// work counts the requests in progress and the users of each setup, which are requests and runs.
type work struct {
	mu    sync.Mutex
	now   *setup
	busy  int
	empty chan struct{} // closed when busy becomes 0; nil: no goroutine waits for that
}

// begin counts a request and returns the setup that it uses. The caller must call end.
func (w *work) begin() *setup {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy++
	w.now.users++
	return w.now
}

// hold counts a further user of the setup, for a run that continues after its request. The caller must call release once.
func (w *work) hold(s *setup) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.users++
}

// release ends one hold.
func (w *work) release(s *setup) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leave(s)
}

// leave removes a user of the setup. w.mu must be locked.
func (w *work) leave(s *setup) {
	if s.users--; s != w.now && s.users == 0 {
		close(s.unused)
	}
}

// end ends one begin.
func (w *work) end(s *setup) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leave(s)
	w.busy--
	if w.busy == 0 && w.empty != nil {
		close(w.empty)
		w.empty = nil
	}
}

// replace makes next the setup of requests that begin from now on. The returned channel is closed when no request and no
// run uses the former setup any more.
func (w *work) replace(next *setup) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	next.unused = make(chan struct{})
	before := w.now
	w.now = next
	if before == nil {
		before = &setup{unused: make(chan struct{})}
	}
	if before.users == 0 {
		close(before.unused)
	}
	return before.unused
}

// background runs do in a new goroutine, which counts as a request in progress.
func (w *work) background(do func()) {
	s := w.begin()
	go func() {
		defer w.end(s)
		do()
	}()
}

// idle returns a channel that is closed when no request is in progress.
func (w *work) idle() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy == 0 {
		none := make(chan struct{})
		close(none)
		return none
	}
	if w.empty == nil {
		w.empty = make(chan struct{})
	}
	return w.empty
}

// A holder is a sink that retains the setup of a run, and the deltas of its current model call, until the supervisor has
// stopped executing the run.
type holder struct {
	work      *work
	setup     *setup
	bus       *observe.Bus        // may be nil
	reserved  *memory.Reservation // memory of the run's conversation; nil: it is not counted
	keepOnce  sync.Once
	freeOnce  sync.Once
	endDeltas func() // ends the retention of deltas; nil: none are retained. Emit sets it in keepOnce
}

var _ engine.Leaver = (*holder)(nil)

// hold retains the setup of a run that continues without the request of the caller, and the memory of its conversation.
func (co *core) hold(c *caller) *holder {
	co.work.hold(c.setup)
	return &holder{work: &co.work, setup: c.setup, bus: co.opts.Bus, reserved: c.reserved.SplitConversation()}
}

// Emit implements [event.Sink]. With the first event, the bus begins to retain deltas.
func (h *holder) Emit(_ context.Context, e event.Event) {
	h.keepOnce.Do(func() {
		if h.bus != nil {
			h.endDeltas = h.bus.Keep(e.RunID)
		}
	})
}

// Leave implements [engine.Leaver]: the supervisor has stopped executing the run.
func (h *holder) Leave(string) { h.free() }

// free releases the setup and the memory. Further calls have no effect.
func (h *holder) free() {
	h.freeOnce.Do(func() {
		h.keepOnce.Do(func() {}) // waits for Emit if it is setting endDeltas; a later Emit does nothing
		if h.endDeltas != nil {
			h.endDeltas()
		}
		h.work.release(h.setup)
		h.reserved.Release()
	})
}
