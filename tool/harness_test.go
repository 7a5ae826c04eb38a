package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

// fake is a tool made of its parts.
type fake struct {
	spec   lathe.ToolSpec
	call   func(ctx context.Context, args json.RawMessage) (*lathe.Output, error)
	starts bool
}

func (f *fake) Spec() *lathe.ToolSpec { return &f.spec }

func (f *fake) Call(ctx context.Context, args json.RawMessage) (*lathe.Output, error) {
	if f.call == nil {
		return &lathe.Output{Data: json.RawMessage(`{"ok":1}`)}, nil
	}
	return f.call(ctx, args)
}

func (f *fake) StartsRun() bool { return f.starts }

const anyObject = `{"type":"object"}`

// reader is a tool that only reads, shows everything and takes any object.
func reader(name string, call func(ctx context.Context, args json.RawMessage) (*lathe.Output, error)) *fake {
	return &fake{spec: lathe.ToolSpec{Name: name, Description: "reads", Schema: json.RawMessage(anyObject), Effect: lathe.ReadOnly,
		Allowlist: []string{"*"}, Origin: "test"}, call: call}
}

// returns is a tool body that returns fixed data.
func returns(data string) func(context.Context, json.RawMessage) (*lathe.Output, error) {
	return func(context.Context, json.RawMessage) (*lathe.Output, error) {
		return &lathe.Output{Data: json.RawMessage(data)}, nil
	}
}

// echo returns its arguments.
func echo(_ context.Context, args json.RawMessage) (*lathe.Output, error) {
	return &lathe.Output{Data: args}, nil
}

func newSet(t testing.TB, tools ...lathe.Tool) *tool.Set {
	t.Helper()
	s, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// open returns a runner's work under a policy that allows all, unless opts say otherwise.
func open(t testing.TB, opts *tool.Options, tools ...lathe.Tool) *tool.Work {
	t.Helper()
	return newRunner(t, opts, tools...).Begin(&lathe.RunInfo{RunID: "run_1"}, nil)
}

func newRunner(t testing.TB, opts *tool.Options, tools ...lathe.Tool) *tool.Runner {
	t.Helper()
	o := tool.Options{Policy: policy.AllowAll()}
	if opts != nil {
		o = *opts
	}
	n := 0
	if o.NewID == nil {
		o.NewID = func(p string) string { n++; return fmt.Sprintf("%s%d", p, n) }
	}
	runner, err := tool.NewRunner(newSet(t, tools...), &o)
	if err != nil {
		t.Fatal(err)
	}
	return runner
}

func call(name, args string) tool.Call {
	return tool.Call{ToolCall: lathe.ToolCall{Name: name, Arguments: args}}
}

// recorder keeps the events that it gets.
type recorder struct{ events []event.Data }

func (r *recorder) emit(d event.Data) { r.events = append(r.events, d) }

func (r *recorder) types() string {
	var names []string
	for _, f := range r.events {
		names = append(names, strings.TrimPrefix(f.EventType(), "ToolCall"))
	}
	return strings.Join(names, " ")
}

func find[T event.Data](t testing.TB, r *recorder) T {
	t.Helper()
	for _, f := range r.events {
		if v, ok := f.(T); ok {
			return v
		}
	}
	var zero T
	t.Fatalf("no %T among %s", zero, r.types())
	return zero
}

// one executes a single call and returns its answer.
func one(t testing.TB, w *tool.Work, c tool.Call) (lathe.ToolResult, *recorder, tool.Outcome) {
	t.Helper()
	r := &recorder{}
	out := w.Execute(t.Context(), 1, []tool.Call{c}, r.emit)
	if len(out.Messages) != 1 {
		t.Fatalf("%d messages, want 1; events %s", len(out.Messages), r.types())
	}
	return result(t, out.Messages[0]), r, out
}

func result(t testing.TB, m lathe.Message) lathe.ToolResult {
	t.Helper()
	if m.Role != lathe.RoleTool || len(m.Parts) != 1 {
		t.Fatalf("message has role %s and %d parts, want one tool result", m.Role, len(m.Parts))
	}
	res, ok := m.Parts[0].(lathe.ToolResult)
	if !ok {
		t.Fatalf("part is a %T, want a ToolResult", m.Parts[0])
	}
	return res
}

// errorOf decodes the answer to a call that failed.
func errorOf(t testing.TB, res lathe.ToolResult) map[string]any {
	t.Helper()
	var v struct {
		OK    *bool          `json:"ok"`
		Error map[string]any `json:"error"`
	}
	if err := json.Unmarshal([]byte(res.Content), &v); err != nil {
		t.Fatalf("answer is not JSON: %v: %s", err, res.Content)
	}
	if v.OK == nil || *v.OK || v.Error["code"] != string(res.Code) || !res.IsError {
		t.Fatalf("answer %s does not say ok false and code %q", res.Content, res.Code)
	}
	return v.Error
}

var errBoom = errors.New("boom: a secret of the tool")
