// Package observe holds the sinks that tell what runs do: in numbers ([Metrics]), in log lines
// ([Slog]), in JSON lines ([JSONLines]), live to watchers ([Bus]) and to tests ([Recorder]).
//
// All of them see the events' data; argument, output and message text is left out everywhere but
// where a constructor's options ask for it, and in Recorder and Bus, which hand on whole events.
package observe

import (
	"context"

	"github.com/lathe-run/lathe"
)

// Sinks tells each of its sinks in order. It is a [lathe.Sink].
type Sinks []lathe.Sink

// Emit implements [lathe.Sink].
func (s Sinks) Emit(ctx context.Context, e lathe.Event) {
	for _, sink := range s {
		sink.Emit(ctx, e)
	}
}

// keep returns an event that may be kept: a copy where the loop reuses the delta.
func keep(e lathe.Event) lathe.Event {
	switch d := e.Data.(type) {
	case *lathe.TextDelta:
		c := *d
		e.Data = &c
	case *lathe.ReasoningDelta:
		c := *d
		e.Data = &c
	case *lathe.CommentaryDelta:
		c := *d
		e.Data = &c
	case *lathe.ToolCallDelta:
		c := *d
		e.Data = &c
	default: // may be kept as it is
	}
	return e
}
