package tool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

func TestRunnerAnswersWithOutput(t *testing.T) {
	t.Parallel()
	w := open(t, nil, reader("echo", echo))
	res, rec, out := one(t, w, tool.Call{ToolCall: lathe.ToolCall{ID: " call_7 ", Name: "echo", Arguments: ` {"a": 1} `}})
	want := lathe.ToolResult{CallID: "call_7", Name: "echo", Content: `{"a": 1}`}
	if diff := cmp.Diff(want, res); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	if got, want := rec.types(), "Proposed Planned Executed Result"; got != want {
		t.Errorf("events %q, want %q", got, want)
	}
	if out.Reason != "" || out.Limit != "" || out.Parked || len(out.Pending) != 0 {
		t.Errorf("outcome %+v wants the run to end", out)
	}
	planned := find[*event.ToolCallPlanned](t, rec)
	if planned.ToolCallID != "call_7" || planned.Tool != "echo" || planned.Seq != 0 || len(planned.ArgsPreviewHash) != 32 {
		t.Errorf("planned %+v", planned)
	}
	ex := find[*event.ToolCallExecuted](t, rec)
	if !ex.Success || ex.Attempts != 1 || ex.Cached || ex.OutputSizeBytes != 8 {
		t.Errorf("executed %+v", ex)
	}
	r := find[*event.ToolCallResult](t, rec)
	if r.Status != "ok" || r.ErrorType != "" || r.PolicyDecision != "allow" || r.PolicyRule != policy.RuleAllowAll || r.Result != `{"a": 1}` {
		t.Errorf("result %+v", r)
	}
	if diff := cmp.Diff([]event.CallTrace{{ID: "call_7", Tool: "echo", ArgsBytes: 10, OK: true, Executed: true}}, out.Calls, cmpopts.IgnoreFields(event.CallTrace{}, "LatencyMS")); diff != "" {
		t.Errorf("trace (-want +got):\n%s", diff)
	}
}

