package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

var (
	_ Retainer  = (*Memory)(nil)
	_ Compactor = (*Memory)(nil)
)

// DeleteSession implements [Retainer].
func (s *Memory) DeleteSession(ctx context.Context, sessionID string) error {
	return s.deleteWhere(ctx, &RunFilter{SessionID: sessionID})
}

// DeletePrincipal implements [Retainer].
func (s *Memory) DeletePrincipal(ctx context.Context, principal string) error {
	return s.deleteWhere(ctx, &RunFilter{Principal: principal})
}

// deleteWhere deletes the runs that match the filter, which has a session or a principal, and the records of earlier removals.
func (s *Memory) deleteWhere(ctx context.Context, f *RunFilter) error {
	return s.do(ctx, "delete", func(time.Time) error {
		if *f == (RunFilter{}) {
			return nil
		}
		deleted := map[string]bool{}
		for id, j := range s.kept.runs {
			if j.fits(f) {
				s.kept.forget(id)
				deleted[id] = true
			}
		}
		for id, g := range s.kept.gone { // the records have no session
			if g.Principal != "" && g.Principal == f.Principal {
				delete(s.kept.gone, id)
				deleted[id] = true
			}
		}
		s.rows.forgetRequestsOf(func(id string) bool { return deleted[id] })
		return nil
	})
}

// ended returns the runs that have ended, sorted by the time of their last event.
func (all *journals) ended() (out []*journal) {
	for _, j := range all.runs {
		if j.over != nil {
			out = append(out, j)
		}
	}
	slices.SortFunc(out, func(a, b *journal) int { return byUpdate(&a.sum.Run, &b.sum.Run) })
	return out
}

func byUpdate(a, b *RunSummary) int {
	return cmp.Or(a.Updated.Compare(b.Updated), cmp.Compare(a.RunID, b.RunID))
}

// DeleteBefore implements [Retainer].
func (s *Memory) DeleteBefore(ctx context.Context, t time.Time) error {
	return s.retire(ctx, func(j *journal, _ int64) bool { return j.sum.Run.Updated.Before(t) })
}

// Trim implements [Retainer]. The size of a run is estimated from its texts.
func (s *Memory) Trim(ctx context.Context, maxBytes int64) error {
	return s.retire(ctx, func(_ *journal, total int64) bool { return total > maxBytes })
}

// retire removes ended runs, the oldest end first, while more returns true for the next run and the memory of all runs.
func (s *Memory) retire(ctx context.Context, more func(next *journal, total int64) bool) error {
	return s.do(ctx, "retain", func(time.Time) error {
		var total int64
		for _, u := range s.kept.usages {
			total += u.bytes
		}
		for _, j := range s.kept.ended() {
			if !more(j, total) {
				break
			}
			total -= j.bytes
			s.kept.retire(j)
		}
		return nil
	})
}

// Ended implements [Compactor].
func (s *Memory) Ended(ctx context.Context, after *RunSummary, before time.Time, limit int) (out []RunSummary, err error) {
	found := firsts[*RunSummary]{limit: limit, compare: byUpdate}
	err = s.do(ctx, "list", func(time.Time) error {
		for _, j := range s.kept.runs {
			r := &j.sum.Run
			follows := after == nil || byUpdate(r, after) > 0
			if j.over != nil && r.Updated.Before(before) && follows {
				found.add(r)
			}
		}
		for _, r := range found.cut() {
			out = append(out, clone(*r))
		}
		return nil
	})
	return out, err
}

// Compact implements [Compactor]. A Read that has begun yields the previous events. shrink is called without the lock of the store.
func (s *Memory) Compact(ctx context.Context, runID string, shrink func(event.Event) event.Event) error {
	const op = "compact"
	c, err := PlanCompaction(ctx, "store: "+op, runID, s.Read, shrink)
	if err != nil || c == nil {
		return err
	}
	return s.do(ctx, op, func(time.Time) error {
		j := s.kept.runs[runID]
		switch {
		case j == nil: // the run was deleted in the meantime
			return nil
		case j.over == nil || int64(len(j.events)) != c.Sum.Run.LastID:
			return lathe.ErrConflict
		}
		var more int64
		events, texts := slices.Clone(j.events), j.texts
		for _, e := range c.Events {
			e = Copy(e)
			if e.ID == 1 { // RunStarted, whose texts are shared
				texts = share([]event.Event{e})
			}
			more += weightOf(&e) - weightOf(&events[e.ID-1])
			events[e.ID-1] = e
		}
		j.events, j.sum, j.texts = events, c.Sum, texts
		s.kept.weigh(j, more)
		return nil
	})
}
