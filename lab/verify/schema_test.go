package verify_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/schema"
	"github.com/lathe-run/lathe/lab/doctor"
	"github.com/lathe-run/lathe/lab/eval"
	"github.com/lathe-run/lathe/lab/verify"
	"github.com/lathe-run/lathe/sim"
)

// What a verification writes is valid under the published schema: on each wire, passed, failed and inconclusive, with a reference and
// with limits.
func TestReportsAreValidUnderTheirSchema(t *testing.T) {
	t.Parallel()
	published, err := schema.Compile(verify.Schema())
	if err != nil {
		t.Fatal(err)
	}
	limited := func(o *verify.Options) {
		o.Limits, o.MaxTools, o.MaxArguments, o.MaxContext = true, 8, 512, 512
	}
	for name, c := range map[string]struct {
		model, reference string
		wire             lathe.Wire
		with             func(*verify.Options)
		status           verify.Status
	}{
		"chat":             {sim.DemoModel, "", "", limited, verify.Passed},
		"responses":        {sim.ThinkingModel, "", lathe.WireResponses, nil, verify.Passed},
		"messages":         {"sim/fault-args-invalid-json", sim.DemoModel, lathe.WireMessages, nil, verify.Failed},
		"gemini":           {"sim/fault-finish-unknown", sim.ThinkingModel, lathe.WireGemini, limited, verify.Failed},
		"key":              {"sim/fault-status-401", "", "", nil, verify.Failed},
		"nothing measured": {sim.DemoModel, "", "", func(o *verify.Options) { o.MaxTokens = 5000 }, verify.Inconclusive},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := options()
			opts.Trials = 2
			if c.with != nil {
				c.with(opts)
			}
			var reference *doctor.Target
			if c.reference != "" {
				r := target(c.reference, c.wire, nil)
				reference = &r
			}
			rep, err := verify.Run(t.Context(), target(c.model, c.wire, nil), reference, opts)
			if err != nil {
				t.Fatal(err)
			}
			var raw bytes.Buffer
			if err := rep.WriteJSON(&raw); err != nil {
				t.Fatal(err)
			}
			if rep.Status != c.status {
				t.Errorf("%s %v, want %s", rep.Status, rep.Why, c.status)
			}
			if violations := published.Validate(raw.Bytes()); len(violations) > 0 {
				t.Errorf("%v", violations)
			}
			more := bytes.Replace(raw.Bytes(), []byte("{"), []byte(`{"surprise":1,`), 1)
			if len(published.Validate(more)) == 0 {
				t.Error("a member that there is not is valid")
			}
		})
	}
}

// The schema names each member that the Go types write, and no other.
func TestSchemaNamesEachMember(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		at []string
		of reflect.Type
	}{
		{nil, reflect.TypeFor[verify.Report]()},
		{[]string{"properties", "budget"}, reflect.TypeFor[verify.Budget]()},
		{[]string{"properties", "trigger"}, reflect.TypeFor[verify.Trigger]()},
		{[]string{"properties", "limits", "items"}, reflect.TypeFor[verify.LimitsPair]()},
		{[]string{"$defs", "side"}, reflect.TypeFor[verify.Side]()},
		{[]string{"$defs", "tally"}, reflect.TypeFor[verify.Tally]()},
		{[]string{"$defs", "metric"}, reflect.TypeFor[verify.Metric]()},
		{[]string{"$defs", "deviation"}, reflect.TypeFor[verify.Deviation]()},
		{[]string{"$defs", "limit"}, reflect.TypeFor[verify.Limit]()},
		{[]string{"$defs", "pass_k", "items"}, reflect.TypeFor[eval.PassK]()},
	} {
		var at any
		if err := json.Unmarshal(verify.Schema(), &at); err != nil {
			t.Fatal(err)
		}
		for _, name := range append(c.at, "properties") {
			at = at.(map[string]any)[name]
		}
		var want []string
		for _, f := range reflect.VisibleFields(c.of) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
				want = append(want, name)
			}
		}
		if c.of == reflect.TypeFor[verify.Tally]() { // MarshalJSON adds them
			want = append(want, "rate", "low", "high")
		}
		slices.Sort(want)
		if got := slices.Sorted(maps.Keys(at.(map[string]any))); !slices.Equal(got, want) {
			t.Errorf("%s: the schema has %v, the type %v", c.of, got, want)
		}
	}
}
