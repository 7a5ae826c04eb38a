// Package observe contains the sinks that report the events of runs: as metrics ([Metrics]), spans ([Traces]),
// log lines ([Slog]) and JSON lines ([JSONLines]), and live to watchers ([Bus]).
//
// The sinks receive events with content. They omit the text of arguments, outputs and messages unless the options of the constructor
// include it; Bus passes events on unchanged.
package observe

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/attribute"

	"github.com/lathe-run/lathe/event"
)

// Sinks is an [event.Sink] that passes each event to all of its sinks, in order and on the goroutine of the caller. Sinks does not have the
// other interfaces of its sinks: pass a sink that is also an [event.Tracer] to an engine directly, not in Sinks.
type Sinks []event.Sink

// Emit implements [event.Sink].
func (s Sinks) Emit(ctx context.Context, e event.Event) {
	for _, sink := range s {
		sink.Emit(ctx, e)
	}
}

// appendTexts appends an attribute for each text that is not "". pairs alternates keys and texts.
func appendTexts(attrs []attribute.KeyValue, pairs ...string) []attribute.KeyValue {
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			attrs = append(attrs, attribute.String(pair[0], pair[1]))
		}
	}
	return attrs
}
