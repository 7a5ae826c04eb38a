package worker_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/remote/worker"
)

// spans is a sink that names spans after itself, and records the parent span of each call whose events it gets.
type spans struct {
	name     string
	mu       sync.Mutex
	above    []event.TraceContext
	received []string
}

func (s *spans) Emit(ctx context.Context, e event.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.above = append(s.above, event.RemoteTraceFrom(ctx))
	s.received = append(s.received, e.Data.EventType()+" of "+e.RunID)
}

func (s *spans) Trace(runID, callID string) event.TraceContext {
	return event.TraceContext{Parent: s.name + "/" + runID + "/" + callID, State: s.name + "=1"}
}

// The gateway's span of a call is that above the worker's, whose own is what the tool hands on.
func TestTraceGoesThroughTheWorker(t *testing.T) {
	bubble(t, func(t *testing.T) {
		net, n := &network{}, startNode(t, memory())
		defer n.stop()
		net.lead(n)
		here := &spans{name: "worker"}
		handed := make(chan event.TraceContext, 1)
		defer startWorker(t, net, &worker.Options{Sinks: []event.Sink{here}}, does("look", lathe.ReadOnly, func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
			handed <- event.TraceFrom(ctx)
			return &lathe.Output{Data: json.RawMessage(`1`)}, nil
		}))()
		n.has("look", true)
		ctx := event.WithTracer(t.Context(), "run_1", []event.Sink{&spans{name: "gateway"}})
		if res := n.run(ctx, "run_1", "look"); res.IsError {
			t.Fatalf("%+v", res)
		}
		if got, want := <-handed, (event.TraceContext{Parent: "worker/run_1/call_1", State: "worker=1"}); got != want {
			t.Errorf("the tool hands on %+v, want %+v", got, want)
		}
		here.mu.Lock()
		defer here.mu.Unlock()
		for _, above := range here.above {
			if want := (event.TraceContext{Parent: "gateway/run_1/call_1", State: "gateway=1"}); above != want {
				t.Errorf("above the call is %+v, want %+v", above, want)
			}
		}
		if len(here.received) < 4 || here.received[0] != "ToolCallProposed of run_1" || here.received[len(here.received)-1] != "ToolCallResult of run_1" {
			t.Errorf("received: %q", here.received)
		}
	})
}
