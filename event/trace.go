package event

import (
	"context"

	"github.com/lathe-run/lathe"
)

// A TraceContext identifies a span, with the values of three HTTP headers of W3C Trace Context and Baggage. The zero value identifies none.
type TraceContext struct {
	Parent string // traceparent: the ids of the trace and of the span, and whether it is sampled
	// State is the value of tracestate: data of tracing systems. It is sent to workers only.
	State string
	// Baggage is the value of baggage: values that callers propagate. It is sent only if the [Tracer] is configured to do so.
	Baggage string
}

// A Tracer is a [Sink] that creates spans for runs and for their model calls and tool calls.
type Tracer interface {
	Sink
	// Trace returns the open span of the tool call callID of a run. If callID is "", it returns the span of the model call in progress, or
	// the span of the run between model calls. It returns the zero value if that span is not open. It may be called by several goroutines
	// at once.
	Trace(runID, callID string) TraceContext
}

type (
	remoteTraceKey struct{}
	tracedKey      struct{}
	traced         struct {
		tracer Tracer
		runID  string
	}
)

// WithRemoteTrace returns a context for executing a request that another process made. t is the span in which that process made the
// request; [RemoteTraceFrom] returns it. t is not validated.
func WithRemoteTrace(ctx context.Context, t TraceContext) context.Context {
	return context.WithValue(ctx, remoteTraceKey{}, t)
}

// RemoteTraceFrom returns the trace context that was passed to [WithRemoteTrace], or the zero value. It may be malformed.
func RemoteTraceFrom(ctx context.Context) TraceContext {
	t, _ := ctx.Value(remoteTraceKey{}).(TraceContext)
	return t
}

// WithTracer returns a context for the model and tool calls of a run. [TraceFrom] then returns spans of the first [Tracer] among sinks,
// instead of those of an earlier WithTracer. If no sink is a Tracer, WithTracer returns ctx.
func WithTracer(ctx context.Context, runID string, sinks []Sink) context.Context {
	for _, s := range sinks {
		if t, ok := s.(Tracer); ok {
			return context.WithValue(ctx, tracedKey{}, &traced{t, runID})
		}
	}
	return ctx
}

// TraceFrom returns the span of the tool call or model call to which ctx belongs. It is the parent of the requests that are made for that
// call. TraceFrom returns the zero value if ctx has no [Tracer].
func TraceFrom(ctx context.Context) TraceContext {
	t, _ := ctx.Value(tracedKey{}).(*traced)
	if t == nil {
		return TraceContext{}
	}
	return t.tracer.Trace(t.runID, callOf(ctx, t.runID))
}

// CallOf returns the ids of the run and of the tool call to which ctx belongs. Both are "" if ctx is not derived from a context of
// [WithTracer]; callID is "" outside of a tool call.
func CallOf(ctx context.Context) (runID, callID string) {
	t, _ := ctx.Value(tracedKey{}).(*traced)
	if t == nil {
		return "", ""
	}
	return t.runID, callOf(ctx, t.runID)
}

func callOf(ctx context.Context, runID string) string {
	if m := lathe.CallMetaFrom(ctx); m != nil && m.RunID == runID { // else it is the call that has begun the run
		return m.CallID
	}
	return ""
}
