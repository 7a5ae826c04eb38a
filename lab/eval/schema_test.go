package eval_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe/internal/schema"
	"github.com/lathe-run/lathe/lab/eval"
)

func compiled(t *testing.T, raw []byte) *schema.Schema {
	t.Helper()
	s, err := schema.Compile(raw)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What an evaluation writes is valid under the published schemas: runs that pass, fail, time out, reach no server and do not
// apply, of all suites.
func TestResultsAreValidUnderTheirSchemas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	runs, summaries := compiled(t, eval.RunSchema()), compiled(t, eval.SummarySchema())
	for name, m := range map[string]struct {
		suite   *eval.Suite
		targets []eval.Target
		opts    eval.Options
	}{
		"state": {eval.Builtin(), []eval.Target{target("sim/eval"), target("sim/eval-never-repairs"), target("sim/eval-no-mistake"), target("sim/fault-status-401"),
			{Name: "gone", Model: unreachable{}, About: map[string]string{"server": "http://h"}}}, eval.Options{Trials: 4, Strategies: []eval.Strategy{eval.Raw, eval.Production}}},
		"endless":   {eval.Builtin(), []eval.Target{{Name: "endless", Model: endless{}}}, eval.Options{Timeout: 50 * time.Millisecond}},
		"one":       {eval.Builtin(), []eval.Target{target("sim/eval")}, eval.Options{}},
		"injection": {eval.Injection(), []eval.Target{target("sim/obedient")}, eval.Options{Unguarded: true}},
		"retail":    {eval.Retail(), []eval.Target{plays("gold", asGold), plays("words", onlyWords)}, eval.Options{UserModel: &eval.UserModel{Name: "u", Model: eval.Play([]eval.GoldTurn{{Say: "Yes."}})}}},
		"skills":    {eval.Skills(), []eval.Target{plays("gold", asGold)}, eval.Options{}},
		"faults":    {eval.Faults(), []eval.Target{target("sim/obedient")}, eval.Options{}},
	} {
		opts := m.opts
		opts.Dir = filepath.Join(dir, name)
		rep, err := eval.Measure(t.Context(), m.suite, m.suite.Scenarios, m.targets, &opts)
		if err != nil {
			t.Fatal(err)
		}
		if err := rep.Save(opts.Dir); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(opts.Dir, "*.json"))
		if err != nil || len(files) < len(rep.Runs) {
			t.Fatalf("%v, %d files", err, len(files))
		}
		for _, path := range files {
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			s := runs
			if filepath.Base(path) == "summary.json" {
				s = summaries
			}
			if violations := s.Validate(raw); len(violations) > 0 {
				t.Errorf("%s: %v", filepath.Base(path), violations)
			}
		}
	}
}

// The schemas name each member that the Go types write, and no other.
func TestSchemasNameEachMember(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		raw  []byte
		at   []string
		of   reflect.Type
		more []string // members that MarshalJSON adds
	}{
		{"a run", eval.RunSchema(), nil, reflect.TypeFor[eval.Run](), nil},
		{"a check", eval.RunSchema(), []string{"properties", "checks", "items"}, reflect.TypeFor[eval.Check](), nil},
		{"a model call", eval.RunSchema(), []string{"properties", "model_calls", "items"}, reflect.TypeFor[eval.ModelCall](), nil},
		{"limits", eval.RunSchema(), []string{"properties", "limits"}, reflect.TypeFor[eval.RunLimits](), nil},
		{"a summary", eval.SummarySchema(), nil, reflect.TypeFor[eval.Summary](), nil},
		{"a row", eval.SummarySchema(), []string{"$defs", "row"}, reflect.TypeFor[eval.Row](), []string{"ok_rate", "ok_rate_low", "ok_rate_high", "ttft_ms_p50", "ttft_ms_p95"}},
		{"what was measured", eval.SummarySchema(), []string{"properties", "measured", "items"}, reflect.TypeFor[eval.About](), nil},
	} {
		var at any
		if err := json.Unmarshal(c.raw, &at); err != nil {
			t.Fatal(err)
		}
		for _, name := range append(c.at, "properties") {
			at = at.(map[string]any)[name]
		}
		want := c.more
		for f := range c.of.Fields() {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
				want = append(want, name)
			}
		}
		slices.Sort(want)
		if got := slices.Sorted(maps.Keys(at.(map[string]any))); !slices.Equal(got, want) {
			t.Errorf("%s: the schema has %v, the type %v", c.name, got, want)
		}
	}
}
