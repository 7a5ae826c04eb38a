package observe_test

import (
	"bytes"
	"context"
	"iter"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/observe"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/sim"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/builtin"
)

// What a real run leaves in the sinks: the contract's metrics with their numbers, and the same
// events in the store, the lines and the recorder.
func TestSinksOfARealRun(t *testing.T) {
	t.Parallel()
	set, err := tool.NewSet(builtin.Tools(nil)...)
	if err != nil {
		t.Fatal(err)
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.Default()})
	if err != nil {
		t.Fatal(err)
	}
	l, err := loop.New(sim.New(nil).Model("sim/demo"), runner, nil)
	if err != nil {
		t.Fatal(err)
	}
	var lines, log bytes.Buffer
	var rec recorder
	m := observe.NewMetrics(&observe.MetricsOptions{Names: observe.MetricNamesSeeds})
	bus := observe.NewBus(nil)
	watch := bus.Subscribe("")
	defer watch.Close()
	logs := store.NewMemory(nil)
	e := newEngine(t, &engine.Options{Store: logs, Sinks: []event.Sink{&rec, m, bus, observe.NewJSONLines(&lines, nil),
		observe.NewSlog(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))}})
	in := &loop.Input{Messages: []lathe.Message{lathe.User("What is 7 + 35?")}}
	res, err := e.Run(t.Context(), l, in, nil)
	if err != nil || res.Reason != lathe.ReasonAnswered || !strings.Contains(res.Answer, "42") {
		t.Fatalf("got %v, %+v", err, res)
	}

	m.CountRequest("GET /livez", 200) // no run does
	m.ObserveRequest("GET /livez", time.Second)
	m.ObserveFirstByte("GET /livez", time.Second)
	m.MCPEnded(t.Context(), &event.MCPOperation{Method: "tools/list"})
	m.MCPEnded(t.Context(), &event.MCPOperation{Method: "tools/list", Server: true})
	types, series := scrape(t, m)
	for name, want := range contract {
		if got := types[name] + " " + labelNames(name, series); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{
		`tool_calls_proposed_total{tool="calculator"}`:                "1",
		`tool_calls_executed_total{success="true",tool="calculator"}`: "1",
		`tool_calls_total{status="ok",tool="calculator"}`:             "1",
		`tool_call_latency_ms_count{tool="calculator"}`:               "1",
		`tool_call_iterations_total`:                                  "2",
		`lathe_runs_total{reason="answered"}`:                         "1",
		`lathe_model_calls_total{provider="sim",status="success"}`:    "2",
		`lathe_policy_decisions_total{decision="allow"}`:              "1",
	} {
		if series[name] != want {
			t.Errorf("%s: got %s, want %s", name, series[name], want)
		}
	}

	var stored []string
	runID := rec.Events()[0].RunID
	for e, err := range logs.Read(t.Context(), runID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		b, err := e.MarshalData()
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, string(b)+"\n")
	}
	if got := strings.Join(stored, ""); got != lines.String() || len(stored) != len(rec.Types()) {
		t.Errorf("the store has\n%s\nbut the lines are\n%s", got, lines.String())
	}
	if n := strings.Count(log.String(), `msg="tool call" run_id=`+runID); n != 1 {
		t.Errorf("%d log lines about tool calls, want 1:\n%s", n, log.String())
	}
	if seen, _ := drain(watch); len(seen) != len(rec.Events()) {
		t.Errorf("a watcher saw %d events, want %d", len(seen), len(rec.Events()))
	}
}

// outdated is a model that asks in a deprecated syntax until it has two results.
type outdated struct{}

func (outdated) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (outdated) Generate(_ context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	f := &lathe.Finish{Message: lathe.Assistant("Done."), Reason: lathe.FinishStop}
	if len(req.Messages) < 5 {
		f.Reason = lathe.FinishToolCalls
		f.Message.Parts = []lathe.Part{lathe.ToolCall{Name: "calculator", Arguments: `{"a":987654321}`, Dialect: "tags", Deprecated: true}}
	}
	return func(yield func(lathe.Delta, error) bool) { yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: f}, nil) }
}

func TestDeprecatedSyntaxIsLoggedOnceARun(t *testing.T) {
	t.Parallel()
	set, err := tool.NewSet(builtin.Tools(nil)...)
	if err != nil {
		t.Fatal(err)
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.Default()})
	if err != nil {
		t.Fatal(err)
	}
	l, err := loop.New(outdated{}, runner, nil)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	e := newEngine(t, &engine.Options{Sinks: []event.Sink{observe.NewSlog(logger)}, Log: logger})
	for want := 1; want <= 2; want++ {
		if res, err := e.Run(t.Context(), l, &loop.Input{Messages: []lathe.Message{lathe.User("x")}}, nil); err != nil || res.ToolCalls != 2 {
			t.Fatalf("got %v, %+v", err, res)
		}
		if n := strings.Count(log.String(), "deprecated"); n != want || strings.Contains(log.String(), "987654321") {
			t.Errorf("after %d runs, %d warnings:\n%s", want, n, log.String())
		}
	}
}
