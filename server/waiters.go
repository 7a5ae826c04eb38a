package server

import "sync"

// waiters are watchers that wait for notifications of a run, which may come from another process. The zero value is
// usable.
type waiters struct {
	mu sync.Mutex
	of map[string]map[*func()]struct{} // by run
}

// add registers wake, which is called at each notification of the run until remove is called. wake must not block.
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
		if delete(s.of[runID], &wake); len(s.of[runID]) == 0 {
			delete(s.of, runID)
		}
	}
}

// channel returns a channel that has a value after a notification of the run, until remove is called.
func (s *waiters) channel(runID string) (notified <-chan struct{}, remove func()) {
	c := make(chan struct{}, 1)
	return c, s.add(runID, func() {
		select {
		case c <- struct{}{}:
		default: // a notification is pending already
		}
	})
}

// wake calls the registered functions of the run.
func (s *waiters) wake(runID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for wake := range s.of[runID] {
		(*wake)()
	}
}

// A condition calls end at a notification. A notification while no condition has begun ends the next one at once.
type condition struct {
	mu  sync.Mutex
	due bool
	end func() // nil: there is no condition
}

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

func (n *condition) over() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.end = nil
}

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
