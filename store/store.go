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
// Every error must be a *[lathe.Error]. If the context is done when a method is called, or between two events of Read, the error has the
// code cancelled or timeout. Read must return events as they were appended, and raw JSON in them with the same bytes: a store that writes
// JSON must call [event.Event.MarshalJSON] itself, because [encoding/json.Marshal] escapes <, > and & in its result. Package storetest
// checks all this.
type Store interface {
	// Append adds events to the log of a run, all of them or none, and returns the new last ID. last is the last ID of the log, or 0 for a
	// new run, and the IDs of the events must follow it without a gap. If the log does not end at last, the error has the code conflict and
	// wraps [lathe.ErrConflict]. Events that [CheckAppend] refuses are an error of code invalid_request. Appending no events to a new run
	// does not create the run.
	Append(ctx context.Context, runID string, last int64, events ...event.Event) (int64, error)
	// Read yields the events with IDs above after, in order; an error is yielded last. If the run does not exist, or after is negative or
	// above its last ID, the error has the code not_found and wraps [lathe.ErrNotFound].
	Read(ctx context.Context, runID string, after int64) iter.Seq2[event.Event, error]
	// Delete removes the log of a run. It returns nil if the run does not exist.
	Delete(ctx context.Context, runID string) error
}

// CheckAppend checks the arguments of [Store].Append without reading the log: it returns an error if events cannot follow the event with
// the ID last. A store must call it in Append and give the error, which has no code, the code invalid_request.
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
