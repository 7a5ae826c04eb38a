package server

import "sync"

// waiters contains the watchers that wait for notifications of runs, which may come from other processes. The zero value is
// empty.
type waiters struct {
	mu sync.Mutex
	of map[string]map[*func()]struct{} // by run id
}

// add registers wake, which is called at each notification of the run until remove is called. wake must not block, and must
// not call add or remove.
func (s *waiters) add(runID string, wake func()) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[string]map[*func()]struct{}{}
	}
	if s.of[runID] == nil {
		s.of[runID] = map[*func()]struct{}{}
	}
	s.of[runID][&wake] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.of[runID], &wake)
		if len(s.of[runID]) == 0 {
			delete(s.of, runID)
		}
	}
}

// channel returns a channel that receives a value after a notification of the run, until remove is called. At most one
// value is pending.
func (s *waiters) channel(runID string) (notified <-chan struct{}, remove func()) {
	c := make(chan struct{}, 1)
	return c, s.add(runID, func() {
		select {
		case c <- struct{}{}:
		default: // a notification is already pending
		}
	})
}

func (s *waiters) wake(runID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for wake := range s.of[runID] {
		(*wake)()
	}
}

// A condition lets a notification end a wait. begin sets the function that ends the wait, over clears it, and wake calls it
// once. If wake is called while no wait has begun, the next wait ends at once.
type condition struct {
	mu  sync.Mutex
	due bool
	end func() // ends the current wait; nil if none exists
}

// begin begins a wait that a notification ends by calling end.
func (n *condition) begin(end func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.due {
		n.due = false
		end()
		return
	}
	n.end = end
}

// over ends the wait without a notification.
func (n *condition) over() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.end = nil
}

// wake ends the current wait or, if none exists, the next one.
func (n *condition) wake() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.end == nil {
		n.due = true
		return
	}
	n.end()
	n.end = nil
}
