package store

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"slices"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

var _ Compactor = (*Memory)(nil)

// A Change is one event that compaction has changed.
type Change struct {
	ID   int64
	Body []byte // the event's JSON form with its content
}

// Compact applies shrink to the events of a run and returns those that it has changed, with the summary of the run
// afterwards. Stores write both in one transaction.
func Compact(events []event.Event, shrink func(event.Event) event.Event) (changes []Change, sum Summary, err error) {
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

// PlanCompaction reads the log of a run that has ended, applies shrink to it, and returns the events that it has changed
// with the JSON form of the run's summary afterwards. It returns no changes if there is nothing to write, and
// [lathe.ErrConflict] for a run that has not ended. read is the Read method of a store.
func PlanCompaction(ctx context.Context, op, runID string, read func(context.Context, string, int64) iter.Seq2[event.Event, error],
	shrink func(event.Event) event.Event) (changes []Change, summary []byte, err error) {
	var events []event.Event
	for e, err := range read(ctx, runID, 0) {
		if err != nil {
			return nil, nil, err
		}
		events = append(events, e)
	}
	changes, sum, err := Compact(events, shrink)
	if err != nil {
		return nil, nil, err
	}
	if !HasEnded(sum.Run.Status) {
		return nil, nil, &lathe.Error{Code: lathe.CodeConflict, Op: op, Err: lathe.ErrConflict}
	}
	if len(changes) == 0 {
		return nil, nil, nil
	}
	summary, err = json.Marshal(&sum.Run)
	return changes, summary, err
}

// HasEnded reports whether a run of that status gets no further event.
func HasEnded(status string) bool { return status != "running" && status != "parked" }

// Ended implements [Compactor].
func (s *Memory) Ended(ctx context.Context, after *RunSummary, before time.Time, limit int) ([]RunSummary, error) {
	if err := ended(ctx, "store: list"); err != nil {
		return nil, err
	}
	inOrder := func(a, b RunSummary) int {
		return cmp.Or(a.Updated.Compare(b.Updated), cmp.Compare(a.RunID, b.RunID))
	}
	var out []RunSummary
	s.mu.RLock()
	for _, j := range s.kept.runs {
		if r := j.sum.Run; j.finished != nil && r.Updated.Before(before) && (after == nil || inOrder(r, *after) > 0) {
			r.Pending = slices.Clone(r.Pending)
			out = append(out, r)
		}
	}
	s.mu.RUnlock()
	slices.SortFunc(out, inOrder)
	return out[:min(len(out), limit)], nil
}

// Compact implements [Compactor]. Reads that have begun see the events as they were.
func (s *Memory) Compact(ctx context.Context, runID string, shrink func(event.Event) event.Event) error {
	const op = "store: compact"
	if err := ended(ctx, op); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.kept.runs[runID]
	switch {
	case j == nil:
		return &lathe.Error{Code: lathe.CodeNotFound, Op: op, Err: lathe.ErrNotFound}
	case j.finished == nil:
		return &lathe.Error{Code: lathe.CodeConflict, Op: op, Err: lathe.ErrConflict}
	}
	var sum Summary
	var size int64
	events := make([]event.Event, len(j.events))
	for i := range j.events {
		e, err := clone(shrink(j.events[i]), &s.inputs)
		if err != nil {
			return &lathe.Error{Code: lathe.CodeInternal, Op: op, Err: err}
		}
		events[i] = e
		size += weightOf(&e) - weightOf(&j.events[i])
		sum.Apply(&e)
	}
	j.events, j.sum = events, sum
	s.kept.weigh(j, size)
	return nil
}
