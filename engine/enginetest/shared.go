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
)

// A factStore is a store that keeps what comes to runs from outside.
type factStore struct {
	*store
	kept lathe.FactStore
}

var _ lathe.FactStore = (*factStore)(nil)

// PutFact implements [lathe.FactStore].
func (s *factStore) PutFact(ctx context.Context, f lathe.Fact) (err error) {
	fault := s.p.sim.act(ctx, s.p, f.RunID, "fact "+f.Kind+" "+f.Key, func() { err = s.kept.PutFact(context.WithoutCancel(ctx), f) }, PointFact)
	if fault != nil {
		return unreachable(fault)
	}
	return err
}

// Facts implements [lathe.FactStore].
func (s *factStore) Facts(ctx context.Context, runID string) ([]lathe.Fact, error) {
	if err := s.p.sim.halt(ctx, s.p, PointRead, runID, "facts"); err != nil {
		return nil, unreachable(err)
	}
	return s.kept.Facts(ctx, runID)
}

// A sharedStore is one that several processes use at once.
type sharedStore struct {
	*factStore
	inner lathe.SharedStore
}

var _ lathe.SharedStore = (*sharedStore)(nil)

// AppendAs implements [lathe.SharedStore].
func (s *sharedStore) AppendAs(ctx context.Context, c lathe.Claim, last int64, events ...lathe.Event) (end int64, err error) {
	return s.append(ctx, c.RunID, last, events, max(c.Epoch, 1), func(ctx context.Context) (int64, error) { return s.inner.AppendAs(ctx, c, last, events...) })
}

// claimed notes the claims that the store has given.
func (s *Sim) claimed(claims ...lathe.Claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range claims {
		s.epochs[c.RunID] = max(s.epochs[c.RunID], c.Epoch)
	}
}

// Claim implements [lathe.SharedStore].
func (s *sharedStore) Claim(ctx context.Context, node string, lease time.Duration, limit int) (claims []lathe.Claim, err error) {
	fault := s.p.sim.act(ctx, s.p, "", "claim", func() {
		claims, err = s.inner.Claim(context.WithoutCancel(ctx), node, lease, limit)
		s.p.sim.claimed(claims...)
	}, PointTake)
	if fault != nil {
		return nil, unreachable(fault)
	}
	return sorted(claims), err
}

func sorted(claims []lathe.Claim) []lathe.Claim {
	slices.SortFunc(claims, func(a, b lathe.Claim) int { return strings.Compare(a.RunID, b.RunID) })
	return claims
}

// Take implements [lathe.SharedStore].
func (s *sharedStore) Take(ctx context.Context, node, runID string, lease time.Duration) (c lathe.Claim, err error) {
	fault := s.p.sim.act(ctx, s.p, runID, "take", func() {
		if c, err = s.inner.Take(context.WithoutCancel(ctx), node, runID, lease); err == nil {
			s.p.sim.claimed(c)
		}
	}, PointTake)
	if fault != nil {
		return lathe.Claim{}, unreachable(fault)
	}
	return c, err
}

// Renew implements [lathe.SharedStore].
func (s *sharedStore) Renew(ctx context.Context, node string, lease time.Duration) (claims []lathe.Claim, err error) {
	fault := s.p.sim.act(ctx, s.p, "", "renew", func() { claims, err = s.inner.Renew(context.WithoutCancel(ctx), node, lease) }, PointOther)
	if fault != nil {
		return nil, unreachable(fault)
	}
	return sorted(claims), err
}

// Release implements [lathe.SharedStore].
func (s *sharedStore) Release(ctx context.Context, c lathe.Claim, seen int64) (err error) {
	fault := s.p.sim.act(ctx, s.p, c.RunID, "release", func() { err = s.inner.Release(context.WithoutCancel(ctx), c, seen) }, PointOther)
	if fault != nil {
		return unreachable(fault)
	}
	return err
}

// Owner implements [lathe.SharedStore].
func (s *sharedStore) Owner(ctx context.Context, runID string) (string, error) {
	if err := s.p.sim.halt(ctx, s.p, PointRead, runID, "owner"); err != nil {
		return "", unreachable(err)
	}
	return s.inner.Owner(ctx, runID)
}

// Advertise implements [lathe.SharedStore].
func (s *sharedStore) Advertise(ctx context.Context, node, address string, ttl time.Duration) error {
	return s.inner.Advertise(ctx, node, address, ttl)
}

// Address implements [lathe.SharedStore].
func (s *sharedStore) Address(ctx context.Context, node string) (string, error) {
	return s.inner.Address(ctx, node)
}

// Watch implements [lathe.SharedStore]. Each hint waits for its turn like everything else.
func (s *sharedStore) Watch(ctx context.Context, fn func(runID string)) error {
	var mu sync.Mutex
	waiting, some := map[string]bool{}, make(chan struct{}, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- s.inner.Watch(ctx, func(runID string) {
			mu.Lock()
			defer mu.Unlock()
			waiting[runID] = true
			select {
			case some <- struct{}{}:
			default: // it is told already
			}
		})
	}()
	for {
		select {
		case err := <-ended:
			return err
		case <-some:
		}
		for {
			mu.Lock()
			ids := slices.Sorted(maps.Keys(waiting))
			if len(ids) > 0 {
				delete(waiting, ids[0])
			}
			mu.Unlock()
			if len(ids) == 0 {
				break
			}
			if s.p.sim.opts.Hints == Dropped || s.p.sim.halt(ctx, s.p, PointHint, ids[0], "hint") != nil {
				continue
			}
			fn(ids[0])
			if s.p.sim.opts.Hints == Doubled {
				fn(ids[0])
			}
		}
	}
}

// has reports whether the store keeps a fact of a run.
func (s *Sim) has(runID, kind, key string) bool {
	kept, ok := s.opts.Store.(lathe.FactStore)
	if !ok {
		return false
	}
	facts, err := kept.Facts(context.Background(), runID)
	if err != nil && !errors.Is(err, lathe.ErrNotFound) {
		s.bad = append(s.bad, Violation{Check: "C2", RunID: runID, Text: err.Error()})
	}
	return slices.ContainsFunc(facts, func(f lathe.Fact) bool { return f.Kind == kind && f.Key == key })
}
