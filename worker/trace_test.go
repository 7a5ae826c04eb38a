package worker_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/worker"
)

// spans is a sink that names spans after itself, and keeps which span the calls that it was told of are below.
type spans struct {
	name  string
	mu    sync.Mutex
	above []lathe.TraceContext
	told  []string
}

func (s *spans) Emit(ctx context.Context, e lathe.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.above = append(s.above, lathe.RemoteTraceFrom(ctx))
	s.told = append(s.told, e.Data.EventType()+" of "+e.RunID)
}

func (s *spans) Trace(runID, callID string) lathe.TraceContext {
	return lathe.TraceContext{Parent: s.name + "/" + runID + "/" + callID, State: s.name + "=1"}
}

// The gateway's span of a call is that above the worker's, whose own is what the tool hands on.
func TestTraceGoesThroughTheWorker(t *testing.T) {
	bubble(t, func(t *testing.T) {
		net, n := &network{}, startNode(t, memory())
		defer n.stop()
		net.lead(n)
		here := &spans{name: "worker"}
		handed := make(chan lathe.TraceContext, 1)
		defer startWorker(t, net, &worker.Options{Sinks: []lathe.Sink{here}}, does("look", lathe.ReadOnly, func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
			handed <- lathe.TraceFrom(ctx)
			return &lathe.Output{Data: json.RawMessage(`1`)}, nil
		}))()
		n.has("look", true)
		ctx := lathe.WithTracer(t.Context(), "run_1", []lathe.Sink{&spans{name: "gateway"}})
		if res := n.run(ctx, "run_1", "look"); res.IsError {
			t.Fatalf("%+v", res)
		}
		if got, want := <-handed, (lathe.TraceContext{Parent: "worker/run_1/call_1", State: "worker=1"}); got != want {
			t.Errorf("the tool hands on %+v, want %+v", got, want)
		}
		here.mu.Lock()
		defer here.mu.Unlock()
		for _, above := range here.above {
			if want := (lathe.TraceContext{Parent: "gateway/run_1/call_1", State: "gateway=1"}); above != want {
				t.Errorf("above the call is %+v, want %+v", above, want)
			}
		}
		if len(here.told) < 4 || here.told[0] != "ToolCallProposed of run_1" || here.told[len(here.told)-1] != "ToolCallResult of run_1" {
			t.Errorf("told: %q", here.told)
		}
	})
}
