package event

import (
	"context"

	"github.com/lathe-run/lathe"
)

// A TraceContext names a span, as W3C's Trace Context does. The zero value names none.
type TraceContext struct {
	Parent string // traceparent: the ids of the trace and of the span, and whether it is sampled
	// State is tracestate: what the process that began the trace wrote into it. It is sent to workers only.
	State string
	// Baggage is W3C baggage, in which callers pass on values of their own. It is sent only if the [Tracer] is set up to
	// pass it on.
	Baggage string
}

// A Tracer is a [Sink] that keeps spans for runs and their model and tool calls. It is an optional second interface.
type Tracer interface {
	Sink
	// Trace returns the open span of the tool call callID of a run. If callID is empty, it returns the span of the run's
	// model call, or else that of the run. Without an open span it returns the zero value. It may be called by several
	// goroutines at once.
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

// WithRemoteTrace returns a context for a request of another process, whose span t names. t is not validated here: the
// code that reads it checks whether it is well formed.
func WithRemoteTrace(ctx context.Context, t TraceContext) context.Context {
	return context.WithValue(ctx, remoteTraceKey{}, t)
}

// RemoteTraceFrom returns the trace context that [WithRemoteTrace] has put into ctx, or the zero value.
func RemoteTraceFrom(ctx context.Context) TraceContext {
	t, _ := ctx.Value(remoteTraceKey{}).(TraceContext)
	return t
}

// WithTracer returns a context for the work of a run whose events these sinks receive. [TraceFrom] then gets spans from the
// first [Tracer] among the sinks. If no sink is a Tracer, WithTracer returns ctx.
func WithTracer(ctx context.Context, runID string, sinks []Sink) context.Context {
	for _, s := range sinks {
		if t, ok := s.(Tracer); ok {
			return context.WithValue(ctx, tracedKey{}, &traced{t, runID})
		}
	}
	return ctx
}

// TraceFrom returns the span of the tool call or model call that ctx belongs to, so that requests made for it can name
// their parent span. It returns the zero value if ctx has no [Tracer].
func TraceFrom(ctx context.Context) TraceContext {
	t, _ := ctx.Value(tracedKey{}).(*traced)
	if t == nil {
		return TraceContext{}
	}
	return t.tracer.Trace(t.runID, callOf(ctx, t.runID))
}

// CallOf returns the run and the tool call that ctx belongs to, if it is a context of [WithTracer]; else two empty texts.
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
