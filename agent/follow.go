package agent

import (
	"context"
	"errors"
	"iter"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/observe"
)

// Events yields the events of a run that follow the event with the id after (0: all events). It yields them first from the store and then
// as they are published, until the run ends or is parked. The caller may retain them. The run does not wait for the caller: a slow caller
// misses deltas, but no stored event. Ending the range does not affect the run. If ctx is done, the last pair has its error. For a run that
// another process executes, Events yields only stored events. For a run that does not exist, it yields an error of code not_found.
func (a *Agent) Events(ctx context.Context, runID string, after int64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		live := a.bus.Subscribe(runID)
		defer live.Close()
		here := a.supervisor.Owns(runID) // this process executes the run
		for e, err := range a.runs.Read(ctx, runID, after) {
			if here && lathe.CodeOf(err) == lathe.CodeNotFound { // it has begun, and its first event is not stored yet
				break
			}
			if !yield(e, err) || err != nil {
				return
			}
			after = e.ID
		}
		if !here {
			return
		}
		executed, left := context.WithCancel(ctx) // until this process no longer executes the run
		over := make(chan struct{})               // closed when the goroutine has ended
		go func() {
			defer close(over)
			defer left()
			_, _, _ = a.supervisor.Wait(executed, runID)
		}()
		defer func() {
			left()
			<-over
		}()
		for {
			e, err := live.Next(executed)
			switch {
			case errors.Is(err, observe.ErrLagged): // the rest is in the store
				for e, err := range a.Events(ctx, runID, after) {
					if !yield(e, err) {
						return
					}
				}
				return
			case err != nil: // the run is not executed any more, or ctx is done
				if err := ctx.Err(); err != nil {
					yield(event.Event{}, err)
				}
				return
			case e.ID != 0 && e.ID <= after, e.ID == 0 && e.After < after: // read from the store, or a delta before an event that was
				continue
			}
			after = max(after, e.ID)
			if !yield(e, nil) {
				return
			}
		}
	}
}
