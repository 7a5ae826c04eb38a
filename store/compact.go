package store

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// A Change is one event that compaction has changed.
type Change struct {
	ID   int64
	Body []byte // the event's JSON form with its content
}

// compact applies shrink to the events of a run and returns those that it has changed, with the summary of the run
// afterwards. Stores write both in one transaction.
func compact(events []event.Event, shrink func(event.Event) event.Event) (changes []Change, sum Summary, err error) {
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
	changes, sum, err := compact(events, shrink)
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