// Each stage ends a call with its code, and nothing after that stage happens.
func TestRunnerStages(t *testing.T) {
	t.Parallel()
	object := func(f *fake, schema string) *fake { f.spec.Schema = json.RawMessage(schema); return f }
	spec := func(f *fake, change func(*lathe.ToolSpec)) *fake { change(&f.spec); return f }
	fails := func(err error) func(context.Context, json.RawMessage) (*lathe.Output, error) {
		return func(context.Context, json.RawMessage) (*lathe.Output, error) { return nil, err }
	}
	typed := `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`
	runs := func(f *fake) *fake { f.starts = true; return f }

	tests := []struct {
		name   string
		opts   *tool.Options
		run    *lathe.RunInfo
		tool   *fake
		call   tool.Call
		want   lathe.Code
		events string
		limit  string
		detail map[string]any
	}{
		{name: "the zero policy denies", opts: &tool.Options{Policy: policy.Effects{}}, tool: reader("t", nil), call: call("t", "{}"), want: lathe.CodePolicyDenied, events: "Proposed Planned Result"},
		{name: "unknown tool", tool: reader("t", nil), call: call("u", "{}"), want: lathe.CodeUnknownTool, events: "Proposed Planned Result",
			detail: map[string]any{"available_tools": []any{"t"}}},
		{name: "hidden tool is unknown", tool: spec(reader("t", nil), func(s *lathe.ToolSpec) { s.Hidden = true }), call: call("t", "{}"),
			want: lathe.CodeUnknownTool, events: "Proposed Planned Result", detail: map[string]any{"available_tools": []any{}}},
		{name: "constructor is no tool", tool: reader("t", nil), call: call("constructor", "{}"), want: lathe.CodeUnknownTool, events: "Proposed Planned Result"},
		{name: "__proto__ is no tool", tool: reader("t", nil), call: call("__proto__", "{}"), want: lathe.CodeUnknownTool, events: "Proposed Planned Result"},
		{name: "toString is no tool", tool: reader("t", nil), call: call("toString", "{}"), want: lathe.CodeUnknownTool, events: "Proposed Planned Result"},
		{name: "names are case-sensitive", tool: reader("t", nil), call: call("T", "{}"), want: lathe.CodeUnknownTool, events: "Proposed Planned Result"},
		{name: "invalid JSON", tool: reader("t", nil), call: call("t", `{"a":`), want: lathe.CodeInvalidJSON, events: "Proposed Planned Result",
			detail: map[string]any{"reason": "unexpected_end", "offset": 5.0}},
		{name: "an array", tool: reader("t", nil), call: call("t", `[]`), want: lathe.CodeInvalidJSON, events: "Proposed Planned Result",
			detail: map[string]any{"reason": "not_an_object"}},
		{name: "invalid arguments", tool: object(reader("t", nil), typed), call: call("t", `{"n":"x","m":1}`), want: lathe.CodeInvalidArguments, events: "Proposed Planned Result"},
		{name: "asked for, no approver", opts: &tool.Options{Policy: policy.Effects{ReadOnly: lathe.Ask}}, tool: reader("t", nil), call: call("t", "{}"),
			want: lathe.CodePolicyDenied, events: "Proposed Planned Result"},
		{name: "policy panics", opts: &tool.Options{Policy: panicPolicy{}}, tool: reader("t", nil), call: call("t", "{}"), want: lathe.CodePolicyDenied, events: "Proposed Planned Result"},
		{name: "depth", run: &lathe.RunInfo{Depth: 1}, tool: runs(reader("t", nil)), call: call("t", "{}"), want: lathe.CodeMaxDepth, events: "Proposed Planned Result", limit: "max_depth",
			detail: map[string]any{"limit": "max_depth", "max": 1.0}},
		{name: "error", tool: reader("t", fails(errBoom)), call: call("t", "{}"), want: lathe.CodeExecutionFailed, events: "Proposed Planned Executed Result"},
		{name: "error with a code", tool: reader("t", fails(fmt.Errorf("x: %w", &lathe.Error{Code: lathe.CodeUnavailable, Err: errBoom}))), call: call("t", "{}"),
			want: lathe.CodeUnavailable, events: "Proposed Planned Executed Result"},
		{name: "error with a foreign code", tool: reader("t", fails(&lathe.Error{Code: lathe.CodeConflict})), call: call("t", "{}"),
			want: lathe.CodeExecutionFailed, events: "Proposed Planned Executed Result"},
		{name: "failure", tool: reader("t", fails(fmt.Errorf("x: %w", tool.Fail(lathe.CodeInvalidArguments, "no such city: %s", "Ys")))), call: call("t", "{}"),
			want: lathe.CodeInvalidArguments, events: "Proposed Planned Executed Result", detail: map[string]any{"detail": "no such city: Ys"}},
		{name: "panic", tool: reader("t", func(context.Context, json.RawMessage) (*lathe.Output, error) { panic("secret") }), call: call("t", "{}"),
			want: lathe.CodeExecutionFailed, events: "Proposed Planned Executed Result"},
		{name: "no output", tool: reader("t", fails(nil)), call: call("t", "{}"), want: lathe.CodeInvalidOutput, events: "Proposed Planned Executed Result"},
		{name: "output is no JSON", tool: reader("t", returns(`{"a":`)), call: call("t", "{}"), want: lathe.CodeInvalidOutput, events: "Proposed Planned Executed Result"},
		{name: "output is not UTF-8", tool: reader("t", returns("\"\xff\"")), call: call("t", "{}"), want: lathe.CodeInvalidOutput, events: "Proposed Planned Executed Result"},
		{name: "output breaks its schema", tool: spec(reader("t", returns(`{"a":1}`)), func(s *lathe.ToolSpec) { s.OutputSchema = json.RawMessage(`{"required":["b"]}`) }),
			call: call("t", "{}"), want: lathe.CodeInvalidOutput, events: "Proposed Planned Executed Result"},
		{name: "allowlist matches nothing", tool: spec(reader("t", returns(`{"a":1}`)), func(s *lathe.ToolSpec) { s.Allowlist = []string{"b"} }),
			call: call("t", "{}"), want: lathe.CodeRedactionFailed, events: "Proposed Planned Executed Result"},
		{name: "scalars pass with * only", tool: spec(reader("t", returns(`"text"`)), func(s *lathe.ToolSpec) { s.Allowlist = []string{"b"} }),
			call: call("t", "{}"), want: lathe.CodeRedactionFailed, events: "Proposed Planned Executed Result"},
		{name: "refused by the loop", tool: reader("t", nil), call: tool.Call{ToolCall: lathe.ToolCall{Name: "t"}, Refuse: lathe.CodeTooManyCalls},
			want: lathe.CodeTooManyCalls, events: "Proposed Planned Result"},
		{name: "cut off", tool: reader("t", nil), call: tool.Call{ToolCall: lathe.ToolCall{Name: "t", Incomplete: true}},
			want: lathe.CodeIncompleteCall, events: "Proposed Planned Result"},
		{name: "payload could not be read", tool: reader("t", nil), call: tool.Call{ToolCall: lathe.ToolCall{ParseError: lathe.CodePayloadParseError}},
			want: lathe.CodePayloadParseError, events: "Planned Result"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newRunner(t, tt.opts, tt.tool).Begin(tt.run, nil)
			res, rec, out := one(t, w, tt.call)
			if res.Code != tt.want {
				t.Fatalf("code %q, want %q; answer %s", res.Code, tt.want, res.Content)
			}
			if got := rec.types(); got != tt.events {
				t.Errorf("events %q, want %q", got, tt.events)
			}
			e := errorOf(t, res)
			for name, want := range tt.detail {
				if diff := cmp.Diff(want, e[name]); diff != "" {
					t.Errorf("member %s (-want +got):\n%s", name, diff)
				}
			}
			r := find[*event.ToolCallResult](t, rec)
			if r.Status != "error" || r.ErrorType != tt.want || r.Message != e["message"] || r.Message == "" || r.Limit != tt.limit {
				t.Errorf("result event %+v", r)
			}
			if out.Calls[0].Code != tt.want || out.Calls[0].OK {
				t.Errorf("trace %+v", out.Calls[0])
			}
			for _, leak := range []string{"boom", "secret"} {
				if strings.Contains(res.Content, leak) {
					t.Errorf("the model sees %q: %s", leak, res.Content)
				}
			}
		})
	}
}

