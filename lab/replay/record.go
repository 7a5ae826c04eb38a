package replay

import (
	"fmt"
	"io"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
)

// A Record has the events of one run, including content.
type Record struct {
	Events []event.Event
}

// Read reads the events of a log: see [event.ReadLog].
func Read(in io.Reader) (*Record, error) {
	events, err := event.ReadLog(in)
	if err != nil {
		return nil, err
	}
	return &Record{Events: events}, nil
}

// RunID returns the id of the run.
func (r *Record) RunID() string { return r.Events[0].RunID }

// Started returns the first event of the run.
func (r *Record) Started() *event.RunStarted { return r.Events[0].Data.(*event.RunStarted) }

// input returns the input with which the run was started, even if the run could not be resumed.
func (r *Record) input() (*loop.Input, error) { return loop.Began(&r.Events[0]) }

// checkWhole returns an error if a store has removed content of the record: the replay would use placeholders in its place.
func (r *Record) checkWhole() error {
	for i := range r.Events {
		if n := r.Events[i].Removed; n > 0 {
			return lathe.CodeContentRemoved.Wrap(fmt.Sprintf("replay: event %d: %d bytes", r.Events[i].ID, n), lathe.ErrContentRemoved)
		}
	}
	return nil
}

// Ended reports whether the record contains the end of the run.
func (r *Record) Ended() bool {
	_, ok := r.Events[len(r.Events)-1].Data.(*event.RunFinished)
	return ok
}
