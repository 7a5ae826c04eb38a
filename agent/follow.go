package agent

import (
	"context"
	"errors"
	"iter"
	"sync"

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
		if here {
			a.follow(ctx, runID, after, live, yield)
		}
	}
}

// follow yields the events after the event with the id after as they are published, until this process no longer executes the run.
func (a *Agent) follow(ctx context.Context, runID string, after int64, live *observe.Subscription, yield func(event.Event, error) bool) {
	executed, left := context.WithCancel(ctx) // done when this process no longer executes the run
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer left()
	waiting.Go(func() {
		defer left()
		_, _, _ = a.supervisor.Wait(executed, runID)
	})
	for {
		e, err := live.Next(executed)
		if errors.Is(err, observe.ErrLagged) { // the rest is in the store
			a.Events(ctx, runID, after)(yield)
			return
		}
		if err != nil { // the run is not executed any more, or ctx is done
			if err := ctx.Err(); err != nil {
				yield(event.Event{}, err)
			}
			return
		}
		isDelta := e.ID == 0
		wasRead := !isDelta && e.ID <= after || isDelta && e.After < after // in the second case, the event that follows the delta was read
		if wasRead {
			continue
		}
		after = max(after, e.ID)
		if !yield(e, nil) {
			return
		}
	}
}
