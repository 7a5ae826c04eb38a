package observe

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

var _ event.Tracer = (*Traces)(nil)

// TracesOptions configure a [Traces]. Only Endpoint is required.
type TracesOptions struct {
	// Endpoint is the URL to which spans are posted as OTLP in JSON, such as http://127.0.0.1:4318/v1/traces.
	Endpoint string
	Headers  map[string]string // HTTP headers of each request to Endpoint; the values may be secrets
	Service  string            // the resource attribute service.name; "": "lathe"
	Version  string            // the resource attribute service.version; "": none
	// Content adds texts to the spans: instructions, messages, tool definitions, arguments and results. Of the messages of a request, only
	// the last ones that fit into 256 KiB are added.
	Content bool
	// ContentURL is the URL, without a final slash, of a gateway that stores the runs, such as https://lathe.example.com. Spans get the URL
	// of the run's page there as the attribute lathe.content_url. "": no such attribute.
	ContentURL string
	// Baggage selects the outgoing requests that carry the caller's baggage; "": none.
	Baggage Baggage
	// Latest selects the attribute names of the version after 1.41 of OpenTelemetry's semantic conventions, which is not released; false:
	// those of version 1.41.
	Latest bool
	// Queue is the maximum number of ended spans that wait to be sent; 0: 2,048. Further ones are dropped.
	Queue int
	// Lost, if not nil, is called with the number of spans that were lost: dropped because the queue was full, refused by the collector, or
	// not sent before Close returned. It must not block and may be called from several goroutines at once.
	Lost   func(n int)
	Client *http.Client // sends the spans; nil: a client with a timeout of 10 s
	Log    *slog.Logger // receives a record if spans could not be sent; nil: no logging
}

// A Traces is an [event.Sink] that converts events to OpenTelemetry spans: invoke_agent for a run and, as its children, chat for each
// attempt of a model call and execute_tool for each tool call. When a run is suspended its span ends; when it is resumed a new one begins.
// Spans are sent in batches in the background. Its methods may be called from several goroutines at once.
//
// The parent of a run's span is the span of the tool call that started the run; otherwise it is the remote span of [event.WithRemoteTrace].
// The environment variables of OpenTelemetry's SDK for samplers and batches apply, except for the size of the queue.
type Traces struct {
	provider *sdktrace.TracerProvider
	queue    *spanQueue
	tracer   trace.Tracer
	content  bool
	stored   string // value of ContentURL
	baggage  Baggage

	mu   sync.Mutex
	runs map[string]*runSpans
}

// runSpans are the open spans of a run. The mutex of the Traces guards them.
type runSpans struct {
	run, chat trace.Span // run is nil if another process executes the run: only its calls have spans here
	calls     map[string]trace.Span
	baggage   string
}

// NewTraces returns a sink that sends spans to opts.Endpoint; opts must not be nil. It returns an error if a URL or Baggage is invalid. The
// caller must call Close.
func NewTraces(opts *TracesOptions) (*Traces, error) {
	o := *opts
	if _, ok := httpURL(o.Endpoint); !ok {
		return nil, errors.New("observe: the endpoint of traces is no URL of http or https")
	}
	if o.ContentURL != "" {
		u, ok := httpURL(o.ContentURL)
		if !ok || u.User != nil {
			return nil, errors.New("observe: the address of the content is no URL of http or https")
		}
	}
	if o.Baggage != "" && o.Baggage != BaggageTools && o.Baggage != BaggageAll {
		return nil, errors.New("observe: the baggage of traces is neither tools nor all")
	}
	o.setDefaults()
	about := resource.NewSchemaless(attribute.String("service.name", o.Service), attribute.String("service.version", o.Version))
	schema := semconvSchema
	if o.Latest {
		schema = latestSchema
	}
	t := &Traces{content: o.Content, baggage: o.Baggage, stored: o.ContentURL, runs: map[string]*runSpans{}}
	t.queue = newSpanQueue(&otlpJSON{opts: o}, o.Queue, o.Lost)
	t.provider = sdktrace.NewTracerProvider(sdktrace.WithResource(about), sdktrace.WithSpanProcessor(t.queue))
	t.tracer = t.provider.Tracer("github.com/lathe-run/lathe", trace.WithInstrumentationVersion(o.Version), trace.WithSchemaURL(schema))
	return t, nil
}

// httpURL parses a URL; ok is false if it is not one of http or https with a host.
func httpURL(address string) (u *url.URL, ok bool) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, false
	}
	isHTTP := u.Scheme == "http" || u.Scheme == "https"
	return u, isHTTP && u.Host != ""
}

