package observe_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/observe"
)

func ExampleNewJSONLines() {
	sink := observe.NewJSONLines(os.Stdout, nil)
	sink.Emit(context.Background(), event.Event{ID: 1, RunID: "run_1", RequestID: "req_1", Turn: 1,
		Data: &event.RunPaused{Reason: lathe.ReasonAwaitingApproval, Pending: []string{"call_1"}}})
	fmt.Println(sink.Err())
	// Output:
	// {"event_id":1,"time":"0001-01-01T00:00:00Z","run_id":"run_1","request_id":"req_1","turn":1,"type":"RunPaused","data":{"reason":"awaiting_approval","pending":["call_1"]}}
	// <nil>
}

func ExampleNewSlog() {
	handler := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	sink := observe.NewSlog(slog.New(handler))
	sink.Emit(context.Background(), event.Event{RunID: "run_1", RequestID: "req_1", Data: &event.RunResumed{Reason: lathe.ReasonAwaitingApproval}})
	sink.Emit(context.Background(), event.Event{RunID: "run_1", RequestID: "req_1", Data: &event.ToolCallResult{Tool: "clock", ToolCallID: "call_1", Status: "error", ErrorType: lathe.CodeTimeout}})
	// Output:
	// level=INFO msg="run resumed" run_id=run_1 request_id=req_1 reason=awaiting_approval pending=0
	// level=WARN msg="tool call failed" run_id=run_1 request_id=req_1 tool_name=clock tool_call_id=call_1 seq=0 status=error code=timeout output_size_bytes=0 latency_ms=0 upstream_request_id=""
}

func ExampleNewMetrics() {
	metrics := observe.NewMetrics(nil) // a sink of engine.Options.Sinks
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)

	metrics.Emit(context.Background(), event.Event{RunID: "run_1", Data: &event.RunFinished{Reason: lathe.ReasonAnswered}})
	families, err := registry.Gather()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "lathe_runs_total" && m.GetCounter().GetValue() > 0 {
				fmt.Println(m.GetLabel()[0].GetValue(), m.GetCounter().GetValue())
			}
		}
	}
	// Output: answered 1
}

func ExampleMetrics_Handler() {
	m := observe.NewMetrics(nil)
	m.Emit(context.Background(), event.Event{RunID: "run_1", Data: &event.ToolCallProposed{ToolName: "clock"}})
	rec := httptest.NewRecorder()
	m.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(rec.Body.String()) {
		if strings.HasPrefix(line, "lathe_tool_calls_proposed_total") {
			fmt.Print(line)
		}
	}
	// Output:
	// lathe_tool_calls_proposed_total{tool="client"} 0
	// lathe_tool_calls_proposed_total{tool="clock"} 1
	// lathe_tool_calls_proposed_total{tool="unknown"} 0
}

func ExampleBus() {
	ctx := context.Background()
	bus := observe.NewBus(nil)
	watch := bus.Subscribe("run_1")
	defer watch.Close()
	bus.Emit(ctx, event.Event{ID: 1, RunID: "run_1", Data: &event.RunStarted{}})
	bus.Emit(ctx, event.Event{ID: 2, RunID: "run_1", Data: &event.RunFinished{}})
	for {
		e, err := watch.Next(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(e.ID, e.Data.EventType())
	}
	// Output:
	// 1 RunStarted
	// 2 RunFinished
	// EOF
}
