package enginetest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/store"
)

// A signalStore is a store that keeps the signals of runs.
type signalStore struct {
	*simStore
	signals store.SignalStore
}

var _ store.SignalStore = (*signalStore)(nil)

// PutSignal implements [store.SignalStore].
func (s *signalStore) PutSignal(ctx context.Context, f store.Signal) (err error) {
	fault := s.p.sim.act(ctx, s.p, PointSignal, f.RunID, "signal "+f.Kind+" "+f.Key, func() { err = s.signals.PutSignal(context.WithoutCancel(ctx), f) })
	if fault != nil {
		return unreachable(fault)
	}
	return err
}

// Signals implements [store.SignalStore].
func (s *signalStore) Signals(ctx context.Context, runID string) ([]store.Signal, error) {
	if err := s.p.sim.halt(ctx, s.p, PointRead, runID, "signals"); err != nil {
		return nil, unreachable(err)
	}
	return s.signals.Signals(ctx, runID)
}

// A sharedStore is one that several processes use at once.
type sharedStore struct {
	*signalStore
	inner store.Shared
}

var _ store.Shared = (*sharedStore)(nil)

// AppendAs implements [store.Shared].
func (s *sharedStore) AppendAs(ctx context.Context, c store.Claim, last int64, events ...event.Event) (end int64, err error) {
	return s.append(ctx, c.RunID, last, events, max(c.Epoch, 1), func(ctx context.Context) (int64, error) { return s.inner.AppendAs(ctx, c, last, events...) })
}

// claimed notes the claims that the store has given.
func (s *Sim) claimed(claims ...store.Claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range claims {
		s.epochs[c.RunID] = max(s.epochs[c.RunID], c.Epoch)
	}
}

// Claim implements [store.Shared].
func (s *sharedStore) Claim(ctx context.Context, node string, lease time.Duration, limit int) (claims []store.Claim, err error) {
	fault := s.p.sim.act(ctx, s.p, PointAcquire, "", "claim", func() {
		claims, err = s.inner.Claim(context.WithoutCancel(ctx), node, lease, limit)
		s.p.sim.claimed(claims...)
	})
	if fault != nil {
		return nil, unreachable(fault)
	}
	return sorted(claims), err
}

func sorted(claims []store.Claim) []store.Claim {
	slices.SortFunc(claims, func(a, b store.Claim) int { return strings.Compare(a.RunID, b.RunID) })
	return claims
}

// ClaimRun implements [store.Shared].
func (s *sharedStore) ClaimRun(ctx context.Context, node, runID string, lease time.Duration) (c store.Claim, err error) {
	fault := s.p.sim.act(ctx, s.p, PointAcquire, runID, "take", func() {
		if c, err = s.inner.ClaimRun(context.WithoutCancel(ctx), node, runID, lease); err == nil {
			s.p.sim.claimed(c)
		}
	})
	if fault != nil {
		return store.Claim{}, unreachable(fault)
	}
	return c, err
}

// Renew implements [store.Shared].
func (s *sharedStore) Renew(ctx context.Context, node string, lease time.Duration) (claims []store.Claim, err error) {
	fault := s.p.sim.act(ctx, s.p, PointOther, "", "renew", func() { claims, err = s.inner.Renew(context.WithoutCancel(ctx), node, lease) })
	if fault != nil {
		return nil, unreachable(fault)
	}
	return sorted(claims), err
}

// Release implements [store.Shared].
func (s *sharedStore) Release(ctx context.Context, c store.Claim, seen int64) (err error) {
	fault := s.p.sim.act(ctx, s.p, PointOther, c.RunID, "release", func() { err = s.inner.Release(context.WithoutCancel(ctx), c, seen) })
	if fault != nil {
		return unreachable(fault)
	}
	return err
}

// Owner implements [store.Shared].
func (s *sharedStore) Owner(ctx context.Context, runID string) (string, error) {
	if err := s.p.sim.halt(ctx, s.p, PointRead, runID, "owner"); err != nil {
		return "", unreachable(err)
	}
	return s.inner.Owner(ctx, runID)
}

// Advertise implements [store.Shared].
func (s *sharedStore) Advertise(ctx context.Context, node, address string, ttl time.Duration) error {
	return s.inner.Advertise(ctx, node, address, ttl)
}

// Address implements [store.Shared].
func (s *sharedStore) Address(ctx context.Context, node string) (string, error) {
	return s.inner.Address(ctx, node)
}

// Watch implements [store.Shared]. Each notification passes a stop before fn is called.
func (s *sharedStore) Watch(ctx context.Context, fn func(runID string)) error {
	queue := &runQueue{ids: map[string]bool{}, ready: make(chan struct{}, 1)}
	ended := make(chan error, 1)
	go func() { ended <- s.inner.Watch(ctx, queue.add) }()
	for {
		select {
		case err := <-ended:
			return err
		case <-queue.ready:
		}
		for id := queue.take(); id != ""; id = queue.take() {
			s.notify(ctx, id, fn)
		}
	}
}

// notify delivers a notification as often as the simulation says.
func (s *sharedStore) notify(ctx context.Context, runID string, fn func(runID string)) {
	delivery := s.p.sim.opts.Delivery
	if delivery == Dropped || s.p.sim.halt(ctx, s.p, PointNotify, runID, "notification") != nil {
		return
	}
	fn(runID)
	if delivery == Doubled {
		fn(runID)
	}
}

// A runQueue is the set of runs with notifications that were not delivered yet.
type runQueue struct {
	mu    sync.Mutex
	ids   map[string]bool
	ready chan struct{} // buffers one signal: a run was added
}

func (q *runQueue) add(runID string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ids[runID] = true
	select {
	case q.ready <- struct{}{}:
	default: // a signal is pending already
	}
}

// take removes and returns the first run in the order of ids, or "".
func (q *runQueue) take() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.ids) == 0 {
		return ""
	}
	first := slices.Min(slices.Collect(maps.Keys(q.ids)))
	delete(q.ids, first)
	return first
}

// has reports whether the store has a signal of a run.
func (s *Sim) has(runID, kind, key string) bool {
	signals, ok := s.opts.Store.(store.SignalStore)
	if !ok {
		return false
	}
	stored, err := signals.Signals(context.Background(), runID)
	if err != nil && !errors.Is(err, lathe.ErrNotFound) {
		s.found = append(s.found, Violation{Check: "C2", RunID: runID, Text: err.Error()})
	}
	return slices.ContainsFunc(stored, func(f store.Signal) bool { return f.Kind == kind && f.Key == key })
}
