package tool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/tool"
)

const benchArgs = `{"city":"Paris","days":3,"units":"metric","note":"sixty four bytes or so"}`

func benchTool() *fake {
	n := 0
	f := reader("weather", func(context.Context, json.RawMessage) (*lathe.Output, error) {
		n++
		data := append(make([]byte, 0, 64), `{"temp":`...)
		data = append(strconv.AppendInt(data, int64(n), 10), `,"sky":"clear","secret":"x"}`...)
		return &lathe.Output{Data: data}, nil
	})
	f.spec.Schema = json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1},` +
		`"units":{"enum":["metric","imperial"]},"note":{"type":"string"}},"required":["city"],"additionalProperties":false}`)
	f.spec.Allowlist = []string{"temp", "sky"}
	f.spec.OutputSchema = json.RawMessage(`{"type":"object","properties":{"temp":{"type":"number"}}}`)
	f.spec.Rate, f.spec.Concurrency = 1e9, 4
	return f
}

// benchCalls is the number of calls of one run: allocs/op divided by it is that of one call.
const benchCalls = 10

// BenchmarkRunner is a run of ten turns with one call each, every stage on.
func BenchmarkRunner(b *testing.B) { benchRunner(b, policy.Default(), nil) }

// BenchmarkRunnerGuarded is the same with guards on what a run has used, and with secrets to look for.
func BenchmarkRunnerGuarded(b *testing.B) {
	known := map[string]secret.Secret{}
	for i := range 4 {
		known[fmt.Sprint("key", i)] = secret.New(fmt.Sprint("a-known-value-of-some-length-", i))
	}
	p := policy.All(policy.Default(), policy.Trifecta{}, policy.Taint{}, policy.Budget{Calls: 1 << 30})
	benchRunner(b, p, &tool.Secrets{Known: known, Patterns: true})
}

func benchRunner(b *testing.B, p lathe.Policy, secrets *tool.Secrets) {
	set := newSet(b, benchTool())
	r, err := tool.NewRunner(set, &tool.Options{Policy: p, Secrets: secrets, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Journal: func(context.Context, *lathe.CallInfo, lathe.Verdict) error { return nil }})
	if err != nil {
		b.Fatal(err)
	}
	opts := &tool.RunOptions{Limits: &lathe.Limits{MaxToolCalls: 1 << 40, MaxRepeatedCalls: 1 << 40}}
	calls := make([]tool.Call, benchCalls)
	for i := range calls {
		calls[i] = tool.Call{ToolCall: lathe.ToolCall{ID: fmt.Sprint("call_", i), Name: "weather", Arguments: benchArgs}}
	}
	emit := func(event.Data) {}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	once := func() {
		w := r.Begin(&lathe.RunInfo{RunID: "run_1"}, opts)
		for i := range calls {
			if out := w.Execute(ctx, 1, calls[i:i+1], emit); out.Calls[0].Code != "" {
				b.Fatal(out.Calls[0].Code)
			}
		}
	}
	once() // what is made once is not counted
	b.ReportAllocs()
	for b.Loop() {
		once()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*benchCalls), "ns/call")
}

// BenchmarkBare is the tool alone.
func BenchmarkBare(b *testing.B) {
	f, args := benchTool(), json.RawMessage(benchArgs)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.call(context.Background(), args); err != nil {
			b.Fatal(err)
		}
	}
}

// The runner's own share of a call, all stages on. The bound leaves room for growing maps.
func TestRunnerAllocations(t *testing.T) {
	testdata.CountsAllocations(t)
	set := newSet(t, benchTool())
	r, err := tool.NewRunner(set, &tool.Options{Policy: policy.Default()})
	if err != nil {
		t.Fatal(err)
	}
	w := r.Begin(&lathe.RunInfo{RunID: "run_1"}, &tool.RunOptions{Limits: &lathe.Limits{MaxToolCalls: 1 << 40}})
	const runs = 200
	calls := make([]tool.Call, 0, runs+1)
	for i := range runs + 1 {
		calls = append(calls, tool.Call{ToolCall: lathe.ToolCall{ID: fmt.Sprint("call_", i), Name: "weather", Arguments: benchArgs}})
	}
	next, emit, ctx := 0, func(event.Data) {}, t.Context()
	allocs := testing.AllocsPerRun(runs, func() {
		w.Execute(ctx, 1, calls[next:next+1], emit)
		next++
	})
	const bare, bound = 2, 50
	if allocs > bare+bound {
		t.Errorf("%v allocations a call, want at most %d beside the tool's own %d", allocs, bound, bare)
	}
	t.Logf("%v allocations a call, %d of them the tool's", allocs, bare)
}
