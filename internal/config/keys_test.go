package config

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
)

// samples are texts among which each kind of setting that has no vocabulary finds one that it takes.
var samples = []string{"7", "7s", "1MiB", "text", "${KEY}", "127.0.0.1:0", "https://example.com", "{run} waits.", `{"a":1}`, strings.Repeat("ab", 32)}

// change sets a setting to a value that is not its default.
func change(t *testing.T, k *kind, v reflect.Value) {
	t.Helper()
	r := resolver{env: map[string]string{"KEY": "secret"}}
	switch k.shape {
	case group:
		entry(v, "name")
		return
	case table:
		held := reflect.New(v.Type().Elem()).Elem()
		change(t, k.values, held)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("name"), held)
		return
	case list:
		for _, items := range [][]string{{"-v", "a b", "-v"}, {"a", "b"}, {"read"}, {"idempotent"}, {"https://a.example.com"}, {"RS256"}, {"value=key"}} {
			if k.setList(v, items) == nil {
				return
			}
		}
	default:
		was := k.text(v)
		for _, text := range append(slices.Clone(k.words), samples...) {
			if text == was || k.set(v, text) != nil || k.ref != nil && r.resolve(v.Addr().Interface().(*Ref), k.ref) != nil {
				continue
			}
			if got := k.text(v); got != text && got != "[redacted]" {
				t.Errorf("set to %s, reads %s", text, got)
			}
			return
		}
	}
	t.Fatalf("no sample is a value of the kind %q: add one that is to samples", k.what)
}

// tagNames are the tags of fields; tagPair finds one.
var (
	tagNames = strings.Fields("key default is of range off zero names per unset also narrow note guest was")
	tagPair  = regexp.MustCompile(`([a-z]+):"(?:[^"\\]|\\.)*"`)
)

// structsOf returns the struct and those of its sections and entries.
func structsOf(t reflect.Type) []reflect.Type {
	out := []reflect.Type{t}
	for i := range t.NumField() {
		f := t.Field(i).Type
		if f.Kind() == reflect.Map {
			f = f.Elem()
		}
		if f.Kind() == reflect.Pointer {
			f = f.Elem()
		}
		if _, ok := t.Field(i).Tag.Lookup("key"); ok && f.Kind() == reflect.Struct && scalarOf(f, `is:"key"`, "") == nil {
			out = append(out, structsOf(f)...)
		}
	}
	return out
}

// Each field has a key, and setting a key changes its field: a setting that was forgotten shows.
func TestEveryFieldHasOneKey(t *testing.T) {
	t.Parallel()
	structs := structsOf(reflect.TypeFor[Config]())
	if len(structs) < 30 {
		t.Errorf("found %d structs", len(structs))
	}
	for _, s := range structs {
		for i := range s.NumField() {
			if f := s.Field(i); f.IsExported() && f.Tag.Get("key") == "" {
				t.Errorf("%s.%s has no tag `key`; a field that is no setting has `key:\"-\"`", s.Name(), f.Name)
			}
		}
		for i := range s.NumField() {
			tag := string(s.Field(i).Tag)
			for _, pair := range tagPair.FindAllStringSubmatch(tag, -1) {
				if !slices.Contains(tagNames, pair[1]) {
					t.Errorf("%s.%s: there is no tag %q", s.Name(), s.Field(i).Name, pair[1])
				}
			}
			if rest := strings.TrimSpace(tagPair.ReplaceAllString(tag, "")); rest != "" {
				t.Errorf("%s.%s: this is no tag: %s", s.Name(), s.Field(i).Name, rest)
			}
		}
		v, unset := reflect.New(s), reflect.New(s)
		rows, defaults := rowsOf(v), rowsOf(unset)
		applyDefaults(rows)
		applyDefaults(defaults)
		seen := map[string]bool{}
		for i, r := range rows {
			if seen[r.path] {
				t.Errorf("%s: %s stands twice", s.Name(), r.path)
			}
			seen[r.path] = true
			change(t, r.kind, r.v)
			if fmt.Sprintf("%#v", r.v) == fmt.Sprintf("%#v", defaults[i].v) {
				t.Errorf("%s: no key changes %s", s.Name(), r.field)
			}
		}
	}
}

// Settings and Limits carry every setting of tool_calling to the library.
func TestSettingsOfRunsReachTheLibrary(t *testing.T) {
	t.Parallel()
	c := Default()
	for _, r := range rowsOf(reflect.ValueOf(&c.ToolCalling)) {
		change(t, r.kind, r.v)
	}
	c.ToolCalling.Enabled, c.ToolCalling.ToolUseMode = true, lathe.ModeEnforced
	for _, pair := range [][2]any{{c.Settings(), Default().Settings()}, {c.Limits(), Default().Limits()}} {
		got, was := reflect.ValueOf(pair[0]), reflect.ValueOf(pair[1])
		for i := range got.NumField() {
			if reflect.DeepEqual(got.Field(i).Interface(), was.Field(i).Interface()) {
				t.Errorf("no setting reaches %s.%s", got.Type(), got.Type().Field(i).Name)
			}
		}
	}
}

