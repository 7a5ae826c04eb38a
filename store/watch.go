package store

import (
	"context"
	"sync"
	"time"
)

// An advertised address of a node.
type advertised struct {
	address string
	until   time.Time
}

// Advertise implements [lathe.SharedStore].
func (s *Memory) Advertise(ctx context.Context, node, address string, ttl time.Duration) error {
	const op = "store: advertise"
	if err := mayClaim(ctx, op, node, ttl); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for name, a := range s.nodes { // those that are gone
		if !now.Before(a.until) {
			delete(s.nodes, name)
		}
	}
	s.nodes[node] = advertised{address, now.Add(ttl)}
	return nil
}

// Address implements [lathe.SharedStore].
func (s *Memory) Address(ctx context.Context, node string) (string, error) {
	if err := ended(ctx, "store: address"); err != nil {
		return "", err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if a := s.nodes[node]; s.now().Before(a.until) {
		return a.address, nil
	}
	return "", nil
}

// A watcher has the runs that its function is still to be called with.
type watcher struct {
	mu    sync.Mutex
	runs  map[string]struct{}
	ready chan struct{} // has room for one
}

// Watch implements [lathe.SharedStore]. Hints of one run that come while fn is called are one.
func (s *Memory) Watch(ctx context.Context, fn func(runID string)) error {
	w := &watcher{runs: map[string]struct{}{}, ready: make(chan struct{}, 1)}
	s.mu.Lock()
	s.watchers[w] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, w)
	}()
	for {
		select {
		case <-ctx.Done():
			return ended(ctx, "store: watch")
		case <-w.ready:
		}
		w.mu.Lock()
		runs := w.runs
		w.runs = map[string]struct{}{}
		w.mu.Unlock()
		for id := range runs {
			fn(id)
		}
	}
}

// hint tells the watchers of a run. The caller holds the lock.
func (s *Memory) hint(runID string) {
	for w := range s.watchers {
		w.mu.Lock()
		w.runs[runID] = struct{}{}
		w.mu.Unlock()
		select {
		case w.ready <- struct{}{}:
		default: // it is told already
		}
	}
}
