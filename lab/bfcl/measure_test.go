package bfcl_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/lab/bfcl"
	"github.com/lathe-run/lathe/lab/eval"
)

func TestSelect(t *testing.T) {
	t.Parallel()
	fsys := fstest.MapFS{}
	for _, c := range []string{"simple_python", "simple_java", "multiple", "live_simple", "live_irrelevance", "irrelevance", "multi_turn_base"} {
		fsys["BFCL_v4_"+c+".json"] = &fstest.MapFile{}
	}
	for _, test := range []struct{ words, want string }{
		{"", "irrelevance live_irrelevance live_simple multiple simple_java simple_python"},
		{"simple", "simple_java simple_python"},
		{"simple_java", "simple_java"},
		{"live_* multiple", "live_irrelevance live_simple multiple"},
		{"multi_turn_base multi_turn_base", "multi_turn_base"},
		{"multiple parallel", "no such category"},
		{"[", "syntax error in pattern"},
	} {
		got, err := bfcl.Select(fsys, strings.Fields(test.words)...)
		text := strings.Join(got, " ")
		if err != nil {
			text = err.Error()
		}
		if err == nil && text != test.want || err != nil && !strings.Contains(text, test.want) {
			t.Errorf("%q: got %s, want %s", test.words, text, test.want)
		}
	}
}

// scripted is a model that says one message.
type scripted []lathe.Part

func (scripted) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (s scripted) Generate(_ context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		f := &lathe.Finish{Message: lathe.Message{Role: lathe.RoleAssistant, Parts: s}, Reason: lathe.FinishStop}
		for _, p := range s {
			if _, ok := p.(lathe.ToolCall); ok {
				f.Reason = lathe.FinishToolCalls
			}
		}
		yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: f}, nil)
	}
}

// run measures one case with one message.
func run(t *testing.T, category string, message ...lathe.Part) *eval.Run {
	t.Helper()
	m, err := bfcl.Measure(small, []string{category}, 0)
	if err != nil {
		t.Fatal(err)
	}
	rep, err := eval.Measure(t.Context(), m.Suite, m.Suite.Scenarios, []eval.Target{{Name: "m", Model: scripted(message)}}, nil)
	if err != nil || len(rep.Runs) != 1 {
		t.Fatalf("%v, want one run", err)
	}
	return rep.Runs[0]
}

func TestMeasureJudgesTheFirstMessage(t *testing.T) {
	t.Parallel()
	call := func(name, args string) lathe.Part { return lathe.ToolCall{ID: "c", Name: name, Arguments: args} }
	for _, test := range []struct {
		name, category string
		message        []lathe.Part
		class          eval.Class
		got            string
	}{
		{"right", "live_simple", []lathe.Part{call("mail_send", `{"to":"Ann"}`)}, "", ""},
		{"wrong", "live_simple", []lathe.Part{call("mail_send", `{"to":"Bob"}`)}, eval.ClassAssertionFailed, "value_error:string"},
		{"not JSON", "live_simple", []lathe.Part{call("mail_send", `{"to":`)}, eval.ClassAssertionFailed, "ast_decoder:decoder_failed"},
		{"an unknown function", "live_simple", []lathe.Part{call("x", `{}`)}, eval.ClassAssertionFailed, "simple_function_checker:wrong_func_name"},
		{"two calls", "live_simple", []lathe.Part{call("mail_send", `{"to":"Ann"}`), lathe.ToolCall{ID: "d", Name: "mail_send", Arguments: `{"to":"Ann"}`}},
			eval.ClassAssertionFailed, "simple_function_checker:wrong_count"},
		{"no call", "live_simple", []lathe.Part{lathe.Text{Text: "No."}}, eval.ClassNoToolCalls, "simple_function_checker:wrong_count"},
		{"none is right", "irrelevance", []lathe.Part{lathe.Text{Text: "No."}}, "", ""},
		{"nothing at all is right", "irrelevance", nil, "", ""},
		{"one where none is right", "irrelevance", []lathe.Part{call("x", "{}")}, eval.ClassAssertionFailed, "irrelevance_error:decoder_success"},
		{"any is right", "live_relevance", []lathe.Part{call("x", "{}")}, "", ""},
		{"none where any is right", "live_relevance", []lathe.Part{lathe.Text{Text: "No."}}, eval.ClassNoToolCalls, "relevance_error:decoder_failed"},
		{"of several turns, well formed", "multi_turn_base", []lathe.Part{call("add", `{"n":1}`)}, "", ""},
		{"of several turns, a wrong type", "multi_turn_base", []lathe.Part{call("add", `{"n":"1"}`)}, eval.ClassAssertionFailed, "call 1 of add breaks type"},
		{"of several turns, an unknown function", "multi_turn_base", []lathe.Part{call("mul", `{}`)}, eval.ClassAssertionFailed, "call 1 is of a function that is not known"},
		{"of several turns, without arguments", "multi_turn_base", []lathe.Part{call("sub", "")}, "", ""},
		{"of several turns, none", "multi_turn_base", []lathe.Part{lathe.Text{Text: "No."}}, eval.ClassNoToolCalls, "no call"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := run(t, test.category, test.message...)
			if !r.Scored || r.OK != (test.class == "") || r.Class != test.class || len(r.Checks) != 1 || r.Checks[0].Got != test.got {
				t.Errorf("got %t %q %+v, %s; want %q, %q", r.OK, r.Class, r.Checks, r.Error, test.class, test.got)
			}
			if r.Category != test.category {
				t.Errorf("category %q, want %q", r.Category, test.category)
			}
		})
	}
}