func TestDefaultsAreTheLibrarys(t *testing.T) {
	t.Parallel()
	c := Default()
	if diff := cmp.Diff(lathe.Limits{}.WithDefaults(), c.Limits()); diff != "" {
		t.Errorf("limits (-library +config):\n%s", diff)
	}
	want := lathe.Settings{ToolUseMode: lathe.ModeRelaxed, FailurePolicy: lathe.FailureFatal, MaxParallel: 1, FixEmptyFinalText: lathe.DefaultFixEmptyFinalText, MaxAnswerRepairs: 1,
		Executor: lathe.ExecutorReal, OnParseError: lathe.ParseErrorTell, CallsInOpenThought: "run", OnLimit: lathe.OnLimitFinish, OversizeOutput: lathe.OversizeError,
		Repair: lathe.RepairSafe, ResultFormat: lathe.ResultPlain}
	if diff := cmp.Diff(want, c.Settings()); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if p := c.Policy; p.ReadOnly != lathe.Allow || p.Idempotent != lathe.Ask || p.Writes != lathe.Ask {
		t.Errorf("policy: got %+v", p)
	}
	if c.Approval.WaitingText != approval.DefaultSentence {
		t.Errorf("approval.waiting_text: got %q, want %q", c.Approval.WaitingText, approval.DefaultSentence)
	}
	c.ToolCalling.Enabled = false
	if got := c.Settings().ToolUseMode; got != lathe.ModeDisabled {
		t.Errorf("tool_calling.enabled false: got mode %s, want disabled", got)
	}
	m := newModel("m", "openai")
	if m.ReadTimeout != m.ClientTimeout || m.Label != "" || m.Model != "m" || m.MaxLineBytes != 1<<20 || m.MaxEventBytes != 8<<20 {
		t.Errorf("model: got %+v", m)
	}
}

// The names that the contract fixes.
func TestKeysOfTheContract(t *testing.T) {
	t.Parallel()
	want := strings.Fields(`enabled max_depth allow_deprecated_syntax show_unreadable_calls retention.mode retention.store_raw_tool_output retention.max_output_bytes
		tool_use_mode tool_failure_policy parallel_tool_calls max_parallel_tool_calls tool_choice tool_choice_every_turn fix_empty_final
		fix_empty_final_user_text fix_empty_final_disable_tools fallback_retry_count executor on_parse_error on_limit
		max_iterations max_total_tool_calls max_repeated_calls max_unknown_tools max_tool_args_bytes max_payload_bytes max_tool_output_bytes
		max_json_depth max_json_keys max_tools max_tools_bytes tool_timeout run_timeout approval_ttl max_tokens_total max_cost
		oversize_output repair result_format tool_result_compact_envelope strict_unknown_tool`)
	var got []string
	for _, k := range Default().rows() {
		if rest, ok := strings.CutPrefix(k.path, "tool_calling."); ok {
			got = append(got, rest)
		}
		if doc := k.doc(); doc == "" || strings.Contains(doc, "\n") || !strings.HasSuffix(doc, ".") {
			t.Errorf("%s: its comment is not one line that ends with a full stop: %q", k.path, doc)
		}
	}
	for _, key := range want {
		if !slices.Contains(got, key) {
			t.Errorf("there is no key tool_calling.%s", key)
		}
	}
}

