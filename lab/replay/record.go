package replay

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// The limits of a record.
const (
	MaxLine   = 64 << 20 // bytes of one event
	MaxEvents = 100_000
)

// A Record is the log of one run, with its content.
type Record struct {
	Events []event.Event
}

// Read reads the JSON lines that `lathe runs export` and `lathe run --json` print. Deltas are left out.
// It fails where an event is missing, is of another run, or would not be written again as it is: then
// it was recorded without its texts, or by a newer version of this program.
func Read(in io.Reader) (*Record, error) {
	r := &Record{}
	sc := bufio.NewScanner(in)
	sc.Buffer(nil, MaxLine)
	for n := 1; sc.Scan(); n++ {
		line := bytes.TrimSpace(sc.Bytes())
		if len(line) == 0 {
			continue
		}
		if err := r.add(line); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	switch err := sc.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("a line is longer than %d bytes", MaxLine)
	case err != nil:
		return nil, err
	case len(r.Events) == 0:
		return nil, errors.New("it holds no event")
	}
	return r, nil
}

func (r *Record) add(line []byte) error {
	var e event.Event
	if err := e.UnmarshalJSON(line); err != nil {
		return err
	}
	if event.IsDelta(e.Data) {
		return nil
	}
	again, err := e.MarshalJSON()
	if err != nil {
		return err
	}
	_, starts := e.Data.(*event.RunStarted)
	switch n := len(r.Events); {
	case !bytes.Equal(again, line):
		return fmt.Errorf("event %d would not be kept as it is: it was written without texts, or by another version of lathe", e.ID)
	case e.ID != int64(n)+1:
		return fmt.Errorf("event %d where %d is next", e.ID, n+1)
	case starts != (n == 0):
		return errors.New("a record begins with RunStarted, and holds it once")
	case n > 0 && e.RunID != r.Events[0].RunID:
		return fmt.Errorf("event %d is of another run", e.ID)
	case n == MaxEvents:
		return fmt.Errorf("more than %d events", MaxEvents)
	}
	r.Events = append(r.Events, e)
	return nil
}

// RunID returns the id of the run.
func (r *Record) RunID() string { return r.Events[0].RunID }

// Started returns what the run began with.
func (r *Record) Started() *event.RunStarted { return r.Events[0].Data.(*event.RunStarted) }

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
