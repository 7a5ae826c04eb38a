package provider_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/sim"
	"github.com/lathe-run/lathe/tool"
)

// A story is a run through the simulated model: its events and how it ended.
type story struct {
	events []event.Event
	result *event.Result
	shown  string // text and commentary as the user saw them
}

// kinds are the types of the events, those of deltas left out.
func (s *story) kinds() []string {
	var out []string
	for _, e := range s.events {
		switch e.Data.(type) {
		case *event.TextDelta, *event.ReasoningDelta, *event.CommentaryDelta, *event.ToolCallDelta:
		default:
			out = append(out, e.Data.EventType())
		}
	}
	return out
}

// all returns the events of one type.
func all[T event.Data](s *story) []T {
	var out []T
	for _, e := range s.events {
		if d, ok := e.Data.(T); ok {
			out = append(out, d)
		}
	}
	return out
}

type sum struct {
	A int `json:"a" jsonschema:"the first number"`
	B int `json:"b" jsonschema:"the second number"`
}

type said struct {
	Text string `json:"text"`
}

func testRunner(t testing.TB, limits lathe.Limits) *tool.Runner {
	t.Helper()
	set, err := tool.NewSet(
		tool.Func("add_numbers", "Add two numbers.", func(_ context.Context, in sum) (map[string]int, error) {
			return map[string]int{"sum": in.A + in.B}, nil
		}, &tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"*"}}),
		tool.Func("echo_text", "Echo a text.", func(_ context.Context, in said) (said, error) { return in, nil },
			&tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"*"}}))
	if err != nil {
		t.Fatal(err)
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.Tools{Else: policy.Effects{ReadOnly: lathe.Allow}}, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	return runner
}

func play(t testing.TB, model lathe.Model, prompt string, settings lathe.Settings, limits lathe.Limits) *story {
	t.Helper()
	l, err := loop.New(model, testRunner(t, limits), &loop.Options{Settings: settings, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	s := &story{}
	for e := range l.Run(t.Context(), &loop.Input{Run: lathe.RunInfo{RunID: "run"}, Messages: []lathe.Message{lathe.User(prompt)}}) {
		switch d := e.Data.(type) {
		case *event.TextDelta:
			s.shown += d.Text
		case *event.CommentaryDelta:
			s.shown += d.Text
		case *event.RunFinished:
			s.result = d.Result
		}
		s.events = append(s.events, e)
	}
	if s.result == nil {
		t.Fatal("the run has no result")
	}
	return s
}

func simulated(t testing.TB, name, dialectName string, opts *provider.DialectOptions, script string) lathe.Model {
	t.Helper()
	o := &sim.Options{}
	if script != "" {
		s, err := sim.ParseScript(strings.NewReader(script))
		if err != nil {
			t.Fatal(err)
		}
		o.Scripts = map[string]*sim.Script{"": s}
	}
	inner, err := provider.OpenAI(name, &provider.Options{Name: "sim", BaseURL: "http://sim.invalid/v1", Transport: sim.New(o).Transport()})
	if err != nil {
		t.Fatal(err)
	}
	m, err := provider.WithDialect(inner, dialectName, opts)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const twoTools = `Add 7 and 35. Then echo "a <b> c".`

// A run whose calls are text tells the same story as one whose calls are the wire's own.
func TestTextRunsAsNativeDoes(t *testing.T) {
	t.Parallel()
	native := play(t, simulated(t, "sim/demo", "native", nil, ""), twoTools, lathe.Settings{}, lathe.Limits{})
	if n := len(all[*event.ToolCallExecuted](native)); n != 2 || native.result.Reason != lathe.ReasonAnswered {
		t.Fatalf("the native run made %d calls and ended %s", n, native.result.Reason)
	}
	for _, name := range dialect.Names() {
		if name == "auto" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := play(t, simulated(t, "sim/demo+"+name, name, nil, ""), twoTools, lathe.Settings{}, lathe.Limits{})
			if diff := cmp.Diff(native.kinds(), s.kinds()); diff != "" {
				t.Errorf("other events than natively (-native +%s):\n%s", name, diff)
			}
			want, got := all[*event.ToolCallProposed](native), all[*event.ToolCallProposed](s)
			for i := range min(len(want), len(got)) {
				if got[i].Dialect != name || got[i].RawName != want[i].RawName || !sameJSON(t, got[i].RawArgs, want[i].RawArgs) {
					t.Errorf("call %d is %s %s %s, want %s %s", i, got[i].Dialect, got[i].RawName, got[i].RawArgs, want[i].RawName, want[i].RawArgs)
				}
			}
			wantResults, gotResults := all[*event.ToolCallResult](native), all[*event.ToolCallResult](s)
			for i := range min(len(wantResults), len(gotResults)) {
				if gotResults[i].Result != wantResults[i].Result || gotResults[i].Status != wantResults[i].Status {
					t.Errorf("result %d is %s %s, want %s %s", i, gotResults[i].Status, gotResults[i].Result, wantResults[i].Status, wantResults[i].Result)
				}
			}
			if got, want := all[*event.RunStarted](s)[0], all[*event.RunStarted](native)[0]; got.Dialect != name || got.Tools.Hash != want.Tools.Hash {
				t.Errorf("the run started with %s and the tools %s, want %s and %s", got.Dialect, got.Tools.Hash, name, want.Tools.Hash)
			}
			if s.result.Answer != native.result.Answer {
				t.Errorf("answer %q, want %q", s.result.Answer, native.result.Answer)
			}
			if got := strings.ReplaceAll(s.shown, "\n", ""); got != native.shown {
				t.Errorf("shown %q, want %q", got, native.shown)
			}
		})
	}
}

func sameJSON(t testing.TB, a, b string) bool {
	t.Helper()
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return a == b
	}
	return cmp.Equal(x, y)
}