func TestVariablesAreUnique(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, k := range Default().rows() {
		name := variable(k.path)
		if seen[name] != "" {
			t.Errorf("%s sets %s and %s", name, seen[name], k.path)
		}
		seen[name] = k.path
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	c := Default()
	entry(reflect.ValueOf(&c.Models).Elem(), "m")
	byPath := map[string]*row{}
	walk("", c.rows(), func(path string, r *row) { byPath[path] = r })
	tests := []struct{ key, in, want, err string }{
		{"tool_calling.max_iterations", "1", "1", ""},
		{"tool_calling.max_iterations", "0", "", "0 is not from 1 to 1000000"},
		{"tool_calling.max_iterations", "1000000", "1000000", ""},
		{"tool_calling.max_iterations", "1000001", "", "1000001 is not from 1 to 1000000"},
		{"tool_calling.max_iterations", "1.5", "", `"1.5" is not a whole number`},
		{"tool_calling.max_iterations", "99999999999999999999", "", `"99999999999999999999" is not a whole number`},
		{"tool_calling.max_depth", "0", "0", ""},
		{"tool_calling.max_depth", "-1", "", "-1 is not from 0 to 100"},
		{"tool_calling.max_payload_bytes", "64KiB", "64KiB", ""},
		{"tool_calling.max_payload_bytes", "64 KiB", "64KiB", ""},
		{"tool_calling.max_payload_bytes", "65536", "64KiB", ""},
		{"tool_calling.max_payload_bytes", "65537", "65537", ""},
		{"tool_calling.max_payload_bytes", "1GiB", "1GiB", ""},
		{"tool_calling.max_payload_bytes", "2GiB", "", `"2GiB" is not from 1 to 1GiB`},
		{"tool_calling.max_payload_bytes", "9999999999999GiB", "", `"9999999999999GiB" is not a size: write 65536 or 64KiB (B, KiB, MiB, GiB)`},
		{"tool_calling.max_payload_bytes", "64KB", "", `"64KB" is not a size: write 65536 or 64KiB (B, KiB, MiB, GiB)`},
		{"tool_calling.max_payload_bytes", "-1", "", `"-1" is not a size: write 65536 or 64KiB (B, KiB, MiB, GiB)`},
		{"tool_calling.retention.max_output_bytes", "0", "0", ""},
		{"tool_calling.tool_timeout", "1h30m", "1h30m", ""},
		{"tool_calling.tool_timeout", "90m", "1h30m", ""},
		{"tool_calling.tool_timeout", "10m0.5s", "10m0.5s", ""},
		{"tool_calling.tool_timeout", "20m", "20m", ""},
		{"tool_calling.tool_timeout", "10s", "10s", ""},
		{"tool_calling.tool_timeout", "30", "", `"30" has no unit: write 30s`},
		{"tool_calling.tool_timeout", "0", "", `"0" is too short`},
		{"tool_calling.tool_timeout", "soon", "", `"soon" is not a duration: write 300ms, 30s, 15m or 1h30m`},
		{"tool_calling.run_timeout", "none", "none", ""},
		{"tool_calling.run_timeout", "0s", "", `"0s" is too short; none turns it off`},
		{"models.m.client_timeout", "0", "0", ""},
		{"models.m.client_timeout", "2m", "2m", ""},
		{"models.m.client_timeout", "-2m", "", `"-2m" is too short; 0 turns it off`},
		{"tool_calling.max_tokens_total", "none", "none", ""},
		{"tool_calling.max_tokens_total", "0", "", fmt.Sprintf("0 is not from 1 to %d", int64(math.MaxInt64)-1)},
		{"tool_calling.max_cost", "1e-3", "0.001", ""},
		{"tool_calling.max_cost", "0", "", `"0" is not an amount above 0`},
		{"tool_calling.max_cost", "NaN", "", `"NaN" is not an amount above 0`},
		{"tool_calling.max_cost", "Inf", "", `"Inf" is not an amount above 0`},
		{"tool_calling.tool_choice", "auto", "auto", ""},
		{"tool_calling.tool_choice", "required", "required", ""},
		{"tool_calling.tool_choice", "function:clock", "function:clock", ""},
		{"tool_calling.tool_choice", "function:NAME", "function:NAME", ""},
		{"tool_calling.tool_choice", "function:", "", "a tool name has 1 to 64 letters, digits, _ and -"},
		{"tool_calling.tool_choice", "any", "", `"any" is called "required" here (auto, none, required, function:NAME)`},
		{"tool_calling.parallel_tool_calls", "true", "true", ""},
		{"tool_calling.parallel_tool_calls", "unset", "unset", ""},
		{"tool_calling.parallel_tool_calls", "off", "", `"off" is called "false" here (unset, true, false)`},
		{"tool_calling.fix_empty_final", "no", "", `"no" is called "false" here (true, false)`},
		{"tool_calling.fix_empty_final", "True", "", `unknown value "True", did you mean "true"? (true, false)`},
		{"tools.builtin", "clock, echo", "clock,echo", ""},
		{"tools.builtin", "", "", ""},
		{"tools.builtin", "clock,clock", "", `"clock" stands twice`},
		{"tools.builtin", "two words", "", "a tool name has 1 to 64 letters, digits, _ and -"},
		{"models.m.dialect", "two words", "", `"two words" is more than one word`},
		{"models.m.label", "Open AI", "", `"Open AI" is not a label: lower-case letters, digits, _ . and -, at most 64`},
	}
	for _, tt := range tests {
		k := byPath[tt.key]
		err := k.kind.set(k.v, tt.in)
		if (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
			t.Errorf("%s: %q: got %v, want %s", tt.key, tt.in, err, tt.err)
		}
		if got := textOf(k.kind, k.v); err == nil && got != tt.want {
			t.Errorf("%s: %q reads back as %q, want %q", tt.key, tt.in, got, tt.want)
		}
	}
}
