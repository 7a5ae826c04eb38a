package loop

import (
	"errors"

	"github.com/lathe-run/lathe/event"
)

// Began returns the input with which a run was started, read from the first event of the run. e must contain an [event.RunStarted] with its
// content, as a store returns it. If the run was started without [Input].Park, the input contains only Messages and Run: a loop that
// executes it uses its own settings, limits and sampling. Began returns an error for any other event, and for an input that cannot be read.
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
	in, err := (&Input{Resume: s}).restored()
	if err != nil {
		return nil, err
	}
	in.Resume = nil
	return in, nil
}
