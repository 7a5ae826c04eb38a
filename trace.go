package lathe

import "context"

// A TraceContext names a span, as W3C's Trace Context does. The zero value names none.
type TraceContext struct {
	Parent string // traceparent: the ids of the trace and of the span, and whether it is sampled
	// State is tracestate: what whoever began the trace has written into it. It goes to workers, and to nobody else.
	State string
}

// A Tracer is a [Sink] that keeps a span for what a run does. It is an optional second interface.
type Tracer interface {
	Sink
	// Trace names the span that is open for a call of a run; where callID is empty, that for its model call, else the
	// run's own. It names none where there is none. It may be called by several goroutines at once.
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

// WithRemoteTrace returns a context for what a process elsewhere has asked for, whose span t names. t comes
// from outside: whoever uses it looks whether it is well formed.
func WithRemoteTrace(ctx context.Context, t TraceContext) context.Context {
	return context.WithValue(ctx, remoteTraceKey{}, t)
}

// RemoteTraceFrom returns what [WithRemoteTrace] has put into ctx.
func RemoteTraceFrom(ctx context.Context) TraceContext {
	t, _ := ctx.Value(remoteTraceKey{}).(TraceContext)
	return t
}

// WithTracer returns a context for what a run does that these sinks are told of: the [Tracer] among them knows
// its spans. Without one ctx is returned as it is.
func WithTracer(ctx context.Context, runID string, sinks []Sink) context.Context {
	for _, s := range sinks {
		if t, ok := s.(Tracer); ok {
			return context.WithValue(ctx, tracedKey{}, &traced{t, runID})
		}
	}
	return ctx
}

// TraceFrom names the span of the tool call or of the model call that ctx belongs to, for those who are
// asked to do something for it. It names none where nobody keeps spans.
func TraceFrom(ctx context.Context) TraceContext {
	t, _ := ctx.Value(tracedKey{}).(*traced)
	if t == nil {
		return TraceContext{}
	}
	callID := ""
	if m := CallMetaFrom(ctx); m != nil && m.RunID == t.runID { // else it is the call that has begun the run
		callID = m.CallID
	}
	return t.tracer.Trace(t.runID, callID)
}
