package mcp_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	served "github.com/lathe-run/lathe/internal/gateway/mcp"
)

type observedKey struct{}

// operations is a sink that keeps the requests, and the runs whose context is that of a request.
type operations struct {
	mu   sync.Mutex
	seen []event.MCPOperation
	runs int
}

func (o *operations) Emit(ctx context.Context, e event.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := e.Data.(*event.RunStarted); ok && ctx.Value(observedKey{}) != nil {
		o.runs++
	}
}

func (o *operations) MCPStarted(ctx context.Context, _ *event.MCPOperation) context.Context {
	return context.WithValue(ctx, observedKey{}, true)
}

func (o *operations) MCPEnded(ctx context.Context, op *event.MCPOperation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if ctx.Value(observedKey{}) != nil {
		o.seen = append(o.seen, *op)
	}
}

// of returns the requests of a method. They are complete once their answers have been sent.
func (o *operations) of(method string) (out []event.MCPOperation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, op := range o.seen {
		if op.Method == method {
			out = append(out, op)
		}
	}
	return out
}

// Each request of a client is observed with its outcome, and with the trace context of its _meta; the run of a call has
// the context of its request.
func TestRequestsAreObserved(t *testing.T) {
	t.Parallel()
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, stdio := range []bool{true, false} {
		o := &operations{}
		r := newRig(t, nil, &served.Options{Sinks: []event.Sink{o}}, reader("echo", echo),
			reader("fail", func(context.Context, json.RawMessage) (*lathe.Output, error) {
				return &lathe.Output{IsError: true, Data: []byte(`{}`)}, nil
			}))
		var s *mcp.ClientSession
		transport := "tcp"
		if stdio {
			s, transport = r.connectStdio(nil), "pipe"
		} else {
			s = r.connect(r.web(), nil)
		}
		for _, name := range []string{"echo", "fail", "no such tool"} {
			_, _ = s.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: map[string]any{}, Meta: mcp.Meta{"traceparent": parent, "tracestate": "a=b"}}) // the last is an error
		}
		if _, err := s.ListTools(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		calls := o.of("tools/call")
		if len(calls) != 3 {
			t.Fatalf("%d calls: %+v", len(calls), calls)
		}
		for i, want := range []event.MCPOperation{{Tool: "echo"}, {Tool: "fail", Failure: "tool_error"}, {Tool: "unknown", Code: -32602, Failure: "-32602"}} {
			got := calls[i]
			if got.Tool != want.Tool || got.Code != want.Code || got.Failure != want.Failure || !got.Server || got.Transport != transport || got.Protocol == "" ||
				got.Parent != (event.TraceContext{Parent: parent, State: "a=b"}) || got.Ended.Before(got.Began) {
				t.Errorf("%d: %+v", i, got)
			}
		}
		if lists := o.of("tools/list"); len(lists) != 1 || lists[0].Failure != "" || lists[0].Tool != "" {
			t.Errorf("lists %+v", lists)
		}
		if o.mu.Lock(); o.runs != 3 {
			t.Errorf("%d runs have the context of their request", o.runs)
		}
		o.mu.Unlock()
	}
}
