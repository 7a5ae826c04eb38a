// Package observe contains the sinks that report the events of runs: as metrics ([Metrics]), spans ([Traces]),
// log lines ([Slog]) and JSON lines ([JSONLines]), live to watchers ([Bus]), and to tests ([Recorder]).
//
// All of them receive whole events. They leave out the text of arguments, outputs and messages unless a
// constructor's options include it; Recorder and Bus pass events on unchanged.
package observe

import (
	"context"

	"github.com/lathe-run/lathe/event"
)

// Sinks is an [event.Sink] that passes each event to its sinks in order.
type Sinks []event.Sink

// Emit implements [event.Sink].
func (s Sinks) Emit(ctx context.Context, e event.Event) {
	for _, sink := range s {
		sink.Emit(ctx, e)
	}
}