func TestMeasureLeavesOutWhatHasNoAnswer(t *testing.T) {
	t.Parallel()
	m, err := bfcl.Measure(small, []string{"live_simple", "simple_java"}, 1)
	if err != nil || m.LeftOut != 1 || len(m.Suite.Scenarios) != 1 {
		t.Fatalf("%v: got %+v, want one case in and one out", err, m)
	}
	twice := fstest.MapFS{
		"BFCL_v4_irrelevance.json":      {Data: []byte(`{"id":"x","question":[[{"role":"user","content":"Do."}]]}`)},
		"BFCL_v4_live_irrelevance.json": {Data: []byte(`{"id":"x","question":[[{"role":"user","content":"Do."}]]}`)},
	}
	if _, err := bfcl.Measure(twice, []string{"irrelevance", "live_irrelevance"}, 0); err == nil || !strings.Contains(err.Error(), "stands twice") {
		t.Errorf("got %v, want an error for an id of two cases", err)
	}
}

func TestRecordedReportsWhatIsWrong(t *testing.T) {
	t.Parallel()
	m, err := bfcl.Measure(small, []string{"live_simple"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ text, want string }{
		{"{", "line 1"}, {"\n7", "line 2: want one JSON object"}, {`{"id":"x"}`, "no list of calls"},
		{`{"id":"x","model_output":[7]}`, "no list of calls"}, {`{"id":"x","model_output":[{}]}`, "no list of calls"},
		{`{"id":"x","model_output":[{"f":[]}]}`, "no list of calls"}, {`{"id":"x","model_output":[{"f":{},"g":{}}]}`, "no list of calls"},
		{`{"id":"x","model_output":[]}` + "\n" + `{"id":"x","model_output":[]}`, "line 2: the id \"x\" stands twice"},
		{strings.Repeat("x", bfcl.MaxLineBytes+1), "too long"},
	} {
		if _, err := m.Recorded(strings.NewReader(test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.60q: got %v, want %q", test.text, err, test.want)
		}
	}
	model, err := m.Recorded(strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range model(m.Suite.Scenarios[0]).Generate(t.Context(), &lathe.Request{}) {
		if !errors.Is(err, eval.ErrReplay) {
			t.Errorf("got %v, want ErrReplay", err)
		}
	}
	rep, err := eval.Measure(t.Context(), m.Suite, m.Suite.Scenarios, []eval.Target{{Name: "m", ModelFor: model}}, nil)
	if err != nil || rep.Unscored() != 1 || rep.Runs[0].Class != eval.ClassReplay {
		t.Errorf("%v: got %+v, want one run without a score", err, rep.Runs)
	}
}

// FuzzRecorded: whatever passes as outputs can be played.
func FuzzRecorded(f *testing.F) {
	f.Add(`{"id":"live_simple_0-0-0","model_output":[{"mail.send":{"to":"Ann"}}]}`)
	f.Add(`{"id":"live_simple_0-0-0","model_output":[ ]}`)
	m, err := bfcl.Measure(small, []string{"live_simple"}, 0)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		model, err := m.Recorded(strings.NewReader(text))
		if err != nil {
			return
		}
		n := 0
		for d, err := range model(m.Suite.Scenarios[0]).Generate(t.Context(), &lathe.Request{}) {
			if n++; err != nil && !errors.Is(err, eval.ErrReplay) || err == nil && d.Finish == nil {
				t.Errorf("got %v, %v", d, err)
			}
		}
		if n != 1 {
			t.Errorf("yielded %d times, want once", n)
		}
	})
}

func ExampleMeasure() {
	m, err := bfcl.Measure(small, []string{"live_simple"}, 0)
	if err != nil {
		panic(err)
	}
	model, err := m.Recorded(strings.NewReader(`{"id":"live_simple_0-0-0","model_output":[{"mail.send":{"to":"ann"}}]}`))
	if err != nil {
		panic(err)
	}
	rep, err := eval.Measure(context.Background(), m.Suite, m.Suite.Scenarios, []eval.Target{{Name: "recorded", ModelFor: model}}, nil)
	fmt.Println(err, rep.Summary().All.OK, "of", rep.Summary().All.Runs)
	// Output: <nil> 1 of 1
}

// The runs of the harness come to the leaderboard's own verdicts.
func TestRunsAgreeWithLeaderboard(t *testing.T) {
	t.Parallel()
	testdata.NeedLong(t)
	fsys := data(t)
	categories, err := bfcl.Select(fsys)
	if err != nil {
		t.Fatal(err)
	}
	m, err := bfcl.Measure(fsys, categories, 0)
	if err != nil {
		t.Fatal(err)
	}
	byMutation := map[string][]recorded{}
	n := 0
	for _, l := range jsonLines[recorded](t, filepath.Join(dataDir(t), "ast_verdicts.jsonl")) {
		byMutation[l.Mutation] = append(byMutation[l.Mutation], l)
	}
	for mutation, lines := range byMutation {
		var text strings.Builder
		var ids []string
		want := map[string]recorded{}
		for _, l := range lines {
			raw, err := json.Marshal(l)
			if err != nil {
				t.Fatal(err)
			}
			text.Write(append(raw, '\n'))
			ids = append(ids, l.ID)
			want[l.ID] = l
		}
		for _, r := range measured(t, m, text.String(), ids) {
			l := want[r.Scenario]
			got := r.Checks[0].Got
			if r.OK != l.Valid || got != l.ErrorType {
				t.Errorf("%s %s: got %t %s, want %t %s", r.Scenario, mutation, r.OK, got, l.Valid, l.ErrorType)
			}
			n++
		}
	}
	t.Logf("%d runs agree", n)
	if n < 3000 {
		t.Errorf("%d runs, want one for each line of the file", n)
	}
}

func measured(t *testing.T, m *bfcl.Measured, outputs string, ids []string) []*eval.Run {
	t.Helper()
	model, err := m.Recorded(strings.NewReader(outputs))
	if err != nil {
		t.Fatal(err)
	}
	scenarios := slices.DeleteFunc(slices.Clone(m.Suite.Scenarios), func(sc *eval.Scenario) bool { return !slices.Contains(ids, sc.ID) })
	rep, err := eval.Measure(t.Context(), m.Suite, scenarios, []eval.Target{{Name: "recorded", ModelFor: model}}, nil)
	if err != nil || rep.Unscored() > 0 {
		t.Fatalf("%v, %d without a score", err, rep.Unscored())
	}
	return rep.Runs
}

// Right answers to the questions come to 100 %, and wrong ones to 0 %, in every category but the two
// whose arguments are expressions of another language.
func TestRunsOfAnswers(t *testing.T) {
	t.Parallel()
	testdata.NeedLong(t)
	fsys := data(t)
	categories, err := bfcl.Select(fsys)
	if err != nil {
		t.Fatal(err)
	}
	categories = slices.DeleteFunc(categories, func(c string) bool { return strings.Contains(c, "java") })
	// Of two questions the answer allows no value for a parameter that is required: no call is right.
	none := []string{"live_simple_106-63-0", "live_simple_112-68-0"}
	m, err := bfcl.Measure(fsys, categories, 0)
	if err != nil {
		t.Fatal(err)
	}
	type answer struct {
		ID    string                                  `json:"id"`
		Truth []map[string]map[string]json.RawMessage `json:"ground_truth"`
	}
	answers := map[string][]map[string]map[string]json.RawMessage{}
	for _, c := range categories {
		files, err := filepath.Glob(filepath.Join(dataDir(t), "possible_answer", "BFCL_v4_"+c+".*json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range append(files, existing(filepath.Join(dataDir(t), "possible_answer", "BFCL_v4_"+c+".json"))...) {
			for _, a := range jsonLines[answer](t, f) {
				answers[a.ID] = a.Truth
			}
		}
	}
	var right, wrong strings.Builder
	var ids []string
	for _, sc := range m.Suite.Scenarios {
		ids = append(ids, sc.ID)
		some := `[{"some_function":{}}]`
		good, bad := "[]", some
		switch {
		case sc.Category == "live_relevance":
			good, bad = some, "[]"
		case !strings.Contains(sc.Category, "irrelevance"):
			good, bad = output(t, sc, answers[sc.ID], false), output(t, sc, answers[sc.ID], true)
		}
		fmt.Fprintf(&right, `{"id":%q,"model_output":%s}`+"\n", sc.ID, good)
		fmt.Fprintf(&wrong, `{"id":%q,"model_output":%s}`+"\n", sc.ID, bad)
	}
	want, got := map[string]string{}, map[string]string{}
	for _, half := range []struct {
		name, outputs string
		ok            bool
	}{{"right", right.String(), true}, {"wrong", wrong.String(), false}} {
		rep := eval.Report{Runs: measured(t, m, half.outputs, ids)}
		for _, row := range rep.Summary().Categories {
			key := row.Category + " " + half.name
			got[key] = fmt.Sprintf("%d of %d", row.OK, row.Runs)
			all := 0
			if half.ok {
				all = row.Runs
				if row.Category == "live_simple" {
					all -= len(none)
				}
			}
			want[key] = fmt.Sprintf("%d of %d", all, row.Runs)
		}
		for _, r := range rep.Runs {
			if r.OK != (half.ok && !slices.Contains(none, r.Scenario)) {
				t.Errorf("%s %s: %s", r.Scenario, half.name, r.Error)
			}
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	t.Logf("%d questions, right and wrong", len(ids))
}

func existing(path string) []string {
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	return []string{path}
}

// output writes an answer as calls: of each parameter the first value that may stand. A wrong one has
// a parameter more in its first call.
func output(t *testing.T, sc *eval.Scenario, truth []map[string]map[string]json.RawMessage, wrong bool) string {
	t.Helper()
	var calls []map[string]map[string]any
	for i, call := range truth {
		for name, params := range call {
			args := map[string]any{}
			if wrong && i == 0 {
				args["no_such_parameter"] = 1
			}
			for p, values := range params {
				var some []any
				dec := json.NewDecoder(bytes.NewReader(values))
				dec.UseNumber() // 1.0 is another value than 1
				if err := dec.Decode(&some); err != nil {
					t.Fatal(err)
				}
				if v, ok := first(some, required(t, sc, name)[p]); ok {
					args[p] = v
				}
			}
			calls = append(calls, map[string]map[string]any{name: args})
		}
	}
	raw, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// required returns the parameters that a function requires.
func required(t *testing.T, sc *eval.Scenario, function string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, tool := range sc.Ask.Tools {
		var schema struct {
			Required []string `json:"required"`
		}
		if tool.Name != strings.ReplaceAll(function, ".", "_") {
			continue
		}
		if err := json.Unmarshal(tool.Schema, &schema); err != nil {
			t.Fatal(err)
		}
		for _, p := range schema.Required {
			out[p] = true
		}
	}
	return out
}

// first returns the first of the values that may stand. A blank text among them says that the
// parameter may be left out, which is done unless the function requires it.
func first(values []any, required bool) (any, bool) {
	if !required && slices.ContainsFunc(values, func(v any) bool { return v == "" }) {
		return nil, false
	}
	for _, v := range values {
		if v != "" || len(values) == 1 {
			return plain(v), true
		}
	}
	return nil, false
}

// plain turns a dict of lists of values into one of values.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, item := range v {
			values, ok := item.([]any)
			if !ok { // an answer that stands for itself
				out[k] = item
			} else if one, ok := first(values, false); ok {
				out[k] = one
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = plain(v[i])
		}
		return out
	default:
		return v
	}
}
