package store

import (
	"context"
	"sync"
	"time"
)

// advertised is the address of a node.
type advertised struct {
	address string
	until   time.Time
}

// Advertise implements [Shared].
func (s *Memory) Advertise(ctx context.Context, node, address string, ttl time.Duration) error {
	const op = "store: advertise"
	if err := mayClaim(ctx, op, node, ttl); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for name, a := range s.nodes { // remove the expired ones
		if !now.Before(a.until) {
			delete(s.nodes, name)
		}
	}
	s.nodes[node] = advertised{address, now.Add(ttl)}
	return nil
}

// Address implements [Shared].
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

// A watcher is one call of Watch, with the runs that its function has still to be called for.
type watcher struct {
	mu    sync.Mutex
	runs  map[string]struct{}
	ready chan struct{} // buffers one signal
}

// Watch implements [Shared]. Notifications of one run that arrive while fn is being called are delivered as one.
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

// A watchers is the set of active calls of Watch.
type watchers map[*watcher]struct{}

// notify delivers the run to all watchers. It does not wait for them. The caller holds the Memory's lock.
func (all watchers) notify(runID string) {
	for w := range all {
		w.mu.Lock()
		w.runs[runID] = struct{}{}
		w.mu.Unlock()
		select {
		case w.ready <- struct{}{}:
		default: // a notification is already pending
		}
	}
}