type panicPolicy struct{}

func (panicPolicy) Tool(*lathe.RunInfo, *lathe.ToolSpec) lathe.Verdict { panic("secret") }
func (panicPolicy) Step(*lathe.StepInfo) lathe.Verdict                 { panic("secret") }
func (panicPolicy) Call(*lathe.CallInfo) lathe.Verdict                 { panic("secret") }

func TestRunnerListsAllViolations(t *testing.T) {
	t.Parallel()
	f := reader("t", nil)
	f.spec.Schema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n","m"],"additionalProperties":false}`)
	res, _, _ := one(t, open(t, nil, f), call("t", `{"n":"x","q":1}`))
	errs, _ := errorOf(t, res)["errors"].([]any)
	var got []string
	for _, e := range errs {
		m := e.(map[string]any)
		got = append(got, fmt.Sprintf("%s %s", m["pointer"], m["keyword"]))
		if m["message"] == "" {
			t.Errorf("violation %v has no message", m)
		}
	}
	want := []string{" additionalProperties", " required", "/n type"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("violations (-want +got):\n%s\n%s", diff, res.Content)
	}
}

func TestRunnerBoundsViolations(t *testing.T) {
	t.Parallel()
	f := reader("t", nil)
	f.spec.Schema = json.RawMessage(`{"type":"object","additionalProperties":{"type":"string"}}`)
	args := map[string]int{}
	for i := range 30 {
		args[fmt.Sprint("k", i)] = i
	}
	b, _ := json.Marshal(args)
	res, _, _ := one(t, open(t, nil, f), call("t", string(b)))
	e := errorOf(t, res)
	if errs := e["errors"].([]any); len(errs) != 20 || e["more_errors"] != 10.0 {
		t.Errorf("%d violations and more_errors %v, want 20 and 10", len(errs), e["more_errors"])
	}
}

func TestRunnerFindsDottedNames(t *testing.T) {
	t.Parallel()
	w := open(t, nil, reader("files_read", returns(`"x"`)))
	for _, name := range []string{"files_read", "files.read", " files.read "} {
		res, rec, _ := one(t, w, call(name, "{}"))
		if res.IsError || res.Name != name {
			t.Errorf("%q: %+v", name, res)
		}
		if got := find[*event.ToolCallProposed](t, rec); got.ToolName != "files_read" || got.RawName != name {
			t.Errorf("%q: proposed %+v", name, got)
		}
	}
}

func TestRunnerAllowNamesTheToolsOfARun(t *testing.T) {
	t.Parallel()
	r := newRunner(t, nil, reader("a", nil), reader("b", nil))
	w := r.Begin(&lathe.RunInfo{}, &tool.RunOptions{Allow: []string{"a"}})
	if got := specNames(w); got != "a" {
		t.Errorf("advertised %q, want a", got)
	}
	if res, _, _ := one(t, w, call("b", "{}")); res.Code != lathe.CodeUnknownTool {
		t.Errorf("code %q for a tool that the run may not use", res.Code)
	}
	w = r.Begin(&lathe.RunInfo{}, &tool.RunOptions{Allow: []string{}})
	if got := specNames(w); got != "" {
		t.Errorf("advertised %q to a run that may use nothing", got)
	}
}

func specNames(w *tool.Work) string {
	var names []string
	for _, s := range w.Specs() {
		names = append(names, s.Name)
	}
	return strings.Join(names, " ")
}

// later is an approver that answers another day.
type later struct{}

func (later) Approve(context.Context, *lathe.ApprovalRequest) (lathe.Approval, error) {
	return lathe.Approval{}, lathe.ErrPending
}

