package agent

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/observe"
)

// Events yields the events of a run after the event with the id after (0: all of them), from the store and then as they happen, until the
// run ends or is parked. The receiver may keep them, and the run does not wait for the receiver: deltas that it is too slow for are left
// out. Ending the range does not affect the run. Of a run that another process executes, Events yields the events that are stored so far.
func (a *Agent) Events(ctx context.Context, runID string, after int64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		live := a.bus.Subscribe(runID)
		defer live.Close()
		here := a.supervisor.Owns(runID)
		last, ended := after, false
		for e, err := range a.runs.Read(ctx, runID, after) {
			if here && lathe.CodeOf(err) == lathe.CodeNotFound { // it has begun, and its first event is not stored yet
				break
			}
			if err != nil {
				yield(event.Event{}, err)
				return
			}
			last, ended = e.ID, isEnd(&e)
			if !yield(e, nil) {
				return
			}
		}
		for here && !ended {
			e, err := live.Next(ctx)
			switch {
			case errors.Is(err, io.EOF):
				return
			case errors.Is(err, observe.ErrLagged): // the rest is in the store
				for e, err := range a.Events(ctx, runID, last) {
					if !yield(e, err) {
						return
					}
				}
				return
			case err != nil:
				yield(event.Event{}, err)
				return
			case e.ID != 0 && e.ID <= last, e.ID == 0 && e.After < last: // it was read from the store
				continue
			}
			if e.ID != 0 {
				last = e.ID
			}
			if ended = isEnd(&e); !yield(e, nil) {
				return
			}
		}
	}
}

// isEnd reports whether an event is the last one of a run, or of a part of it that ends with the run parked.
func isEnd(e *event.Event) bool {
	switch e.Data.(type) {
	case *event.RunFinished, *event.RunPaused:
		return true
	default:
		return false
	}
}
