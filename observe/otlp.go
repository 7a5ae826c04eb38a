package observe

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// An otlpJSON posts spans as OTLP over HTTP in JSON. OpenTelemetry's own exporters would add a dependency on gRPC.
type otlpJSON struct {
	opts     TracesOptions
	exported func(spans int, sent bool) // called after each export; sent is false if it failed
}

// maxOTLPAnswer is the maximum number of bytes read from a response, so that the connection can be reused.
const maxOTLPAnswer = 64 << 10

// ExportSpans implements sdktrace.SpanExporter. It does not retry: it logs the spans that could not be sent and discards them.
func (x *otlpJSON) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := x.post(ctx, spans)
	x.exported(len(spans), err == nil)
	if err != nil {
		x.opts.Log.Warn("spans could not be sent", "spans", len(spans), "error", err)
	}
	return nil // the SDK would print an error
}

// Shutdown implements sdktrace.SpanExporter.
func (x *otlpJSON) Shutdown(context.Context) error {
	x.opts.Client.CloseIdleConnections()
	return nil
}

type statusError int

func (e statusError) Error() string { return "the collector answered " + strconv.Itoa(int(e)) }

func (x *otlpJSON) post(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	body, err := json.Marshal(otlpOf(spans))
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, x.opts.Endpoint, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, v := range x.opts.Headers {
		req.Header.Set(name, v)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := x.opts.Client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // nothing was written, so Close cannot lose data
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxOTLPAnswer))
	if resp.StatusCode/100 != 2 {
		return statusError(resp.StatusCode)
	}
	return nil
}

// The JSON form of OTLP as far as this package uses it. Integers of 64 bits are strings.
type (
	otlpRequest struct {
		ResourceSpans []otlpResourceSpans `json:"resourceSpans"`
	}
	otlpResourceSpans struct {
		Resource   otlpResource     `json:"resource"`
		ScopeSpans []otlpScopeSpans `json:"scopeSpans"`
	}
	otlpResource struct {
		Attributes []otlpAttribute `json:"attributes"`
	}
	otlpScopeSpans struct {
		Scope     otlpScope  `json:"scope"`
		Spans     []otlpSpan `json:"spans"`
		SchemaURL string     `json:"schemaUrl"`
	}
	otlpScope struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	otlpSpan struct {
		TraceID      string          `json:"traceId"`
		SpanID       string          `json:"spanId"`
		TraceState   string          `json:"traceState,omitempty"`
		ParentSpanID string          `json:"parentSpanId,omitempty"`
		Flags        uint32          `json:"flags"`
		Name         string          `json:"name"`
		Kind         int             `json:"kind"`
		Start        string          `json:"startTimeUnixNano"`
		End          string          `json:"endTimeUnixNano"`
		Attributes   []otlpAttribute `json:"attributes"`
		Dropped      int             `json:"droppedAttributesCount,omitempty"`
		Events       []otlpEvent     `json:"events,omitempty"`
		Links        []otlpLink      `json:"links,omitempty"`
		Status       otlpStatus      `json:"status"`
	}
	otlpEvent struct {
		Time       string          `json:"timeUnixNano"`
		Name       string          `json:"name"`
		Attributes []otlpAttribute `json:"attributes"`
	}
	otlpLink struct {
		TraceID string `json:"traceId"`
		SpanID  string `json:"spanId"`
		Flags   uint32 `json:"flags"`
	}
	otlpStatus struct {
		Code int `json:"code,omitempty"` // 2: an error
	}
	otlpAttribute struct {
		Key   string         `json:"key"`
		Value map[string]any `json:"value"`
	}
)

func otlpOf(spans []sdktrace.ReadOnlySpan) *otlpRequest {
	out := make([]otlpSpan, len(spans))
	for i, s := range spans {
		sc := s.SpanContext()
		out[i] = otlpSpan{TraceID: sc.TraceID().String(), SpanID: sc.SpanID().String(), TraceState: sc.TraceState().String(), Flags: uint32(sc.TraceFlags()),
			Name: s.Name(), Kind: int(s.SpanKind()), Start: nanos(s.StartTime().UnixNano()), End: nanos(s.EndTime().UnixNano()),
			Attributes: otlpAttributes(s.Attributes()), Dropped: s.DroppedAttributes()}
		if parent := s.Parent(); parent.HasSpanID() {
			out[i].ParentSpanID = parent.SpanID().String()
		}
		for _, e := range s.Events() {
			out[i].Events = append(out[i].Events, otlpEvent{nanos(e.Time.UnixNano()), e.Name, otlpAttributes(e.Attributes)})
		}
		for _, l := range s.Links() {
			out[i].Links = append(out[i].Links, otlpLink{l.SpanContext.TraceID().String(), l.SpanContext.SpanID().String(), uint32(l.SpanContext.TraceFlags())})
		}
		if s.Status().Code != 0 {
			out[i].Status.Code = 2
		}
	}
	scope := spans[0].InstrumentationScope() // spans is not empty
	return &otlpRequest{[]otlpResourceSpans{{Resource: otlpResource{otlpAttributes(spans[0].Resource().Attributes())},
		ScopeSpans: []otlpScopeSpans{{Scope: otlpScope{scope.Name, scope.Version}, Spans: out, SchemaURL: scope.SchemaURL}}}}}
}

func nanos(n int64) string { return strconv.FormatInt(n, 10) }

func otlpAttributes(in []attribute.KeyValue) []otlpAttribute {
	out := make([]otlpAttribute, len(in))
	for i, kv := range in {
		out[i] = otlpAttribute{Key: string(kv.Key), Value: map[string]any{}}
		switch kv.Value.Type() {
		case attribute.BOOL:
			out[i].Value["boolValue"] = kv.Value.AsBool()
		case attribute.INT64:
			out[i].Value["intValue"] = nanos(kv.Value.AsInt64())
		case attribute.FLOAT64:
			out[i].Value["doubleValue"] = kv.Value.AsFloat64()
		case attribute.STRINGSLICE:
			var values []map[string]any
			for _, s := range kv.Value.AsStringSlice() {
				values = append(values, map[string]any{"stringValue": s})
			}
			out[i].Value["arrayValue"] = map[string]any{"values": values}
		default: // a string
			out[i].Value["stringValue"] = kv.Value.String()
		}
	}
	return out
}
