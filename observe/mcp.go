package observe

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/lathe-run/lathe/event"
)

var (
	_ event.MCPObserver = (*Metrics)(nil)
	_ event.MCPObserver = (*Traces)(nil)
)

// mcpMethods and mcpFailures are complete vocabularies of labels: any other method or code counts as "other".
var (
	mcpMethods = strings.Fields(`initialize ping server/discover tools/list tools/call logging/setLevel completion/complete subscriptions/listen
		resources/list resources/read resources/templates/list resources/subscribe resources/unsubscribe prompts/list
		prompts/get tasks/get tasks/update tasks/cancel notifications/initialized notifications/cancelled`)
	mcpFailures = []string{"", "tool_error", "timeout", "cancelled", "-32700", "-32600", "-32601", "-32602", "-32603", "-32000", "-32001", "-32002", "-32020", "-32021", "-32022", "-32042"}
	mcpBuckets  = []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}
)

// mcpSeries are the series of one role, client or server, by method and tool.
type mcpSeries = *vocabulary[pair, prometheus.ObserverVec]

// makeMCPSeries registers the series of one role.
func makeMCPSeries(r registry, name, help string) mcpSeries {
	durations := r.histogram(name, help, mcpBuckets, "mcp_method_name", "gen_ai_tool_name", "network_transport", "error_type")
	return newVocabulary(pair{first: rest}, nil, maxModelSeries, func(of pair) bool {
		return slices.Contains(mcpMethods, of.first) && (of.second == "" || toolName(of.second))
	}, func(of pair) prometheus.ObserverVec {
		return durations.MustCurryWith(prometheus.Labels{"mcp_method_name": of.first, "gen_ai_tool_name": of.second})
	})
}

// MCPStarted implements [event.MCPObserver]. It returns ctx unchanged.
func (m *Metrics) MCPStarted(ctx context.Context, _ *event.MCPOperation) context.Context { return ctx }

// MCPEnded implements [event.MCPObserver]: it records the duration of the operation.
func (m *Metrics) MCPEnded(_ context.Context, op *event.MCPOperation) {
	series, failure, transport := m.mcpClient, op.Failure, op.Transport
	if op.Server {
		series = m.mcpServer
	}
	if !slices.Contains(mcpFailures, failure) {
		failure = rest
	}
	if transport != "pipe" {
		transport = "tcp"
	}
	series.get(pair{op.Method, op.Tool}).WithLabelValues(transport, failure).Observe(max(op.Ended.Sub(op.Began), 0).Seconds())
}

type mcpSpanKey struct{}

// MCPStarted implements [event.MCPObserver]. The returned context must be passed to MCPEnded. For an operation as a server, it contains a
// new span, whose parent is the client's span; the spans of runs under the returned context are children of the new span. For an operation
// as a client, MCPStarted returns ctx: MCPEnded adds attributes to the span of the tool call instead.
func (t *Traces) MCPStarted(ctx context.Context, op *event.MCPOperation) context.Context {
	if !op.Server {
		return ctx
	}
	transport := event.RemoteTraceFrom(ctx)
	parent, ambient := remoteSpan(op.Parent), remoteSpan(transport)
	opts := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(op.Began)}
	switch {
	case !parent.IsValid():
		parent = ambient
	case ambient.IsValid():
		opts = append(opts, trace.WithLinks(trace.Link{SpanContext: ambient}))
	}
	name := op.Method
	if op.Tool != "" {
		name += " " + op.Tool
	}
	_, span := t.tracer.Start(trace.ContextWithRemoteSpanContext(context.Background(), parent), name, opts...)
	ctx = context.WithValue(ctx, mcpSpanKey{}, span)
	below := traceContext(span.SpanContext())
	below.Baggage = op.Parent.Baggage
	if op.Parent.Parent == "" {
		below.Baggage = transport.Baggage
	}
	return event.WithRemoteTrace(ctx, below)
}

// MCPEnded implements [event.MCPObserver]. ctx must be the context that MCPStarted returned.
func (t *Traces) MCPEnded(ctx context.Context, op *event.MCPOperation) {
	if op.Server {
		if span, ok := ctx.Value(mcpSpanKey{}).(trace.Span); ok {
			span.SetAttributes(mcpAttributes(op)...)
			fail(span, op.Failure)
			span.End(trace.WithTimestamp(op.Ended))
		}
		return
	}
	runID, callID := event.CallOf(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.runs[runID]; r != nil && r.calls[callID] != nil && op.Method == "tools/call" {
		r.calls[callID].SetAttributes(mcpAttributes(op)...)
	}
}

func mcpAttributes(op *event.MCPOperation) []attribute.KeyValue {
	attrs := []attribute.KeyValue{attribute.String(attrMCPMethod, op.Method), attribute.String(attrTransport, op.Transport)}
	attrs = appendTexts(attrs, attrMCPProtocol, op.Protocol, attrMCPSession, op.Session, attrRPCRequestID, strings.Trim(op.RequestID, `"`))
	if op.Code != 0 {
		attrs = append(attrs, attribute.String(attrRPCStatus, strconv.Itoa(op.Code)))
	}
	if op.Server && op.Tool != "" {
		attrs = append(attrs, attribute.String(attrOperation, spanTool), attribute.String(attrTool, op.Tool))
	}
	return appendServer(attrs, op.Address)
}
