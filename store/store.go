package store

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/lathe-run/lathe/event"
)

// A Store stores the events of each run as an append-only log. Delta events are never stored. Its methods may be called from several
// goroutines at once.
//
// Every error is a *[lathe.Error]. If the context is done when a method is called, or between two events of Read, the error has the code
// cancelled or timeout. Read returns events as they were appended, and raw JSON in them with the same bytes: a store that writes JSON calls
// [event.Event.MarshalJSON] itself, because [encoding/json.Marshal] escapes <, > and & in its result. Package storetest checks all this.
type Store interface {
	// Append adds events, whose IDs must follow last without a gap, to the log of a run and returns the new last ID: all of them or none.
	// last is 0 for a new run. If the log does not end at last, the error has the code conflict and wraps [lathe.ErrConflict]; events that
	// [CheckAppend] refuses are an error of code invalid_request. Appending no events to a new run does not create it.
	Append(ctx context.Context, runID string, last int64, events ...event.Event) (int64, error)
	// Read yields the events with IDs above after, in order; an error is yielded last. If the run does not exist, or after is negative or
	// above its last ID, the error has the code not_found and wraps [lathe.ErrNotFound].
	Read(ctx context.Context, runID string, after int64) iter.Seq2[event.Event, error]
	// Delete removes the log of a run. It returns nil if the run does not exist.
	Delete(ctx context.Context, runID string) error
}

// CheckAppend returns an error if events cannot follow the event with the ID last in the log of runID: a store calls it in Append, and gives
// the error, which has no code, the code invalid_request. It does not read the log.
func CheckAppend(runID string, last int64, events []event.Event) error {
	if runID == "" {
		return errors.New("the run has no id")
	}
	if last < 0 {
		return fmt.Errorf("the last id is %d", last)
	}
	for i, e := range events {
		switch {
		case e.Data == nil:
			return fmt.Errorf("event %d has no data", e.ID)
		case event.IsDelta(e.Data):
			return fmt.Errorf("%s is a delta event, which is not stored", e.Data.EventType())
		case e.RunID != runID:
			return fmt.Errorf("event %d is of another run", e.ID)
		case e.ID != last+int64(i)+1:
			return fmt.Errorf("event %d where %d is next", e.ID, last+int64(i)+1)
		}
	}
	return nil
}
