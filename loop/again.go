package loop

import (
	"errors"

	"github.com/lathe-run/lathe/event"
)

// Began returns the input of the run that began with e, whose data is a [event.RunStarted] with its
// content. If that run could not be resumed, the input has only its messages and [lathe.RunInfo]: settings, limits and
// sampling are then those of the loop that runs it.
func Began(e *event.Event) (*Input, error) {
	d, ok := e.Data.(*event.RunStarted)
	if !ok {
		return nil, errors.New("loop: a run begins with RunStarted")
	}
	s := &State{}
	if err := s.Apply(e); err != nil {
		return nil, err
	}
	if len(d.Input) == 0 {
		return &Input{Run: s.Run, Messages: d.Messages}, nil
	}
	in, err := (&Input{Resume: s}).again()
	if err != nil {
		return nil, err
	}
	in.Resume = nil
	return in, nil
}
