package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/lathe-run/lathe"
)

var _ lathe.Compactor = (*Memory)(nil)

// A Change is one event that compaction has changed.
type Change struct {
	ID   int64
	Body []byte // the event's JSON form with its content
}

// Compact applies shrink to the events of a run and returns those that it has changed, with the summary of the run
// afterwards. Stores write both in one transaction.
func Compact(events []lathe.Event, shrink func(lathe.Event) lathe.Event) (changes []Change, sum Summary, err error) {
	for i := range events {
		before, err := events[i].MarshalJSON()
		if err != nil {
			return nil, sum, err
		}
		e := shrink(events[i])
		after, err := e.MarshalJSON()
		if err != nil {
			return nil, sum, err
		}
		if string(before) != string(after) {
			changes = append(changes, Change{e.ID, after})
		}
		sum.Apply(&e)
	}
	return changes, sum, nil
}

// HasEnded reports whether a run of that status gets no further event.
func HasEnded(status string) bool { return status != "running" && status != "parked" }

// Ended implements [lathe.Compactor].
func (s *Memory) Ended(ctx context.Context, after *lathe.RunSummary, before time.Time, limit int) ([]lathe.RunSummary, error) {
	if err := ended(ctx, "store: list"); err != nil {
		return nil, err
	}
	inOrder := func(a, b lathe.RunSummary) int {
		return cmp.Or(a.Updated.Compare(b.Updated), cmp.Compare(a.RunID, b.RunID))
	}
	var out []lathe.RunSummary
	s.mu.RLock()
	for _, j := range s.runs {
		if r := j.sum.Run; j.finished != nil && r.Updated.Before(before) && (after == nil || inOrder(r, *after) > 0) {
			r.Pending = slices.Clone(r.Pending)
			out = append(out, r)
		}
	}
	s.mu.RUnlock()
	slices.SortFunc(out, inOrder)
	return out[:min(len(out), limit)], nil
}

// Compact implements [lathe.Compactor]. Reads that have begun see the events as they were.
func (s *Memory) Compact(ctx context.Context, runID string, shrink func(lathe.Event) lathe.Event) error {
	const op = "store: compact"
	if err := ended(ctx, op); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.runs[runID]
	switch {
	case j == nil:
		return &lathe.Error{Code: lathe.CodeNotFound, Op: op, Err: lathe.ErrNotFound}
	case j.finished == nil:
		return &lathe.Error{Code: lathe.CodeConflict, Op: op, Err: lathe.ErrConflict}
	}
	var sum Summary
	var size int64
	events := make([]lathe.Event, len(j.events))
	for i := range j.events {
		e, err := clone(shrink(j.events[i]))
		if err != nil {
			return &lathe.Error{Code: lathe.CodeInternal, Op: op, Err: err}
		}
		events[i] = e
		size += weightOf(&e) - weightOf(&j.events[i])
		sum.Apply(&e)
	}
	j.events, j.sum = events, sum
	s.weigh(j, size)
	return nil
}