func (o *TracesOptions) setDefaults() {
	o.Service = cmp.Or(o.Service, "lathe")
	if o.Client == nil {
		o.Client = &http.Client{Timeout: 10 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	if o.Queue <= 0 {
		o.Queue = sdktrace.DefaultMaxQueueSize
	}
	if o.Lost == nil {
		o.Lost = func(int) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

// Close stops the sink and sends the queued spans until ctx is done. The error says why spans could not be sent.
func (t *Traces) Close(ctx context.Context) error {
	return errors.Join(t.provider.Shutdown(ctx), t.queue.Shutdown(ctx)) // Shutdown of the provider does nothing if ctx is done
}

// RemoteTrace returns a context for runs that an HTTP request with the headers h starts. The spans of these runs are children of the span
// in the W3C headers traceparent and tracestate; the context also contains the baggage header. If there is not exactly one traceparent
// header, RemoteTrace returns ctx unchanged.
func RemoteTrace(ctx context.Context, h http.Header) context.Context {
	if len(h["Traceparent"]) != 1 {
		return ctx
	}
	return event.WithRemoteTrace(ctx, event.TraceContext{Parent: h["Traceparent"][0], State: strings.Join(h["Tracestate"], ","), Baggage: strings.Join(h["Baggage"], ",")})
}

// maxTraceState is the maximum length of a caller's tracestate; a longer one is ignored.
const maxTraceState = 512

// remoteSpan parses the trace context of a remote caller. For a malformed one it returns an invalid span context.
func remoteSpan(t event.TraceContext) trace.SpanContext {
	h := http.Header{"Traceparent": {t.Parent}}
	if len(t.State) <= maxTraceState {
		h.Set("Tracestate", t.State)
	}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(h)))
}

// Trace implements [event.Tracer]: it returns the open span of the tool call or, if callID is "", that of the run's current model call. If
// there is no such span, it returns that of the run. If the run has none either, it returns the zero value. The result contains the baggage
// of the run if [TracesOptions].Baggage selects requests of this kind.
func (t *Traces) Trace(runID, callID string) event.TraceContext {
	t.mu.Lock()
	sc := t.open(runID, callID)
	passed := ""
	isSelected := t.baggage == BaggageAll || t.baggage == BaggageTools && callID != ""
	if r := t.runs[runID]; r != nil && isSelected {
		passed = r.baggage
	}
	t.mu.Unlock()
	if !sc.IsValid() {
		return event.TraceContext{}
	}
	out := traceContext(sc)
	out.Baggage = passed
	return out
}

// traceContext returns the W3C form of a span context.
func traceContext(sc trace.SpanContext) event.TraceContext {
	h := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(context.Background(), sc), h)
	return event.TraceContext{Parent: h.Get("traceparent"), State: h.Get("tracestate")}
}

// open returns the open span of a call, or that of the run if callID is "" or has none. The caller holds the mutex.
func (t *Traces) open(runID, callID string) trace.SpanContext {
	r := t.runs[runID]
	if r == nil {
		return trace.SpanContext{}
	}
	s := r.run
	switch {
	case r.calls[callID] != nil:
		s = r.calls[callID]
	case callID == "" && r.chat != nil:
		s = r.chat
	case s == nil:
		return trace.SpanContext{}
	}
	return s.SpanContext()
}

// Emit implements [event.Sink].
func (t *Traces) Emit(ctx context.Context, e event.Event) {
	if event.IsDelta(e.Data) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch d := e.Data.(type) {
	case *event.RunStarted:
		attrs := []attribute.KeyValue{attribute.String(attrProvider, d.Provider), attribute.String(attrRequestModel, d.Model)}
		if t.content {
			attrs = appendMessages(attrs, d.Messages)
		}
		t.begin(ctx, &e, attrs...)
		return
	case *event.RunResumed:
		t.begin(ctx, &e, attribute.String(attrReason, string(d.Reason)))
		return
	case *event.ToolCallProposed: // another process may execute the run: then no RunStarted arrives here
		if t.runs[e.RunID] == nil && len(t.runs) < maxFollowedRuns {
			t.runs[e.RunID] = &runSpans{calls: map[string]trace.Span{}, baggage: t.baggageOf(ctx)}
		}
	default: // only if the run has spans
	}
	r := t.runs[e.RunID]
	if r == nil {
		return
	}
	switch d := e.Data.(type) {
	case *event.ModelCallStarted:
		t.chatBegins(ctx, r, &e, d)
	case *event.ModelCallFinished:
		t.chatEnds(r, &e, d)
	case *event.ToolCallProposed:
		t.callBegins(ctx, r, &e, d)
	case *event.ApprovalRequested:
		r.note(d.ToolCallID, &e, "approval requested", attribute.String(attrRule, d.Rule))
	case *event.ApprovalResolved:
		if r.calls[d.ToolCallID] == nil { // the span ended when the run was parked
			t.call(ctx, r, &e, d.ToolCallID, d.Tool, toolExtension)
		}
		r.note(d.ToolCallID, &e, "approval "+d.Decision, attribute.String(attrBy, d.By))
	case *event.ToolCallExecuted:
		if s := r.calls[d.ToolCallID]; s != nil && d.Cached {
			s.SetAttributes(attribute.Bool(attrCached, true))
		}
	case *event.ToolCallResult:
		t.callEnds(r, &e, d)
	case *event.RunPaused:
		t.end(r, &e, string(d.Reason), "", nil)
	case *event.RunFinished:
		code := d.ErrorCode
		if code == "" && (d.Status == "failed" || d.Status == "limited") {
			code = string(d.Reason)
		}
		attrs := appendTexts(tokenAttrs(d.Usage), attrLimit, d.Limit)
		if t.content && d.Answer != "" {
			attrs = appendAnswer(attrs, new(lathe.Assistant(d.Answer)), lathe.FinishStop)
		}
		t.end(r, &e, string(d.Reason), code, attrs)
	default: // not shown in a span
	}
}

// begin starts the span of a run.
func (t *Traces) begin(ctx context.Context, e *event.Event, attrs ...attribute.KeyValue) {
	if t.runs[e.RunID] == nil && len(t.runs) >= maxFollowedRuns {
		return
	}
	parent := remoteSpan(event.RemoteTraceFrom(ctx))
	if m := lathe.CallMetaFrom(ctx); m != nil && m.RunID != e.RunID {
		if above := t.open(m.RunID, m.CallID); above.IsValid() {
			parent = above
		}
	}
	attrs = append(attrs, attribute.String(attrOperation, spanRun), attribute.String(attrRequestID, e.RequestID))
	span := t.start(parent, e, spanRun, trace.SpanKindInternal, attrs)
	t.runs[e.RunID] = &runSpans{run: span, calls: map[string]trace.Span{}, baggage: t.baggageOf(ctx)}
}

// child starts a span whose parent is the run's span, or the remote span in ctx if another process executes the run.
func (t *Traces) child(ctx context.Context, r *runSpans, e *event.Event, name string, kind trace.SpanKind, attrs ...attribute.KeyValue) trace.Span {
	parent := remoteSpan(event.RemoteTraceFrom(ctx))
	if r.run != nil {
		parent = r.run.SpanContext()
	}
	return t.start(parent, e, name, kind, append(attrs, attribute.Int(attrTurn, e.Turn)))
}

// start starts a span of the run of e, with the URL of the run's content.
func (t *Traces) start(parent trace.SpanContext, e *event.Event, name string, kind trace.SpanKind, attrs []attribute.KeyValue) trace.Span {
	attrs = appendTexts(attrs, attrRunID, e.RunID, attrConversation, e.SessionID)
	if t.stored != "" {
		attrs = append(attrs, attribute.String(attrContentURL, t.stored+"/runs/"+url.PathEscape(e.RunID)))
	}
	_, span := t.tracer.Start(trace.ContextWithRemoteSpanContext(context.Background(), parent), name, trace.WithSpanKind(kind), trace.WithTimestamp(e.Time), trace.WithAttributes(attrs...))
	return span
}

func (t *Traces) chatBegins(ctx context.Context, r *runSpans, e *event.Event, d *event.ModelCallStarted) {
	attrs := []attribute.KeyValue{attribute.String(attrOperation, spanChat), attribute.String(attrProvider, d.Provider),
		attribute.String(attrRequestModel, d.Model), attribute.Int(attrAttempt, d.Attempt), attribute.String(attrPromptHash, d.PromptHash)}
	attrs = appendTexts(attrs, attrAgent, d.Agent)
	if d.Request != nil {
		attrs = appendServer(attrs, d.Request.Server)
		if t.content {
			attrs = appendRequest(attrs, d.Request)
		}
	}
	r.chat = t.child(ctx, r, e, spanChat+" "+d.Model, trace.SpanKindClient, attrs...)
}

func (t *Traces) chatEnds(r *runSpans, e *event.Event, d *event.ModelCallFinished) {
	if r.chat == nil {
		return
	}
	attrs := append(tokenAttrs(d.Usage), attribute.String(attrModel, d.Model))
	if d.FinishReason != "" {
		attrs = append(attrs, attribute.StringSlice(attrFinish, []string{string(d.FinishReason)}))
	}
	if d.FirstTokenMS > 0 {
		attrs = append(attrs, attribute.Float64(attrFirstChunk, float64(d.FirstTokenMS)/1000))
	}
	attrs = appendTexts(attrs, attrResponseID, d.ResponseID, attrUpstreamID, d.UpstreamRequestID)
	if cost := d.Dollars(); cost != nil {
		attrs = append(attrs, attribute.Float64(attrCost, *cost))
	}
	if t.content && d.Message != nil {
		attrs = appendAnswer(attrs, d.Message, d.FinishReason)
	}
	r.chat.SetAttributes(attrs...)
	fail(r.chat, d.ErrorCode)
	r.chat.End(trace.WithTimestamp(e.Time))
	r.chat = nil
}

func (t *Traces) callBegins(ctx context.Context, r *runSpans, e *event.Event, d *event.ToolCallProposed) {
	kind := toolExtension
	if d.Client {
		kind = toolFunction
	}
	var attrs []attribute.KeyValue
	if t.content {
		attrs = append(attrs, attribute.String(attrArguments, d.RawArgs))
	}
	t.call(ctx, r, e, d.ToolCallID, d.ToolName, kind, attrs...)
}

// call starts the span of a tool call.
func (t *Traces) call(ctx context.Context, r *runSpans, e *event.Event, id, name, kind string, attrs ...attribute.KeyValue) {
	attrs = appendTexts(attrs, attrOperation, spanTool, attrTool, name, attrCallID, id, attrToolType, kind)
	r.calls[id] = t.child(ctx, r, e, spanTool+" "+name, trace.SpanKindInternal, attrs...)
}

func (t *Traces) callEnds(r *runSpans, e *event.Event, d *event.ToolCallResult) {
	s := r.calls[d.ToolCallID]
	if s == nil {
		return
	}
	delete(r.calls, d.ToolCallID)
	s.SetAttributes(appendTexts(nil, attrDecision, d.PolicyDecision, attrRule, d.PolicyRule, attrLimit, d.Limit)...)
	if t.content {
		s.SetAttributes(attribute.String(attrResult, d.Result))
	}
	fail(s, string(d.ErrorType))
	s.End(trace.WithTimestamp(e.Time))
	if r.run == nil && len(r.calls) == 0 {
		delete(t.runs, e.RunID)
	}
}

// note adds an event to the span of a call, if it is open.
func (r *runSpans) note(callID string, e *event.Event, what string, attrs ...attribute.KeyValue) {
	if s := r.calls[callID]; s != nil {
		s.AddEvent(what, trace.WithTimestamp(e.Time), trace.WithAttributes(attrs...))
	}
}

// end ends the span of a run and its open children.
func (t *Traces) end(r *runSpans, e *event.Event, reason, code string, attrs []attribute.KeyValue) {
	delete(t.runs, e.RunID)
	if r.chat != nil {
		r.chat.End(trace.WithTimestamp(e.Time))
	}
	for _, s := range r.calls {
		s.End(trace.WithTimestamp(e.Time))
	}
	if r.run == nil {
		return
	}
	r.run.SetAttributes(append(attrs, attribute.String(attrReason, reason))...)
	fail(r.run, code)
	r.run.End(trace.WithTimestamp(e.Time))
}

func fail(s trace.Span, code string) {
	if code != "" {
		s.SetAttributes(attribute.String(attrError, code))
		s.SetStatus(codes.Error, "")
	}
}

// appendServer appends the host and the port of server, "host:port".
func appendServer(attrs []attribute.KeyValue, server string) []attribute.KeyValue {
	i := strings.LastIndexByte(server, ':')
	if i < 0 {
		return attrs
	}
	attrs = append(attrs, attribute.String(attrServer, strings.Trim(server[:i], "[]")))
	if port, err := strconv.Atoi(server[i+1:]); err == nil {
		attrs = append(attrs, attribute.Int(attrPort, port))
	}
	return attrs
}

func tokenAttrs(u lathe.Usage) []attribute.KeyValue {
	attrs := []attribute.KeyValue{attribute.Int64(attrInput, u.InputTokens), attribute.Int64(attrOutput, u.OutputTokens)}
	if u.CachedTokens > 0 {
		attrs = append(attrs, attribute.Int64(attrCacheRead, u.CachedTokens))
	}
	if u.ReasoningTokens > 0 {
		attrs = append(attrs, attribute.Int64(attrReasoning, u.ReasoningTokens))
	}
	return attrs
}
