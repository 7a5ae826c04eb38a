package observe

import (
	"context"
	"log/slog"
	"sync"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// CountLostLines returns a handler that passes records to next. For each record for which next returns an error, the handler calls lost(1)
// and returns that error. lost must not block; it may be called from several goroutines at once.
func CountLostLines(next slog.Handler, lost func(n int)) slog.Handler {
	return &lossHandler{next, lost}
}

type lossHandler struct {
	slog.Handler
	lost func(n int)
}

// Handle implements [slog.Handler].
func (h *lossHandler) Handle(ctx context.Context, r slog.Record) error {
	err := h.Handler.Handle(ctx, r)
	if err != nil {
		h.lost(1)
	}
	return err
}

// WithAttrs implements [slog.Handler].
func (h *lossHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &lossHandler{h.Handler.WithAttrs(attrs), h.lost}
}

// WithGroup implements [slog.Handler].
func (h *lossHandler) WithGroup(name string) slog.Handler {
	return &lossHandler{h.Handler.WithGroup(name), h.lost}
}

// A spanQueue limits the number of spans between their end and the end of their export, and counts lost ones. The SDK's batch processor
// drops spans without counting them if its queue is full. So a span is passed to the processor only if the queue has capacity for all
// waiting spans.
type spanQueue struct {
	sdktrace.SpanProcessor
	limit int
	lost  func(n int)

	mu      sync.Mutex
	waiting int
	closed  bool
}

// newSpanQueue returns a processor that exports with x. lost is called with the number of lost spans.
func newSpanQueue(x *otlpJSON, limit int, lost func(int)) *spanQueue {
	q := &spanQueue{limit: limit, lost: lost}
	x.exported = q.exported
	q.SpanProcessor = sdktrace.NewBatchSpanProcessor(x, sdktrace.WithMaxQueueSize(limit))
	return q
}

// OnEnd implements sdktrace.SpanProcessor.
func (q *spanQueue) OnEnd(s sdktrace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	q.mu.Lock()
	hasRoom := !q.closed && q.waiting < q.limit
	if hasRoom {
		q.waiting++
	}
	q.mu.Unlock()
	if hasRoom {
		q.SpanProcessor.OnEnd(s)
	} else {
		q.lost(1)
	}
}

// exported records that the export of n spans has ended. After Shutdown it does nothing, because Shutdown has counted all.
func (q *spanQueue) exported(n int, sent bool) {
	q.mu.Lock()
	n = min(n, q.waiting)
	q.waiting -= n
	q.mu.Unlock()
	if !sent && n > 0 {
		q.lost(n)
	}
}

// Shutdown implements sdktrace.SpanProcessor. Spans that are not sent before ctx is done count as lost, and so do spans that end after
// Shutdown.
func (q *spanQueue) Shutdown(ctx context.Context) error {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	err := q.SpanProcessor.Shutdown(ctx)
	q.mu.Lock()
	n := q.waiting
	q.waiting = 0
	q.mu.Unlock()
	if n > 0 {
		q.lost(n)
	}
	return err
}
