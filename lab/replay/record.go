package replay

import (
	"fmt"
	"io"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
)

// A Record contains the events of one run in order, including their content. The first event must be a RunStarted, which [Read] guarantees;
// otherwise the methods panic. They do not change the events.
type Record struct {
	Events []event.Event
}

// Read reads a log of one run in the form of [event.ReadLog], whose errors it returns.
func Read(in io.Reader) (*Record, error) {
	events, err := event.ReadLog(in)
	if err != nil {
		return nil, err
	}
	return &Record{Events: events}, nil
}

// RunID returns the id of the recorded run.
func (r *Record) RunID() string { return r.Events[0].RunID }

// Started returns the first event.
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

// Ended reports whether the last event is the end of the run.
func (r *Record) Ended() bool {
	_, ok := r.Events[len(r.Events)-1].Data.(*event.RunFinished)
	return ok
}