func TestSpecsAreWhatMayBeExecuted(t *testing.T) {
	t.Parallel()
	hidden, writer := reader("h", nil), reader("w", nil)
	hidden.spec.Hidden = true
	writer.spec.Effect = lathe.Writes
	tools := []lathe.Tool{reader("z", nil), hidden, writer, reader("a", nil)}
	for name, tt := range map[string]struct {
		policy   lathe.Policy
		approver lathe.Approver
		want     string
	}{
		"none":        {policy.Effects{}, later{}, ""},
		"panics":      {panicPolicy{}, later{}, ""},
		"all":         {policy.AllowAll(), nil, "a w z"},
		"asked for":   {policy.Default(), later{}, "a w z"},
		"no approver": {policy.Default(), nil, "a z"},
		"by name":     {policy.Tools{Deny: []string{"a"}, Else: policy.Default()}, later{}, "w z"},
	} {
		w := open(t, &tool.Options{Policy: tt.policy, Approver: tt.approver}, tools...)
		if got := specNames(w); got != tt.want {
			t.Errorf("%s: advertised %q, want %q", name, got, tt.want)
		}
	}
}

func TestClientToolsAreHandedOver(t *testing.T) {
	t.Parallel()
	ran := false
	f := reader("srv", func(context.Context, json.RawMessage) (*lathe.Output, error) {
		ran = true
		return &lathe.Output{Data: json.RawMessage(`1`)}, nil
	})
	r := newRunner(t, nil, f)
	w := r.Begin(&lathe.RunInfo{}, &tool.RunOptions{ClientTools: []*lathe.ToolSpec{{Name: "cli"}, {Name: "srv"}}})
	if got := specNames(w); got != "cli srv" {
		t.Errorf("advertised %q", got)
	}
	rec := &recorder{}
	out := w.Execute(t.Context(), 1, []tool.Call{
		{ToolCall: lathe.ToolCall{ID: "a", Name: "cli", Arguments: "not json"}},
		{ToolCall: lathe.ToolCall{ID: "b", Name: "srv"}},
		{ToolCall: lathe.ToolCall{ID: "c", Name: "cli"}, Refuse: lathe.CodeTooManyCalls},
	}, rec.emit)
	if !ran {
		t.Error("a client tool took the place of the set's")
	}
	if len(out.Pending) != 1 || out.Pending[0].ID != "a" || out.Pending[0].Arguments != "not json" || out.Parked || len(out.Waiting) != 0 {
		t.Errorf("pending %+v", out.Pending)
	}
	if len(out.Messages) != 2 || result(t, out.Messages[0]).CallID != "b" || result(t, out.Messages[1]).Code != lathe.CodeTooManyCalls {
		t.Errorf("messages %+v", out.Messages)
	}
	if got, want := rec.types(), "Proposed Planned Proposed Planned Executed Result Proposed Planned Result"; got != want {
		t.Errorf("events %q, want %q", got, want)
	}
	for _, d := range rec.events {
		switch d := d.(type) {
		case *event.ToolCallProposed:
			if d.Client != (d.ToolName == "cli") {
				t.Errorf("proposed %+v", d)
			}
		case *event.ToolCallResult:
			if d.Client != (d.Tool == "cli") {
				t.Errorf("result %+v", d)
			}
		default:
		}
	}
}

func TestNoopRunsEveryStageButTheTool(t *testing.T) {
	t.Parallel()
	f := reader("t", func(context.Context, json.RawMessage) (*lathe.Output, error) { panic("it ran") })
	f.spec.Allowlist, f.spec.OutputSchema = []string{"a"}, json.RawMessage(`{"required":["a"]}`)
	f.spec.CacheTTL = 1
	opts := &tool.Options{Policy: policy.AllowAll(), Settings: lathe.Settings{Executor: lathe.ExecutorNoop}, Limits: lathe.Limits{MaxToolCalls: 1}}
	w := open(t, opts, f)
	res, rec, _ := one(t, w, call("t", "{}"))
	if res.Content != `{"ok":true}` || res.IsError {
		t.Errorf("answer %+v", res)
	}
	if got, want := rec.types(), "Proposed Planned Result"; got != want {
		t.Errorf("events %q, want %q", got, want)
	}
	if res, _, _ := one(t, w, call("t", "[]")); res.Code != lathe.CodeInvalidJSON {
		t.Errorf("code %q, want invalid_json", res.Code)
	}
	if res, _, _ := one(t, w, call("t", "{}")); res.Code != lathe.CodeToolCallLimit {
		t.Errorf("code %q, want tool_call_limit", res.Code)
	}
}
