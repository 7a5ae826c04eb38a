package replay

import (
	"fmt"
	"io"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
)

// A Record is the log of one run, with its content.
type Record struct {
	Events []event.Event
}

// Read reads a log with [event.ReadLog].
func Read(in io.Reader) (*Record, error) {
	events, err := event.ReadLog(in)
	if err != nil {
		return nil, err
	}
	return &Record{Events: events}, nil
}

// RunID returns the id of the run.
func (r *Record) RunID() string { return r.Events[0].RunID }

// Started returns what the run began with.
func (r *Record) Started() *event.RunStarted { return r.Events[0].Data.(*event.RunStarted) }

// input returns what the run was started from, whether or not it could be resumed.
func (r *Record) input() (*loop.Input, error) { return loop.Began(&r.Events[0]) }

// checkWhole refuses a record whose content a store has removed: what it says in its place would be replayed.
func (r *Record) checkWhole() error {
	for i := range r.Events {
		if n := r.Events[i].Removed; n > 0 {
			return &lathe.Error{Code: lathe.CodeContentRemoved, Op: fmt.Sprintf("replay: event %d: %d bytes", r.Events[i].ID, n), Err: lathe.ErrContentRemoved}
		}
	}
	return nil
}

// Ended reports whether the run has come to its end.
func (r *Record) Ended() bool {
	_, ok := r.Events[len(r.Events)-1].Data.(*event.RunFinished)
	return ok
}
