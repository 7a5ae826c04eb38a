package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
)

// Durability says when the events of a run are stored.
type Durability uint8

// The durabilities. The zero value is Immediate.
const (
	// Immediate stores each event before it is published and before any effect that depends on it.
	Immediate Durability = iota
	// Deferred publishes events first and stores them later: all together after the end of the run, or as soon as MustPersist requires it.
	// Use it only for a run on which nothing outside this process depends: if the process stops or the store fails earlier, the store has
	// no events of the run. See [RunOptions].MustPersist, [Engine.Flush] and [Options].FlushBeforeEnd.
	Deferred
	// None stores no events. They are only audited and published. The run cannot be parked.
	None
)

// String returns "immediate", "deferred" or "none".
func (d Durability) String() string {
	switch d {
	case Immediate:
		return "immediate"
	case Deferred:
		return "deferred"
	case None:
		return "none"
	default:
		return fmt.Sprintf("Durability(%d)", uint8(d))
	}
}

// RunOptions are the options of one run. They are copied.
type RunOptions struct {
	// Durability says when events are stored. An engine without a store never stores them.
	Durability Durability
	// MustPersist, for a run of durability Deferred, selects the event from which on the run is stored. Run calls it with the data of each
	// event except deltas, in order, on the goroutine of the run. When it first returns true, that event and all earlier ones are stored
	// before the event is published; every later event is then stored before it is published, as with Immediate. nil: nothing is stored
	// before the end of the run.
	MustPersist func(event.Data) bool
	// Sinks receive the events of this run only, after the sinks of the engine.
	Sinks []event.Sink
	// Cancel, if not nil, must cancel the context that the caller passes to Run. The caller must have created that context by
	// [context.WithCancelCause] for this run alone, and must cancel it after Run has returned. Run then derives no context of its own,
	// which is faster. Run calls Cancel with the cause if the store or the audit fails, or if another process acquires the run. nil: Run
	// derives its own context.
	Cancel context.CancelCauseFunc
}

// check returns an error for options that contradict each other or the input.
func (o *RunOptions) check(in *loop.Input) error {
	var err error
	switch {
	case o.Durability > None:
		err = fmt.Errorf("there is no %v", o.Durability)
	case o.MustPersist != nil && o.Durability != Deferred:
		err = fmt.Errorf("MustPersist is for durability deferred, not %v", o.Durability)
	case o.Durability == None && in != nil && in.Park:
		err = errors.New("a run that can park must be stored: its durability is none")
	default:
		return nil
	}
	return lathe.CodeInvalidRequest.Wrap("engine: run", err)
}
