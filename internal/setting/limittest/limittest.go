// Package limittest has, for each limit of lathe.Limits, a run that reaches the limit. The tests of each package that starts runs or tool
// calls set each limit in each place where it can be set, and check that the run reaches it.
package limittest

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/setting"
	"github.com/lathe-run/lathe/lathetest"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/tool"
)

// A Scenario is a run that reaches one limit.
type Scenario struct {
	*setting.Row
	Tight lathe.Limits // only this limit is set, to a value that the run reaches
	Text  string       // the value in the format of the configuration
	JSON  string       // the value in the format of a request
	// Blocks: without the limit the run blocks until another limit ends it.
	Blocks bool
	// OneCall: the first tool call alone, without a run, reaches the limit. The other limits apply only to runs with a model: to model
	// calls, their cost, the number of tool calls, and the tools that the model receives.
	OneCall bool

	dialect string   // dialect of a model that writes calls as text; "": native calls
	turns   [][]call // calls of each turn; after the last turn the model answers with text
}

// A call is a tool call of the model.
type call struct{ name, args string }

const long = `{"text":"a text that is longer than the limits of bytes are"}`

// scenarios has one entry for each limit, by key.
var scenarios = map[string]Scenario{
	"max_iterations":        {Text: "1", turns: [][]call{{{"echo", `{}`}}}},
	"max_total_tool_calls":  {Text: "1", turns: [][]call{{{"echo", `{"n":1}`}, {"echo", `{"n":2}`}}}},
	"max_depth":             {Text: "0", OneCall: true, turns: [][]call{{{"agent", `{}`}}}},
	"max_repeated_calls":    {Text: "2", turns: [][]call{{{"echo", `{}`}}, {{"echo", `{}`}}}},
	"max_unknown_tools":     {Text: "1", turns: [][]call{{{"nothing", `{}`}}, {{"nothing", `{}`}}}},
	"max_tool_args_bytes":   {Text: "8", OneCall: true, turns: [][]call{{{"echo", long}}}},
	"max_payload_bytes":     {Text: "32", turns: [][]call{{{"echo", long}}}, dialect: "hermes"},
	"max_tool_output_bytes": {Text: "8", OneCall: true, turns: [][]call{{{"echo", long}}}},
	"max_json_depth":        {Text: "1", OneCall: true, turns: [][]call{{{"echo", `{"a":{"b":1}}`}}}},
	"max_json_keys":         {Text: "1", OneCall: true, turns: [][]call{{{"echo", `{"a":1,"b":2}`}}}},
	"max_tools":             {Text: "1"},
	"max_tools_bytes":       {Text: "16"},
	"tool_timeout":          {Text: "1ms", OneCall: true, turns: [][]call{{{"wait", `{}`}}}, Blocks: true},
	"run_timeout":           {Text: "1ms", turns: [][]call{{{"wait", `{}`}}}, Blocks: true},
	"approval_ttl":          {Text: "1ms", OneCall: true, turns: [][]call{{{"pay", `{}`}}}, Blocks: true},
	"max_tokens_total":      {Text: "1", turns: [][]call{{{"echo", `{}`}}}},
	"max_cost":              {Text: "0.01", turns: [][]call{{{"echo", `{}`}}}},
}

// Each runs f as a subtest for the scenario of each limit. If a limit has no scenario, Each fails t and names the limit.
func Each(t *testing.T, f func(t *testing.T, s *Scenario)) {
	for _, r := range setting.Rows[lathe.Limits]() {
		s, ok := scenarios[r.Key]
		if !ok {
			t.Errorf("the limit %s has no scenario in internal/setting/limittest", r.Key)
			continue
		}
		s.Row = r
		switch to := r.In(&s.Tight).Addr().Interface().(type) {
		case *time.Duration:
			d, err := time.ParseDuration(s.Text)
			if err != nil {
				t.Fatal(err)
			}
			*to, s.JSON = d, fmt.Sprintf("%q", s.Text)
		default:
			s.JSON = s.Text
			if s.Text == "0" { // a field value of 0 would mean the default
				reflect.ValueOf(to).Elem().SetInt(-1)
			} else if err := json.Unmarshal([]byte(s.Text), to); err != nil {
				t.Fatal(err)
			}
		}
		t.Run(r.Key, func(t *testing.T) { f(t, &s) })
	}
}

