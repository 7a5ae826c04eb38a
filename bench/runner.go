package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/schema"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

// runnerCalls is the number of calls of one run, one a turn, and of one operation of each lane.
const runnerCalls = 10

// forecast is the tool of the runner's table: it makes a fresh output, of which the model may see a part.
type forecast struct {
	spec lathe.ToolSpec
	n    int64
}

func (f *forecast) Spec() *lathe.ToolSpec { return &f.spec }

func (f *forecast) Call(context.Context, json.RawMessage) (*lathe.Output, error) {
	f.n++
	data := append(make([]byte, 0, 64), `{"temp":`...)
	data = strconv.AppendInt(data, f.n%100, 10)
	return &lathe.Output{Data: append(data, `,"sky":"clear","station":"x"}`...)}, nil
}

func newForecast() *forecast {
	return &forecast{spec: lathe.ToolSpec{Name: "forecast", Description: "Says what the weather will be.", Effect: lathe.ReadOnly,
		Schema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1},` +
			`"units":{"enum":["metric","imperial"]},"note":{"type":"string"}},"required":["city"],"additionalProperties":false}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"temp":{"type":"number"}}}`),
		Allowlist:    []string{"temp", "sky"}, Rate: 1e9, Concurrency: 4, Backend: "weather", BackendConcurrency: 4, Origin: "bench"}}
}

// forecastArgs differ from call to call.
func forecastArgs() []string {
	args := make([]string, 64)
	for i := range args {
		args[i] = fmt.Sprintf(`{"city":"Paris %d","days":%d,"units":"metric","note":"sixty four bytes or so"}`, i, 1+i%9)
	}
	return args
}

var errCode = errors.New("a call was answered with an error")

// runnerLanes are a run of the runner with every stage that ends no call by itself (a cache answers in the
// tool's place, an approval waits for a person), the tool's function called by itself, and the two
// validations of a call by themselves.
func runnerLanes() ([]*lane, error) {
	all := forecastArgs()
	guarded := newForecast()
	set, err := tool.NewSet(guarded)
	if err != nil {
		return nil, err
	}
	r, err := tool.NewRunner(set, &tool.Options{Policy: policy.Default(), Journal: func(context.Context, *lathe.CallInfo, lathe.Verdict) error { return nil }})
	if err != nil {
		return nil, err
	}
	calls := make([]tool.Call, len(all))
	for i := range calls {
		calls[i] = tool.Call{ToolCall: lathe.ToolCall{ID: fmt.Sprint("call_", i), Name: "forecast", Arguments: all[i]}}
	}
	limits := &lathe.Limits{MaxRepeatedCalls: runnerCalls + 1}
	run, opts := &lathe.RunInfo{RunID: "run_1"}, &tool.RunOptions{Limits: limits}
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour) // as a server's request has
	_ = cancel
	told, next := 0, 0
	emit := func(event.Data) { told++ }
	whole := func() error {
		w := r.Begin(run, opts)
		told = 0
		for range runnerCalls {
			i := next % len(calls)
			next++
			if out := w.Execute(ctx, 1, calls[i:i+1], emit); out.Calls[0].Code != "" {
				return errCode
			}
		}
		if told != 4*runnerCalls {
			return errWrong
		}
		return nil
	}

	bare, raw, nextBare := newForecast(), make([]json.RawMessage, len(all)), 0
	for i := range raw {
		raw[i] = json.RawMessage(all[i])
	}
	function := func() error {
		for range runnerCalls {
			out, err := bare.Call(ctx, raw[nextBare%len(raw)])
			nextBare++
			if err != nil || len(out.Data) == 0 {
				return errWrong
			}
		}
		return nil
	}

	in, err := schema.Compile(bare.spec.Schema)
	if err != nil {
		return nil, err
	}
	out, err := schema.Compile(bare.spec.OutputSchema)
	if err != nil {
		return nil, err
	}
	result, nextValid := bytes.Clone([]byte(`{"temp":17,"sky":"clear","station":"x"}`)), 0
	validation := func() error {
		for range runnerCalls {
			if in.Validate(raw[nextValid%len(raw)]) != nil || out.Validate(result) != nil {
				return errWrong
			}
			nextValid++
		}
		return nil
	}
	return []*lane{{name: "the runner, every stage on", op: whole}, {name: "the bare function of the tool", op: function}, {name: "validation of arguments and output", op: validation}}, nil
}

// runnerTable prints what ten calls cost, and the runner's share of one.
func runnerTable(rounds int, budget time.Duration) error {
	lanes, err := runnerLanes()
	if err != nil {
		return err
	}
	race(lanes, rounds, budget)
	printLanes(fmt.Sprintf("a run of %d tool calls, one a turn", runnerCalls), lanes, lanes[0].name, 0)
	for _, l := range lanes {
		if l.err != nil {
			return l.err
		}
	}
	share := share(lanes)
	fmt.Printf("\nThe runner itself, a call, less the function and the validation: %.2f µs, %.1f allocations.\n", share.cpu, share.allocs)
	return nil
}

// share is what the first lane costs a call beyond the others.
func share(lanes []*lane) figure {
	f := lanes[0].median()
	for _, l := range lanes[1:] {
		m := l.median()
		f.cpu, f.allocs, f.kib = f.cpu-m.cpu, f.allocs-m.allocs, f.kib-m.kib
	}
	return figure{f.cpu / runnerCalls, f.allocs / runnerCalls, f.kib / runnerCalls}
}
