package tool_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

type sourced struct{ spec lathe.ToolSpec }

func (s *sourced) Spec() *lathe.ToolSpec { return &s.spec }
func (s *sourced) Call(context.Context, json.RawMessage) (*lathe.Output, error) {
	return &lathe.Output{Data: json.RawMessage(`1`)}, nil
}

func from(origin string, names ...string) (out []lathe.Tool) {
	for _, n := range names {
		out = append(out, &sourced{lathe.ToolSpec{Name: n, Origin: origin, Effect: lathe.ReadOnly, Allowlist: []string{"*"}}})
	}
	return out
}

func names(specs []*lathe.ToolSpec) string {
	var out []string
	for _, sp := range specs {
		out = append(out, sp.Name)
	}
	return strings.Join(out, " ")
}

func TestSetReplacesTheToolsOfOneOrigin(t *testing.T) {
	t.Parallel()
	set, err := tool.NewSetWithin(lathe.Limits{MaxTools: 4}, from("go", "own")...)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		origin string
		tools  []lathe.Tool
		want   string
		fails  string
	}{
		{"a", from("a", "x", "y"), "own x y", ""},
		{"b", from("b", "z"), "own x y z", ""},
		{"a", from("a", "y", "w"), "own w y z", ""},
		{"a", from("a", "own"), "own w y z", "one tool is from go, the other from a"},
		{"a", from("a", "n", "n"), "own w y z", "taken"},
		{"a", from("b", "n"), "own w y z", "not from a"},
		{"a", []lathe.Tool{nil}, "own w y z", "nil"},
		{"a", from("a", "1", "2", "3"), "own w y z", "max_tools"},
		{"a", nil, "own z", ""},
	} {
		err := set.Replace(tt.origin, tt.tools)
		if got := names(set.Specs()); got != tt.want || (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
			t.Errorf("%s %s: got %s, %v, want %s, %q", tt.origin, tt.want, got, err, tt.want, tt.fails)
		}
	}
}

// A run has the tools that there were when it began, and gets others between its turns.
func TestWorkRefresh(t *testing.T) {
	t.Parallel()
	set, err := tool.NewSet(from("go", "own")...)
	if err != nil {
		t.Fatal(err)
	}
	limits := lathe.Limits{MaxTools: 3}
	run, err := tool.NewRunner(set, &tool.Options{Policy: policy.Effects{ReadOnly: lathe.Allow}, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	work := run.Begin(nil, &tool.RunOptions{ClientTools: []*lathe.ToolSpec{{Name: "theirs", Owner: lathe.OwnerClient}}})
	check := func(change []lathe.Tool, want string, changed bool) {
		t.Helper()
		before := names(work.Specs())
		if err := set.Replace("a", change); err != nil {
			t.Fatal(err)
		}
		if got := names(work.Specs()); got != before {
			t.Errorf("before it is refreshed: got %s, want %s", got, before)
		}
		if got := work.Refresh(); got != changed || names(work.Specs()) != want {
			t.Errorf("got %t and %s, want %t and %s", got, names(work.Specs()), changed, want)
		}
	}
	check(from("a", "x"), "own theirs x", true)
	more := from("a", "x", "y", "z") // more than its limits allow
	more[2].Spec().Effect = lathe.Writes
	check(more, "own theirs x", false)
	if held := work.Withheld(); len(held) != 0 {
		t.Errorf("after a change that was refused: withheld %v", held)
	}
	check(from("a", "theirs"), "own theirs x", false) // the name of a tool of its client
	check(nil, "own theirs", true)
	if work.Refresh() {
		t.Error("nothing has changed")
	}
}

// A name that only others know of a tool by is free for the client's own.
func TestWorkRefreshesBesideAToolOfOthers(t *testing.T) {
	t.Parallel()
	for principal, want := range map[string]string{"ann": "theirs", "bob": "theirs x"} {
		set, err := tool.NewSet()
		if err != nil {
			t.Fatal(err)
		}
		runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.Effects{ReadOnly: lathe.Allow}})
		if err != nil {
			t.Fatal(err)
		}
		work := runner.Begin(&lathe.RunInfo{Principal: principal},
			&tool.RunOptions{ClientTools: []*lathe.ToolSpec{{Name: "theirs", Owner: lathe.OwnerClient}}})
		news := from("a", "theirs", "x")
		news[0].Spec().Principals = []string{"ann"}
		if err := set.Replace("a", news); err != nil {
			t.Fatal(err)
		}
		if changed := work.Refresh(); changed != (principal == "bob") || names(work.Specs()) != want {
			t.Errorf("%s: changed %t, got %s, want %s", principal, changed, names(work.Specs()), want)
		}
	}
}

// A source that lists the same tools again changes nothing: runs and runners keep what they have computed of the set.
func TestReplacingToolsByThemselvesDoesNotChangeTheSet(t *testing.T) {
	t.Parallel()
	tools := append(from("a", "x"), from("b", "y", "z")...)
	set, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	r, err := tool.NewRunner(set, &tool.Options{Policy: policy.AllowAll()})
	if err != nil {
		t.Fatal(err)
	}
	work := r.Begin(nil, nil)
	specs, shared := work.Specs(), set.SharedSpecs()
	for _, again := range [][]lathe.Tool{{tools[1], tools[2]}, {tools[2], tools[1]}} {
		if err := set.Replace("b", again); err != nil {
			t.Fatal(err)
		}
		if work.Refresh() {
			t.Error("the set has changed")
		}
	}
	if now := set.SharedSpecs(); &now[0] != &shared[0] || names(now) != "x y z" {
		t.Errorf("another list of the same tools: %s", names(now))
	}
	if now, _ := offered(r, nil); &now[0] != &specs[0] {
		t.Error("a run after it has another list of the same tools")
	}
	own := set.Specs()
	own[0] = nil
	if got := names(set.SharedSpecs()); got != "x y z" {
		t.Errorf("a change of the result of Specs changes the set: %s", got)
	}
	for _, other := range [][]lathe.Tool{{tools[1]}, {tools[2], from("b", "y")[0]}, append(from("b", "w"), tools[1:]...), tools[1:]} {
		if err := set.Replace("b", other); err != nil {
			t.Fatal(err)
		}
		if !work.Refresh() {
			t.Errorf("the set has not changed to %s", names(set.Specs()))
		}
	}
}
