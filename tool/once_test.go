package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

func TestCallReturnsWhatAModelWouldGet(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ data, show, want string }{
		"object":  {`{"a":1,"secret":2}`, "a", `{"a":1}`},
		"array":   {`[{"a":1,"b":2}]`, "a", `[{"a":1}]`},
		"text":    {`"line\nnext"`, "*", `"line\nnext"`},
		"nothing": {``, "*", `null`},
	} {
		f := reader("t", returns(tt.data))
		f.spec.Allowlist = []string{tt.show}
		r := newRunner(t, nil, f)
		out, err := r.Call(t.Context(), "t", nil)
		if err != nil || string(out.Data) != tt.want || out.IsError {
			t.Errorf("%s: %+v, %v", name, out, err)
			continue
		}
		kept := string(out.Data)
		if _, err := r.Call(t.Context(), "t", json.RawMessage(`{"x":1}`)); err != nil || string(out.Data) != kept {
			t.Errorf("%s: a later call left %s of %s (%v)", name, out.Data, kept, err)
		}
	}
}

func TestCallOfEachRunHasItsOwnLimits(t *testing.T) {
	t.Parallel()
	r := newRunner(t, &tool.Options{Policy: policy.AllowAll(), Limits: lathe.Limits{MaxToolCalls: 1}}, reader("t", echo))
	for range 3 {
		if _, err := r.Call(t.Context(), "t", json.RawMessage(`{"a":1}`)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCallErrors(t *testing.T) {
	t.Parallel()
	boom := errors.New("canary-7f3a")
	failing := reader("failing", func(context.Context, json.RawMessage) (*lathe.Output, error) { return nil, boom })
	reasoned := reader("reasoned", func(context.Context, json.RawMessage) (*lathe.Output, error) {
		return &lathe.Output{Data: []byte(`{"why":"no such city","inner":1}`), IsError: true, Code: lathe.CodeUnavailable}, nil
	})
	reasoned.spec.Allowlist = []string{"why"}
	strict := reader("strict", echo)
	strict.spec.Schema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	writer := reader("writer", echo)
	writer.spec.Effect = lathe.Writes
	panics := reader("panics", func(context.Context, json.RawMessage) (*lathe.Output, error) { panic("canary-7f3a") })
	slow := reader("slow", func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	slow.spec.Timeout = time.Millisecond
	r := newRunner(t, &tool.Options{Policy: policy.Default()}, failing, reasoned, strict, writer, panics, slow)
	for _, tt := range []struct {
		name, args string
		code       lathe.Code
		text       string
	}{
		{"missing", `{}`, lathe.CodeUnknownTool, "no tool"},
		{"strict", `{"n":"x"}`, lathe.CodeInvalidArguments, ""},
		{"strict", `[1]`, lathe.CodeInvalidJSON, ""},
		{"strict", `{"n":`, lathe.CodeInvalidJSON, ""},
		{"writer", `{}`, lathe.CodePolicyDenied, "policy rule effect.writes"},
		{"failing", `{}`, lathe.CodeExecutionFailed, ""},
		{"reasoned", `{}`, lathe.CodeUnavailable, ""},
		{"panics", `{}`, lathe.CodeExecutionFailed, "the tool panicked"},
		{"slow", `{}`, lathe.CodeTimeout, "limit tool_timeout"},
	} {
		out, err := r.Call(t.Context(), tt.name, json.RawMessage(tt.args))
		var ce *tool.CallError
		if out != nil || lathe.CodeOf(err) != tt.code || !errors.As(err, &ce) || !json.Valid(ce.Detail) {
			t.Errorf("%s: %v, %v", tt.name, out, err)
			continue
		}
		if !strings.Contains(err.Error(), tt.text) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", tt.name, err)
		}
		if is := errors.Is(err, boom); is != (tt.name == "failing") {
			t.Errorf("%s: the error of the tool is in the tree: %t", tt.name, is)
		}
		if (ce.Output != nil) != (tt.name == "reasoned") || ce.Output != nil && string(ce.Output.Data) != `{"why":"no such city"}` {
			t.Errorf("%s: output %+v", tt.name, ce.Output)
		}
		if tt.name == "strict" && tt.code == lathe.CodeInvalidArguments && !strings.Contains(string(ce.Detail), `"pointer":"/n"`) {
			t.Errorf("the violation is missing: %s", ce.Detail)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Call(ctx, "strict", json.RawMessage(`{"n":1}`)); lathe.CodeOf(err) != lathe.CodeCancelled {
		t.Errorf("cancelled: %v", err)
	}
	set := newSet(t)
	zero, err := tool.NewRunner(set, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Add(reader("t", echo)); err != nil {
		t.Fatal(err)
	}
	if held := zero.Begin(nil, nil).Withheld(); len(held) != 1 || !strings.Contains(held[0].Explain(), "set tool.Options.Policy") {
		t.Errorf("withheld by a runner without a policy: %+v", held)
	}
	if _, err := zero.Call(t.Context(), "t", nil); lathe.CodeOf(err) != lathe.CodePolicyDenied {
		t.Errorf("a runner without a policy: %v", err)
	}
}

// answersLater is an approver that does not answer at once.
type answersLater struct{}

func (answersLater) Approve(context.Context, *lathe.ApprovalRequest) (lathe.Approval, error) {
	return lathe.Approval{}, lathe.ErrPending
}

func TestCallAsksForApproval(t *testing.T) {
	t.Parallel()
	ran := 0
	writer := reader("writer", func(context.Context, json.RawMessage) (*lathe.Output, error) {
		ran++
		return &lathe.Output{Data: []byte(`{"ok":1}`)}, nil
	})
	writer.spec.Effect = lathe.Writes
	pending := newRunner(t, &tool.Options{Policy: policy.Default(), Approver: answersLater{}}, writer)
	if _, err := pending.Call(t.Context(), "writer", nil); !errors.Is(err, lathe.ErrPending) || ran != 0 {
		t.Errorf("pending: %v, ran %d times", err, ran)
	}
	yes := newRunner(t, &tool.Options{Policy: policy.Default(), Approver: approves{}}, writer)
	if out, err := yes.Call(t.Context(), "writer", nil); err != nil || string(out.Data) != `{"ok":1}` || ran != 1 {
		t.Errorf("approved: %v, %v, ran %d times", out, err, ran)
	}
}

// approves is an approver that approves.
type approves struct{}

func (approves) Approve(context.Context, *lathe.ApprovalRequest) (lathe.Approval, error) {
	return lathe.Approval{Approved: true, By: "test"}, nil
}

func ExampleRunner_Call() {
	type city struct {
		City string `json:"city"`
	}
	weather := tool.Func("get_weather", "The weather of a city.", func(_ context.Context, in city) (map[string]any, error) {
		return map[string]any{"city": in.City, "temp": 21, "station": "internal"}, nil
	}, &tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"city", "temp"}})
	set, err := tool.NewSet(weather)
	if err != nil {
		fmt.Println(err)
		return
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.Default(), Limits: lathe.Limits{ToolTimeout: 5 * time.Second}})
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := runner.Call(context.Background(), "get_weather", json.RawMessage(`{"city":"Oslo"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s\n", out.Data)
	_, err = runner.Call(context.Background(), "get_weather", json.RawMessage(`{"town":"Oslo"}`))
	fmt.Println(lathe.CodeOf(err))
	// Output:
	// {"city":"Oslo","temp":21}
	// invalid_arguments
}
