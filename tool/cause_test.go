package tool_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

// An operator finds why a call failed in its event, and the details in OnError; the model gets neither.
func TestFailuresNameTheirCause(t *testing.T) {
	t.Parallel()
	type out struct{}
	returns := func(o *lathe.Output, err error) func(context.Context, struct{}) (*lathe.Output, error) {
		return func(context.Context, struct{}) (*lathe.Output, error) { return o, err }
	}
	all := &tool.FuncOptions{Show: []string{"*"}}
	for _, c := range []struct {
		name         string
		tool         lathe.Tool
		code         lathe.Code
		cause, shown string
	}{
		{"the allowlist has the Go name of a field", tool.Func("t", "d", returns(&lathe.Output{Data: []byte(`{"name":"Ann"}`)}, nil),
			&tool.FuncOptions{Show: []string{"Name"}}), lathe.CodeRedactionFailed, "the allowlist matches nothing of the output: it names Name", `"name"`},
		{"no output", tool.Func("t", "d", returns(nil, nil), all), lathe.CodeInvalidOutput, "the tool returned no output", "no output"},
		{"not JSON", tool.Func("t", "d", returns(&lathe.Output{Data: []byte(`{"a":`)}, nil), all), lathe.CodeInvalidOutput, "not JSON", "not JSON"},
		{"another schema", tool.Func("t", "d", returns(&lathe.Output{Data: []byte(`{"secret":"x"}`)}, nil),
			&tool.FuncOptions{Show: []string{"*"}, OutputSchema: []byte(`{"type":"object","required":["id"]}`)}), lathe.CodeInvalidOutput, "does not follow the output schema", "id"},
		{"its own", tool.Func("t", "d", returns(nil, &tool.CauseError{Cause: "the disk is full", Err: errors.New("secret")}), all),
			lathe.CodeExecutionFailed, "the disk is full", "secret"},
		{"of an output", tool.Func("t", "d", returns(&lathe.Output{IsError: true, Cause: "the function trapped"}, nil), all), lathe.CodeExecutionFailed, "the function trapped", ""},
		{"a panic", tool.Func("t", "d", func(context.Context, struct{}) (out, error) { panic("secret") }, all), lathe.CodeExecutionFailed, "the tool panicked", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			set, err := tool.NewSet(c.tool)
			if err != nil {
				t.Fatal(err)
			}
			var shown string
			r, err := tool.NewRunner(set, &tool.Options{Policy: policy.AllowAll(), OnError: func(_ context.Context, _ *lathe.CallInfo, err error) { shown = err.Error() }})
			if err != nil {
				t.Fatal(err)
			}
			w := r.Begin(nil, nil)
			var result *event.ToolCallResult
			w.Execute(t.Context(), 1, []tool.Call{{ToolCall: lathe.ToolCall{ID: "c", Name: "t", Arguments: "{}"}}}, func(d event.Data) {
				if res, ok := d.(*event.ToolCallResult); ok {
					result = res
				}
			})
			if result.ErrorType != c.code || !strings.Contains(result.Cause, c.cause) || strings.Contains(result.Cause, "secret") {
				t.Errorf("%s with the cause %q, want %s and %q", result.ErrorType, result.Cause, c.code, c.cause)
			}
			if !strings.Contains(shown, c.shown) {
				t.Errorf("OnError got %q, want %q in it", shown, c.shown)
			}
			if strings.Contains(result.Result, c.cause) && c.cause != "" {
				t.Errorf("the model is shown the cause: %s", result.Result)
			}
		})
	}
}

// A tool that is not offered is listed with the reason.
func TestWithheldToolsAreListed(t *testing.T) {
	t.Parallel()
	fn := func(context.Context, struct{}) (string, error) { return "", nil }
	with := func(name string, e lathe.Effect, starts bool) lathe.Tool {
		return tool.Func(name, "d", fn, &tool.FuncOptions{Show: []string{"*"}, Effect: e, StartsRun: starts})
	}
	set, err := tool.NewSet(with("read", lathe.ReadOnly, false), with("write", lathe.Writes, false), with("undeclared", 0, false), with("nested", lathe.ReadOnly, true))
	if err != nil {
		t.Fatal(err)
	}
	r, err := tool.NewRunner(set, &tool.Options{Policy: policy.Default(), Limits: lathe.Limits{MaxDepth: -1}})
	if err != nil {
		t.Fatal(err)
	}
	w := r.Begin(nil, nil)
	if n := len(w.Specs()); n != 1 {
		t.Fatalf("%d tools are offered, want 1", n)
	}
	got := map[string]event.WithheldReason{}
	for _, held := range w.Withheld() {
		got[held.Tool] = held.Reason
	}
	if len(got) != 3 || got["write"] != event.WithheldApproval || got["undeclared"] != event.WithheldUndeclared || got["nested"] != event.WithheldDepth {
		t.Errorf("withheld: %v", got)
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.Effects{}})
	if err != nil {
		t.Fatal(err)
	}
	denied := runner.Begin(nil, nil)
	for _, held := range denied.Withheld() {
		if held.Reason != event.WithheldPolicy && held.Tool != "nested" || held.Rule == "" {
			t.Errorf("without a decision: %+v", held)
		}
	}
}

// The error handler gets the call that failed, also where no policy was asked about it.
func TestErrorsNameTheirCall(t *testing.T) {
	t.Parallel()
	var failed []string
	r := newRunner(t, &tool.Options{Policy: policy.AllowAll(), OnError: func(_ context.Context, call *lathe.CallInfo, _ error) {
		failed = append(failed, call.Call.ID+" "+call.Tool.Name+" "+string(call.Args))
	}}, reader("server_side", returns(`not JSON`)))
	w := r.Begin(nil, &tool.RunOptions{ClientTools: []*lathe.ToolSpec{{Name: "client_side"}}})
	ask := func(id, name string) tool.Call {
		return tool.Call{ToolCall: lathe.ToolCall{ID: id, Name: name, Arguments: `{"n":1}`}}
	}
	answered := func(id string) tool.Call {
		c := ask(id, "client_side")
		c.Parked, c.Answer = &tool.Parked{}, &lathe.Output{Data: []byte("not JSON")}
		return c
	}
	for turn, c := range []tool.Call{answered("a"), ask("b", "server_side"), answered("c")} {
		w.Execute(t.Context(), turn, []tool.Call{c}, func(event.Data) {})
	}
	if got, want := strings.Join(failed, ", "), `a client_side , b server_side {"n":1}, c client_side `; got != want {
		t.Errorf("errors of %q, want %q", got, want)
	}
}
