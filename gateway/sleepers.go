package gateway

import "sync"

// sleepers are watchers that wait for news of a run, which may come from another process. The zero value has none.
type sleepers struct {
	mu sync.Mutex
	of map[string]map[*func()]struct{} // by run
}

// add has wake called at each hint of the run, until remove is called. wake must not block.
func (s *sleepers) add(runID string, wake func()) (remove func()) {
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

// wake wakes those that wait for news of the run.
func (s *sleepers) wake(runID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for wake := range s.of[runID] {
		(*wake)()
	}
}

// A nap ends at a hint. One that comes in between ends the next nap at once.
type nap struct {
	mu  sync.Mutex
	due bool
	end func() // nil: there is no nap
}

func (n *nap) begin(end func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.due {
		n.due = false
		end()
		return
	}
	n.end = end
}

func (n *nap) over() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.end = nil
}

func (n *nap) wake() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.end == nil {
		n.due = true
		return
	}
	n.end()
	n.end = nil
}
