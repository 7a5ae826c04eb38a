package store

import (
	"cmp"
	"context"
	"slices"
	"time"
)

var _ Retainer = (*Memory)(nil)

// DeleteSession implements [Retainer].
func (s *Memory) DeleteSession(ctx context.Context, sessionID string) error {
	return s.deleteWhere(ctx, func(r *RunSummary) bool { return sessionID != "" && r.SessionID == sessionID })
}

// DeletePrincipal implements [Retainer].
func (s *Memory) DeletePrincipal(ctx context.Context, principal string) error {
	err := s.deleteWhere(ctx, func(r *RunSummary) bool { return principal != "" && r.Principal == principal })
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if principal != "" {
		s.RequestRecords.forget(func(id string) bool { g := s.kept.gone.find(id); return g != nil && g.Principal == principal })
		s.kept.gone.removePrincipal(principal)
	}
	return nil
}

func (s *Memory) deleteWhere(ctx context.Context, fits func(*RunSummary) bool) error {
	if err := ended(ctx, "store: delete"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	deleted := map[string]bool{}
	for id, j := range s.kept.runs {
		if fits(&j.sum.Run) {
			s.kept.forget(id)
			deleted[id] = true
		}
	}
	s.RequestRecords.forget(func(id string) bool { return deleted[id] })
	return nil
}

// DeleteBefore implements [Retainer].
func (s *Memory) DeleteBefore(ctx context.Context, t time.Time) error {
	if err := ended(ctx, "store: retain"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, j := range s.kept.runs {
		if j.finished != nil && j.sum.Run.Updated.Before(t) {
			s.kept.retire(id)
		}
	}
	return nil
}

// Trim implements [Retainer]. What a run takes is estimated from its texts.
func (s *Memory) Trim(ctx context.Context, maxBytes int64) error {
	const op = "store: retain"
	s.mu.Lock()
	defer s.mu.Unlock()
	total := s.kept.bytes
	var done []*journal
	for _, j := range s.kept.runs {
		if err := ended(ctx, op); err != nil {
			return err
		}
		if j.finished != nil {
			done = append(done, j)
		}
	}
	slices.SortFunc(done, func(a, b *journal) int {
		return cmp.Or(a.sum.Run.Updated.Compare(b.sum.Run.Updated), cmp.Compare(a.sum.Run.RunID, b.sum.Run.RunID))
	})
	for _, j := range done {
		if total <= maxBytes {
			return nil
		}
		total -= j.bytes
		s.kept.retire(j.sum.Run.RunID)
	}
	return nil
}
