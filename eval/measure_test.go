package eval_test

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/eval"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/sim"
)

func target(name string) eval.Target {
	return eval.Target{Name: name, Model: sim.New(nil).Model(name)}
}

func scenarios(t *testing.T, ids ...string) (*eval.Suite, []*eval.Scenario) {
	t.Helper()
	s := eval.Builtin()
	found, err := s.Find(ids...)
	if err != nil {
		t.Fatal(err)
	}
	return s, found
}

func TestHonestModelPassesEveryScenario(t *testing.T) {
	t.Parallel()
	s := eval.Builtin()
	all, err := s.Select("all")
	if err != nil {
		t.Fatal(err)
	}
	text := target("sim/eval+hermes") // the same with calls written as text
	if text.Model, err = provider.WithDialect(text.Model, "hermes", nil); err != nil {
		t.Fatal(err)
	}
	rep, err := eval.Measure(t.Context(), s, all, []eval.Target{target("sim/eval"), text},
		&eval.Options{Trials: 2, Strategies: eval.Strategies, Fallbacks: []bool{false, true}})
	if err != nil {
		t.Fatal(err)
	}
	if want := 2 * 8 * 2 * 3 * 2; len(rep.Runs) != want {
		t.Fatalf("%d runs, want %d", len(rep.Runs), want)
	}
	for _, r := range rep.Runs {
		if !r.OK {
			t.Errorf("%s %s: %s: %s", r.Model, r.Scenario, r.Class, r.Error)
		}
	}
}

// Each scenario must be able to fail, and to say why.
func TestMisbehavioursFailWithTheirClass(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		how, scenario string
		class         eval.Class
		says          string // part of the message
	}{
		{"never-calls", "happy_path", eval.ClassNoToolCalls, "called no tool"},
		{"never-calls", "duplicate_tool_calls", eval.ClassNoToolCalls, "called no tool"},
		{"wrong-order", "happy_path", eval.ClassAssertionFailed, "first calls in the order state_get, state_patch"},
		{"wrong-value", "happy_path", eval.ClassAssertionFailed, `state /draft/foo is "bar", got "other"`},
		{"wrong-text", "happy_path", eval.ClassAssertionFailed, `last words "Done."`},
		{"empty-text", "happy_path", eval.ClassEmptyText, `last words "Done."`},
		{"hidden-tool", "happy_path", eval.ClassAssertionFailed, "facts_commit is not asked for"},
		{"hidden-tool", "missing_workspace_id", eval.ClassAssertionFailed, "facts_commit is not asked for"},
		{"never-repairs", "partial_success_failure", eval.ClassToolError, "state_patch"},
		{"never-repairs", "type_error_recovery", eval.ClassToolError, "state_patch"},
		{"never-repairs", "long_arguments_guard", eval.ClassToolError, "state_patch"},
		{"no-mistake", "partial_success_failure", eval.ClassAssertionFailed, "one message holds state_get ok and state_patch failed"},
		{"no-mistake", "type_error_recovery", eval.ClassAssertionFailed, "a call of state_patch failed invalid_arguments"},
		{"no-mistake", "long_arguments_guard", eval.ClassAssertionFailed, "guard arguments_too_large fired"},
		{"one-at-a-time", "duplicate_tool_calls", eval.ClassAssertionFailed, "one message holds"},
		{"one-at-a-time", "partial_success_failure", eval.ClassAssertionFailed, "one message holds"},
		{"passes-id", "missing_workspace_id", eval.ClassAssertionFailed, "state_get has nothing at /workspace_id"},
		{"insists", "tool_output_truncation", eval.ClassAssertionFailed, "state_get called at most once, got 2 times"},
		{"wrong-text", "chat_only", eval.ClassAssertionFailed, `last words "Done."`},
		{"empty-text", "chat_only", eval.ClassEmptyText, ""},
		{"stalls", "happy_path", eval.ClassTimeout, "time is up"},
	} {
		t.Run(c.how+"/"+c.scenario, func(t *testing.T) {
			t.Parallel()
			s, sc := scenarios(t, c.scenario)
			opts := &eval.Options{}
			if c.how == "stalls" {
				opts.Timeout = 50 * time.Millisecond
			}
			rep, err := eval.Measure(t.Context(), s, sc, []eval.Target{target("sim/eval-" + c.how)}, opts)
			if err != nil {
				t.Fatal(err)
			}
			r := rep.Runs[0]
			if r.OK || !r.Scored || r.Class != c.class || !strings.Contains(r.Error, c.says) {
				t.Errorf("ok %v, scored %v, %s: %s\nwant %s: …%s…", r.OK, r.Scored, r.Class, r.Error, c.class, c.says)
			}
		})
	}
}

