package loop

import (
	"errors"

	"github.com/lathe-run/lathe"
)

// Began returns the input of the run that began with e, whose data is a [lathe.RunStarted] with its
// content. Of a run that could not be resumed it says no more than its messages, labels and principal:
// its settings, limits and sampling are those of the loop then.
func Began(e *lathe.Event) (*Input, error) {
	d, ok := e.Data.(*lathe.RunStarted)
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
