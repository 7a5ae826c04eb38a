package lathetest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/lathetest"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
)

type place struct {
	City string `json:"city"`
}

func weather() lathe.Tool {
	return tool.Func("weather", "Returns the weather of a city.", func(_ context.Context, in place) (string, error) {
		return "21 °C in " + in.City, nil
	}, &tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"*"}})
}

func TestRunRecordsRequestsAndEvents(t *testing.T) {
	model := lathetest.NewModel(lathetest.Call("weather", `{"city":"Oslo"}`), lathetest.Text("It is 21 °C in Oslo."))
	rec := lathetest.Run(t, model, "What is the weather in Oslo?", &lathetest.Options{Tools: []lathe.Tool{weather()}})
	if rec.Err != nil || rec.Result.Answer != "It is 21 °C in Oslo." || model.Unused() != 0 {
		t.Errorf("answer %q, %d steps unused: %v", rec.Result.Answer, model.Unused(), rec.Err)
	}
	requests := model.Requests()
	if len(requests) != 2 || len(requests[0].Messages) != 1 || len(requests[1].Messages) != 3 || len(requests[1].Tools) != 1 {
		t.Errorf("the model was sent %+v", requests)
	}
	if res := lathetest.Only[*event.ToolCallResult](rec.Events); len(res) != 1 || res[0].ToolCallID != "call_1" || !strings.Contains(res[0].Result, "21 °C in Oslo") {
		t.Errorf("results: %+v", res)
	}
	var text strings.Builder
	for _, d := range lathetest.Only[*event.TextDelta](rec.Events) {
		text.WriteString(d.Text)
	}
	if text.String() != rec.Result.Answer {
		t.Errorf("the kept deltas have the text %q", text.String())
	}
}

func TestRunUsesThePolicyOfItsOptions(t *testing.T) {
	model := lathetest.NewModel(lathetest.Call("weather", `{"city":"Oslo"}`), lathetest.Text("I may not."))
	rec := lathetest.Run(t, model, "Weather?", &lathetest.Options{Tools: []lathe.Tool{weather()},
		Runner: tool.Options{Policy: policy.All()}})
	if res := lathetest.Only[*event.ToolCallResult](rec.Events); len(res) != 1 || res[0].Status != "error" {
		t.Errorf("results: %+v", res)
	}
}

func TestScriptThatIsTooShortFailsTheRun(t *testing.T) {
	rec := lathetest.Run(t, lathetest.NewModel(lathetest.Call("weather", `{"city":"Oslo"}`)), "Weather?", &lathetest.Options{Tools: []lathe.Tool{weather()}})
	if lathe.CodeOf(rec.Err) != lathe.CodeInvalidRequest || !strings.Contains(rec.Err.Error(), "has 1 steps") {
		t.Errorf("the run ended with %v", rec.Err)
	}
}

func TestStepsThatFailOrHang(t *testing.T) {
	rec := lathetest.Run(t, lathetest.NewModel(lathetest.Fail(503)), "Hello", nil)
	if up := (*lathe.UpstreamError)(nil); !errors.As(rec.Err, &up) || up.Status != 503 || up.Kind != lathe.Upstream5xx {
		t.Errorf("the run ended with %v", rec.Err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	rec = lathetest.Run(t, lathetest.NewModel(lathetest.Step{Text: "Wait", Hang: true}), "Hello", &lathetest.Options{Context: ctx})
	if rec.Result.Reason != lathe.ReasonCancelled {
		t.Errorf("the run ended %s: %v", rec.Result.Reason, rec.Err)
	}
	if plain := errors.New("broken"); true {
		rec = lathetest.Run(t, lathetest.NewModel(lathetest.Step{Err: plain}), "Hello", nil)
		if !errors.Is(rec.Err, plain) || lathe.CodeOf(rec.Err) != lathe.CodeUpstream {
			t.Errorf("the run ended with %v", rec.Err)
		}
	}
}

func ExampleRun() {
	t := &testing.T{} // in a test: its parameter
	model := lathetest.NewModel(
		lathetest.Call("weather", `{"city":"Oslo"}`),
		lathetest.Text("It is 21 °C."),
	)
	rec := lathetest.Run(t, model, "What is the weather in Oslo?", &lathetest.Options{
		Tools:   []lathe.Tool{weather()},
		Context: context.Background(), // left out in a test
	})
	for _, res := range lathetest.Only[*event.ToolCallResult](rec.Events) {
		fmt.Println(res.Tool, res.Status)
	}
	fmt.Println(rec.Result.Answer)
	// Output:
	// weather ok
	// It is 21 °C.
}

func ExampleTestModel() {
	// In a test: func TestMyModel(t *testing.T) { … }
	_ = func(t *testing.T) {
		lathetest.TestModel(t, func() lathe.Model { return newMyModel() })
	}
}

func ExampleTestTool() {
	_ = func(t *testing.T) {
		lathetest.TestTool(t, weather, &lathetest.Arguments{
			Good: []string{`{"city":"Oslo"}`},
			Bad:  []string{`{}`, `{"city":7}`},
		})
	}
}

func newMyModel() lathe.Model { return lathetest.NewModel() }

func ExampleNewModel() {
	model := lathetest.NewModel(
		lathetest.Step{Text: "Let me look.", Calls: []lathe.ToolCall{{Name: "weather", Arguments: `{"city":"Oslo"}`}}},
		lathetest.Text("It is 21 °C."),
	)
	rec := lathetest.Run(&testing.T{}, model, "What is the weather in Oslo?", &lathetest.Options{
		Tools:   []lathe.Tool{weather()},
		Context: context.Background(), // left out in a test
	})
	fmt.Println(rec.Result.Answer)
	for _, req := range model.Requests() { // what the model received
		fmt.Println(len(req.Messages), len(req.Tools))
	}
	// Output:
	// It is 21 °C.
	// 1 1
	// 3 1
}

func ExampleTestStore() {
	_ = func(t *testing.T) {
		lathetest.TestStore(t, func() store.Store { return store.NewMemory(nil) }) // your store in place of this one
	}
}