// Every way of misbehaving meets every scenario: what must fail does, with its class, and nothing else.
func TestMisbehavioursAtEveryScenario(t *testing.T) {
	t.Parallel()
	classes := map[byte]eval.Class{'.': "", 'A': eval.ClassAssertionFailed, 'N': eval.ClassNoToolCalls, 'E': eval.ClassEmptyText,
		'T': eval.ClassToolError, 'S': eval.ClassTimeout, 'H': eval.ClassTimeout} // H is no score: there was no answer at all
	want := map[string]string{ // in the order of the suite
		"never-calls": "NNNNNNN.", "wrong-order": "A.AA.AA.", "wrong-value": "AAAAAAA.", "wrong-text": "AAAAAAAA",
		"empty-text": "EEEEEEEE", "hidden-tool": "AAAAAAA.", "never-repairs": ".T.T.T..", "no-mistake": ".A.A.A..",
		"one-at-a-time": ".A..A...", "passes-id": "..A.....", "insists": "......A.", "stalls": "SSSSSSS.", "hangs": "HHHHHHHH",
	}
	s := eval.Builtin()
	for i, sc := range s.Scenarios {
		if !slices.ContainsFunc(slices.Collect(maps.Values(want)), func(row string) bool { return row[i] != '.' && row[i] != 'H' }) {
			t.Errorf("%s: no misbehaviour fails it", sc.ID)
		}
	}
	for _, m := range sim.Misbehaviours() {
		row := want[m.Name]
		if len(row) != len(s.Scenarios) {
			t.Errorf("%s: the test says nothing of it", m.Name)
			continue
		}
		for i, sc := range s.Scenarios {
			t.Run(m.Name+"/"+sc.ID, func(t *testing.T) {
				t.Parallel()
				opts := &eval.Options{}
				if row[i] == 'S' || row[i] == 'H' {
					opts.Timeout = 300 * time.Millisecond
				}
				rep, err := eval.Measure(t.Context(), s, []*eval.Scenario{sc}, []eval.Target{target("sim/eval-" + m.Name)}, opts)
				if err != nil {
					t.Fatal(err)
				}
				r := rep.Runs[0]
				if r.Class != classes[row[i]] || r.Scored != (row[i] != 'H') || (r.Class == "") != r.OK {
					t.Errorf("class %q, scored %v: %s\nwant %q", r.Class, r.Scored, r.Error, classes[row[i]])
				}
			})
		}
	}
}

// A server that is at fault gives no score, and after a few runs nothing more is asked of it.
func TestServersAreNeverAScore(t *testing.T) {
	t.Parallel()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := "http://" + ln.Addr().String() + "/v1"
	ln.Close()
	live := httptest.NewServer(sim.New(nil).Handler())
	t.Cleanup(live.Close)
	for _, c := range []struct {
		model, url string
		class      eval.Class
		scored     bool
	}{
		{"gone", dead, eval.ClassConnection, false},
		{"sim/fault-status-401", live.URL + "/v1", eval.ClassAuth, false},
		{"sim/fault-status-429-always", live.URL + "/v1", eval.ClassRateLimit, false},
		{"sim/fault-status-500-always", live.URL + "/v1", eval.ClassUpstream5xx, false},
		{"sim/fault-html", live.URL + "/v1", eval.ClassDecode, false},
		{"sim/eval-hangs", live.URL + "/v1", eval.ClassTimeout, false},
		{"sim/fault-status-404-tools", live.URL + "/v1", eval.ClassNoToolEndpoint, true},
		{"sim/nothing", live.URL + "/v1", eval.ClassNotFound, false},
	} {
		t.Run(c.model, func(t *testing.T) {
			t.Parallel()
			m, err := provider.OpenAI(c.model, &provider.Options{BaseURL: c.url, Retry: provider.Retry{Attempts: 1}})
			if err != nil {
				t.Fatal(err)
			}
			s, sc := scenarios(t, "happy_path", "missing_workspace_id", "type_error_recovery", "long_arguments_guard")
			rep, err := eval.Measure(t.Context(), s, sc, []eval.Target{{Name: c.model, Model: m}}, &eval.Options{Jobs: 1, Timeout: 200 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rep.Runs {
				if r.OK || r.Class != c.class || r.Scored != c.scored {
					t.Errorf("ok %v, scored %v, class %s: %s", r.OK, r.Scored, r.Class, r.Error)
				}
			}
			row := rep.Summary().All
			if c.scored {
				return
			}
			if len(rep.Runs) != 3 || len(rep.Skipped) != 1 || rep.Unscored() != 4 || row.Runs != 0 || row.Errors != 3 || rep.Passed() {
				t.Errorf("%d runs, %d skipped, %d unscored, row %+v", len(rep.Runs), len(rep.Skipped), rep.Unscored(), row)
			}
		})
	}
}

func ExampleMeasure() {
	suite := eval.Builtin()
	scenarios, err := suite.Select("simple")
	if err != nil {
		panic(err)
	}
	var model lathe.Model = sim.New(nil).Model("sim/eval") // or one of package provider
	rep, err := eval.Measure(context.Background(), suite, scenarios, []eval.Target{{Name: "sim/eval", Model: model}}, &eval.Options{Trials: 3})
	if err != nil {
		panic(err)
	}
	for _, row := range rep.Summary().Scenarios {
		fmt.Printf("%s %d of %d\n", row.Scenario, row.OK, row.Runs)
	}
	// Output:
	// happy_path 3 of 3
	// chat_only 3 of 3
}
