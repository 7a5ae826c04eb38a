package replay

import (
	"context"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

// Parts are the parts with which the loop for a replay must be built. All of them are set.
type Parts struct {
	Model    lathe.Model
	Approver lathe.Approver
	// Now is the clock for the loop and its runner: it returns the time of the next recorded event.
	Now func() time.Time
}

// A Result is the replay of a run.
type Result struct {
	Events []event.Event // the stored events in order, without deltas
	// Until is the id of the last recorded event that can be compared. Later events depend on a process that ended early, or are missing in
	// the record.
	Until int64
}

// Run executes the recorded run again, with a store in memory, and passes its events to sinks as they occur. build must return a loop with
// the given parts, whose model and approver repeat the record. The tools of that loop are called; to repeat the recorded results instead,
// build the loop with the tools of [Record.StandIns].
//
// If the replayed run fails, Run returns its Result. Run returns an error if the first event has no valid input, if build fails, if the run
// cannot begin, and, with the code content_removed, if a store has removed content of the record.
func (r *Record) Run(ctx context.Context, build func(*Parts) (*loop.Loop, error), sinks ...event.Sink) (*Result, error) {
	if err := r.checkWhole(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in, err := r.input()
	if err != nil {
		return nil, err
	}
	clock, approver := r.clock(), &people{outcomes: r.outcomes()}
	l, err := build(&Parts{Model: r.model(cancel), Approver: approver, Now: clock.now})
	if err != nil {
		return nil, err
	}
	seen := &collector{}
	e, err := engine.New(&engine.Options{Store: store.NewMemory(nil), Sinks: append([]event.Sink{clock, seen}, sinks...), Now: clock.now})
	if err != nil {
		return nil, err
	}
	out := &Result{Until: r.Events[len(r.Events)-1].ID}
	stretches := r.stretches()
	approver.begin(&stretches[0])
	_, err = e.Run(ctx, l, in, nil)
	for i := range stretches[1:] {
		s := &stretches[1+i]
		if s.crashed {
			out.Until = s.after
			break
		}
		if seen.waits() && ctx.Err() == nil {
			approver.begin(s)
			_, err = e.Resume(ctx, l, r.RunID(), s.answers)
		}
	}
	out.Events = seen.events
	if len(out.Events) > 0 {
		err = nil // a failed run is compared like any other
	}
	return out, err
}

// A collector is a sink that collects the stored events.
type collector struct {
	mu     sync.Mutex
	events []event.Event
}

// Emit implements [event.Sink].
func (c *collector) Emit(_ context.Context, e event.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.ID != 0 {
		c.events = append(c.events, e)
	}
}

func (c *collector) waits() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return waits(c.events)
}
