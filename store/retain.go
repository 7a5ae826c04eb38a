package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/lathe-run/lathe"
)

var _ lathe.Retainer = (*Memory)(nil)

// maxGone bounds the runs of which it is remembered that they were removed. Beyond it those of the principal that has most are forgotten.
const maxGone = 10_000

// DeleteSession implements [lathe.Retainer].
func (s *Memory) DeleteSession(ctx context.Context, sessionID string) error {
	return s.deleteWhere(ctx, func(r *lathe.RunSummary) bool { return sessionID != "" && r.SessionID == sessionID })
}

// DeletePrincipal implements [lathe.Retainer].
func (s *Memory) DeletePrincipal(ctx context.Context, principal string) error {
	err := s.deleteWhere(ctx, func(r *lathe.RunSummary) bool { return principal != "" && r.Principal == principal })
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	removed := map[string]bool{}
	for id, g := range s.gone {
		if principal != "" && g.Principal == principal {
			delete(s.gone, id)
			removed[id] = true
		}
	}
	s.forgetRequests(func(id string) bool { return removed[id] })
	return nil
}

func (s *Memory) deleteWhere(ctx context.Context, fits func(*lathe.RunSummary) bool) error {
	if err := ended(ctx, "store: delete"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	deleted := map[string]bool{}
	for id, j := range s.runs {
		if fits(&j.sum.Run) {
			s.forget(id)
			deleted[id] = true
		}
	}
	s.forgetRequests(func(id string) bool { return deleted[id] })
	return nil
}

// DeleteBefore implements [lathe.Retainer].
func (s *Memory) DeleteBefore(ctx context.Context, t time.Time) error {
	if err := ended(ctx, "store: retain"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, j := range s.runs {
		if j.finished != nil && j.sum.Run.Updated.Before(t) {
			s.retire(id)
		}
	}
	return nil
}

// Trim implements [lathe.Retainer]. What a run takes is estimated from its texts.
func (s *Memory) Trim(ctx context.Context, maxBytes int64) error {
	const op = "store: retain"
	s.mu.Lock()
	defer s.mu.Unlock()
	total := s.bytes
	var done []*journal
	for _, j := range s.runs {
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
		s.retire(j.sum.Run.RunID)
	}
	return nil
}

// retire removes a run, and remembers that it did. s.mu is held.
func (s *Memory) retire(runID string) {
	if len(s.gone) >= maxGone {
		s.forgetGone()
	}
	s.gone[runID] = lathe.GoneError{RunID: runID, Principal: s.runs[runID].sum.Run.Principal, Time: s.now().UTC()}
	s.forget(runID)
}

// forgetGone forgets which runs of the principal that has most of them were removed.
func (s *Memory) forgetGone() {
	has, most := map[string]int{}, ""
	for _, g := range s.gone {
		if has[g.Principal]++; has[g.Principal] >= has[most] {
			most = g.Principal
		}
	}
	maps.DeleteFunc(s.gone, func(_ string, g lathe.GoneError) bool { return g.Principal == most })
}

// missing says why there is nothing to read of a run.
func (s *Memory) missing(runID string) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if g, ok := s.gone[runID]; ok && s.runs[runID] == nil {
		return &g
	}
	return lathe.ErrNotFound
}
