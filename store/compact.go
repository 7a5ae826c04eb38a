package store

import (
	"context"
	"encoding/json"
	"iter"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// A Compaction is what a [Compactor] writes in one transaction.
type Compaction struct {
	Events []event.Event // the changed events
	Row    []byte        // JSON form of Sum.Run
	Sum    Summary       // the rows of the run after the changes
}

// PlanCompaction reads the log of an ended run with read, the Read method of a store, applies shrink to each event and returns what has
// changed, or nil if nothing has. It returns [lathe.ErrConflict] if the run has not ended. Events whose ids are in again count as changed
// even if shrink does not change them: a store passes those that it now stores in another form. op is the operation of the error.
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
