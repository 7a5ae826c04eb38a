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

	"go.yaml.in/yaml/v3"

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
			{Name: "gone", Model: unreachable{}, About: map[string]string{"server": "http://h"}}}, eval.Options{Trials: 2, Strategies: []eval.Strategy{eval.Raw, eval.Production}}},
		"endless":   {eval.Builtin(), []eval.Target{{Name: "endless", Model: endless{}}}, eval.Options{Timeout: 50 * time.Millisecond}},
		"one":       {eval.Builtin(), []eval.Target{target("sim/eval")}, eval.Options{}},
		"injection": {eval.Injection(), []eval.Target{target("sim/obedient")}, eval.Options{Unguarded: true}},
		"retail":    {eval.Retail(), []eval.Target{eval.GoldTarget(), plays("words", onlyWords)}, eval.Options{UserModel: &eval.UserModel{Name: "u", Model: eval.Play([]eval.GoldTurn{{Say: "Yes."}})}}},
		"skills":    {eval.Skills(), []eval.Target{eval.GoldTarget()}, eval.Options{}},
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
		for _, f := range reflect.VisibleFields(c.of) {
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

// The suites that come with Lathe are valid under the published schema, whose objects have the keys that Parse knows, and no others.
func TestSuitesAreValidUnderTheirSchema(t *testing.T) {
	t.Parallel()
	s := compiled(t, eval.SuiteSchema())
	for _, name := range []string{"state", "injection", "faults", "retail", "airline", "skills"} {
		text, err := os.ReadFile(name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := yaml.Unmarshal(text, &v); err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if violations := s.Validate(raw); len(violations) > 0 {
			t.Errorf("%s: %v", name, violations)
		}
	}
	var root struct {
		Properties map[string]any
		Defs       map[string]any `json:"$defs"`
	}
	if err := json.Unmarshal(eval.SuiteSchema(), &root); err != nil {
		t.Fatal(err)
	}
	scenario := func(member string) string { return "scenarios: [{id: a, user: b, " + member + "}]" }
	tool := func(member string) string { return "tools: [{name: f, " + member + "}]" }
	objects := []struct {
		text string // with the key zzz where the object is
		at   any
	}{
		{"zzz: 1", map[string]any{"properties": root.Properties}},
		{scenario("zzz: 1"), root.Defs["scenario"]},
		{scenario("user_simulator: {zzz: 1}"), root.Defs["user_simulator"]},
		{scenario("user_simulator: {replies: [{zzz: 1}]}"), within(t, root.Defs["user_simulator"], "properties", "replies", "items")},
		{scenario("sampling: {zzz: 1}"), within(t, root.Defs["scenario"], "properties", "sampling")},
		{scenario("state: {zzz: 1}"), within(t, root.Defs["scenario"], "properties", "state")},
		{"generated_tools: {zzz: 1}", root.Defs["generated_tools"]},
		{"policy: {zzz: 1}", root.Defs["policy"]},
		{tool("zzz: 1"), within(t, root.Defs["tools"], "items")},
		{tool("answers: [{zzz: 1}]"), within(t, root.Defs["answers"], "items")},
	}
	for of, in := range map[string]func(string) string{"step": func(m string) string { return tool("steps: [{" + m + "}]") },
		"assert": func(m string) string { return scenario("assert: [{" + m + "}]") }} {
		_, err := eval.Parse("s", []byte(in("zzz: 1")))
		_, kinds, _ := strings.Cut(err.Error(), "begins with ")
		kinds, _, _ = strings.Cut(kinds, ", not with")
		var known []string
		for _, at := range within(t, root.Defs[of], "oneOf").([]any) {
			kind := within(t, at, "required").([]any)[0].(string)
			known = append(known, kind)
			value := "x"
			if kind == "order" || kind == "together" {
				value = "[x, y]"
			} else if of == "step" {
				value = "/x"
			}
			objects = append(objects, struct {
				text string
				at   any
			}{in(kind + ": " + value + ", zzz: 1"), at})
		}
		want := strings.Split(strings.ReplaceAll(kinds, " or ", ", "), ", ")
		slices.Sort(want)
		slices.Sort(known)
		if !slices.Equal(known, want) {
			t.Errorf("%s: the schema has the kinds %v, Parse %v", of, known, want)
		}
	}
	for _, o := range objects {
		_, err := eval.Parse("s", []byte(o.text))
		if err == nil {
			t.Fatalf("%s: no error", o.text)
		}
		_, list, found := strings.Cut(err.Error(), ` has `)
		want := strings.Split(list, ", ")
		slices.Sort(want)
		if got := slices.Sorted(maps.Keys(within(t, o.at, "properties").(map[string]any))); !found || !slices.Equal(got, want) {
			t.Errorf("%s: the schema has %v, Parse says: %v", o.text, got, err)
		}
	}
}

// within returns the value at those keys.
func within(t *testing.T, v any, keys ...string) any {
	t.Helper()
	for _, k := range keys {
		m, ok := v.(map[string]any)
		if !ok || m[k] == nil {
			t.Fatalf("the schema has no %s", k)
		}
		v = m[k]
	}
	return v
}
