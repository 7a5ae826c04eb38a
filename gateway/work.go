package gateway

import "sync"

// work counts what is at work, and under which setup.
type work struct {
	mu    sync.Mutex
	now   *setup
	busy  int
	empty chan struct{} // closed when nothing is at work; nil: nobody waits for that
}

// begin counts a request and returns the setup that it is made under.
func (w *work) begin() *setup {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy++
	w.now.users++
	return w.now
}

// hold keeps the setup for a run that goes on after its request. release is called once for it.
func (w *work) hold(s *setup) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.users++
}

func (w *work) release(s *setup) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leave(s)
}

func (w *work) leave(s *setup) {
	if s.users--; s != w.now && s.users == 0 {
		close(s.unused)
	}
}

// end is called once for each begin.
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

// replace makes next the setup of what begins from now on. The channel is closed when nothing uses the
// one before any more.
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

// idle returns a channel that is closed when nothing is at work.
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
