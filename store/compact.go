package store

import (
	"context"
	"encoding/json"
	"iter"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// A Compaction contains the changes that a [Compactor] must write, in one transaction, to compact a run.
type Compaction struct {
	Events []event.Event // the changed events, which replace those with the same IDs
	Row    []byte        // JSON form of Sum.Run
	Sum    Summary       // what a [RunIndex] lists for the run after the changes
}

// PlanCompaction computes the changes that a [Compactor] must write to compact an ended run. It reads the log with read, which is the Read
// method of the store, and applies shrink to each event. It returns nil if no event has changed, and an error that wraps
// [lathe.ErrConflict] if the run has not ended. The events with the IDs again count as changed even if shrink does not change them: a store
// passes the IDs of those that it now stores in another form. op is the Op of the error.
func PlanCompaction(ctx context.Context, op, runID string, read func(context.Context, string, int64) iter.Seq2[event.Event, error],
	shrink func(event.Event) event.Event, again ...int64) (*Compaction, error) {
	var c Compaction
	for e, err := range read(ctx, runID, 0) {
		if err != nil {
			return nil, err
		}
		before, err := e.MarshalJSON()
		if err != nil {
			return nil, err
		}
		e = shrink(e)
		after, err := e.MarshalJSON()
		if err != nil {
			return nil, err
		}
		if string(before) != string(after) || slices.Contains(again, e.ID) {
			c.Events = append(c.Events, e)
		}
		c.Sum.Apply(&e)
	}
	if status := c.Sum.Run.Status; status == "running" || status == "parked" {
		return nil, lathe.CodeConflict.Wrap(op, lathe.ErrConflict)
	}
	if len(c.Events) == 0 {
		return nil, nil
	}
	var err error
	c.Row, err = json.Marshal(&c.Sum.Run)
	return &c, err
}
