package store

import (
	"context"
	"encoding/json"
	"iter"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// A Compaction contains the changes that a [Compactor] writes in one transaction.
type Compaction struct {
	Events []event.Event // the changed events
	Row    []byte        // JSON form of the row of the run
	Sum    Summary       // of the run after the changes
}

// PlanCompaction reads the log of a run that has ended, applies shrink to each event, and returns the changes. It returns nil if nothing
// changes, and [lathe.ErrConflict] for a run that has not ended. read is the Read method of a store. The events with the ids in again are
// among the changes even if shrink does not change them, for a store that now stores them in another form.
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