// Tools returns the tools that the scenarios call.
func Tools() []lathe.Tool {
	type args = map[string]any
	read := &tool.FuncOptions{Show: []string{"*"}, Effect: lathe.ReadOnly}
	agent := *read
	agent.StartsRun = true
	var tools []lathe.Tool
	for name, f := range map[string]struct {
		opts *tool.FuncOptions
		call func(context.Context, args) (args, error)
	}{
		"echo":  {read, func(_ context.Context, in args) (args, error) { return in, nil }},
		"agent": {&agent, func(context.Context, args) (args, error) { return args{}, nil }},
		"wait":  {read, func(ctx context.Context, _ args) (args, error) { <-ctx.Done(); return nil, context.Cause(ctx) }},
		"pay":   {&tool.FuncOptions{Show: []string{"*"}, Effect: lathe.Writes}, func(context.Context, args) (args, error) { return args{}, nil }},
	} {
		tools = append(tools, tool.Func(name, "A tool of a test.", f.call, f.opts))
	}
	return tools
}

// Set returns [Tools] as a set.
func Set(t testing.TB) *tool.Set {
	t.Helper()
	set, err := tool.NewSet(Tools()...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// Policy returns a policy that requires an approval for calls that write, and allows the others.
func Policy() lathe.Policy {
	return policy.Effects{ReadOnly: lathe.Allow, Idempotent: lathe.Allow, Writes: lathe.Ask}
}

// An Approver blocks until the context of the request ends, and never decides.
type Approver struct{}

// Approve implements [lathe.Approver]. It returns the error of ctx when ctx ends.
func (Approver) Approve(ctx context.Context, _ *lathe.ApprovalRequest) (lathe.Approval, error) {
	<-ctx.Done()
	return lathe.Approval{}, ctx.Err()
}

// Model returns a model that requests the calls of the scenario. Several runs may use it at once.
func (s *Scenario) Model(t testing.TB) lathe.Model {
	t.Helper()
	var m lathe.Model = &model{turns: s.turns, asText: s.dialect != ""}
	if s.dialect != "" {
		var err error
		if m, err = provider.WithDialect(m, s.dialect, nil); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// A model answers with turns[n] if the request has n assistant messages. Each model call costs one US dollar.
type model struct {
	turns  [][]call
	asText bool // write calls as text in the dialect hermes
}

func (m *model) Describe() lathe.ModelInfo { return lathetest.NewModel().Describe() }

func (m *model) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	turn := 0
	for i := range req.Messages {
		if req.Messages[i].Role == lathe.RoleAssistant {
			turn++
		}
	}
	step := lathetest.Text("done")
	if turn < len(m.turns) {
		step = lathetest.Step{}
		var text strings.Builder
		for i, c := range m.turns[turn] {
			fmt.Fprintf(&text, "<tool_call>\n{\"name\":%q,\"arguments\":%s}\n</tool_call>", c.name, c.args)
			step.Calls = append(step.Calls, lathe.ToolCall{ID: fmt.Sprintf("call_%d_%d", turn, i), Name: c.name, Arguments: c.args})
		}
		if m.asText {
			step = lathetest.Text(text.String())
		}
	}
	return func(yield func(lathe.Delta, error) bool) {
		for d, err := range lathetest.NewModel(step).Generate(ctx, req) {
			if d.Finish != nil {
				cost := 1.0
				d.Finish.ProviderCost = &cost
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// Call returns the first call of the run. It panics if the run has no call; scenarios with OneCall have one.
func (s *Scenario) Call() (name, args string) { return s.turns[0][0].name, s.turns[0][0].args }

// Met reports whether an event names the limit as the one that was reached.
func (s *Scenario) Met(events []event.Event) bool {
	for _, e := range events {
		limit := ""
		switch d := e.Data.(type) {
		case *event.ToolCallResult:
			limit = d.Limit
		case *event.RunFinished:
			limit = d.Limit
		default: // no other event reports a limit
		}
		if limit == s.Key {
			return true
		}
	}
	return false
}
