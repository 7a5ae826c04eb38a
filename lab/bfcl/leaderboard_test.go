package bfcl_test

import (
	"bufio"
	"encoding/json"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/schema"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/lab/bfcl"
)

func dataDir(t testing.TB) string {
	t.Helper()
	return testdata.Dir(t, "bfcl")
}

func data(t testing.TB) fs.FS {
	t.Helper()
	return os.DirFS(dataDir(t))
}

// jsonLines reads one value a line.
func jsonLines[T any](t testing.TB, file string) []T {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []T
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var v T
		if err := json.Unmarshal(sc.Bytes(), &v); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out = append(out, v)
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

type recorded struct {
	Category    string          `json:"category"`
	ID          string          `json:"id"`
	Mutation    string          `json:"mutation"`
	ModelOutput json.RawMessage `json:"model_output"`
	Valid       bool            `json:"valid"`
	ErrorType   string          `json:"error_type"`
}

// The leaderboard's own checker judged each of these outputs.
func TestScorerAgreesWithLeaderboard(t *testing.T) {
	t.Parallel()
	lines := jsonLines[recorded](t, testdata.Dir(t, "bfcl", "ast_verdicts.jsonl"))
	s := bfcl.NewScorer(data(t))
	agreed := 0
	for _, l := range lines {
		got := s.Score(l.Category, l.ID, l.ModelOutput)
		if want := (bfcl.Verdict{Valid: l.Valid, ErrorType: l.ErrorType}); got != want {
			t.Errorf("%s %s: got %+v, want %+v", l.ID, l.Mutation, got, want)
			continue
		}
		agreed++
	}
	t.Logf("agreed on %d of %d", agreed, len(lines))
	if len(lines) < 3000 {
		t.Errorf("there are %d lines, want the whole file", len(lines))
	}
}

func TestSuiteReadsEveryCategory(t *testing.T) {
	t.Parallel()
	want := map[string]int{
		"irrelevance": 240, "live_irrelevance": 250, "live_multiple": 350, "live_parallel": 16,
		"live_parallel_multiple": 24, "live_relevance": 16, "live_simple": 258, "multi_turn_base": 200,
		"multiple": 200, "parallel": 200, "parallel_multiple": 200, "simple_java": 100,
		"simple_javascript": 50, "simple_python": 400,
	}
	fsys := data(t)
	categories, err := bfcl.Categories(fsys)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	unscored := map[string]int{}
	for _, category := range categories {
		for c, err := range bfcl.Suite(fsys, category) {
			if err != nil {
				t.Fatal(err)
			}
			got[category]++
			if c.Unscored != "" {
				unscored[category]++
			}
			checkTools(t, c)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("cases (-want +got):\n%s", d)
	}
	if d := cmp.Diff(map[string]int{"multi_turn_base": 200}, unscored); d != "" {
		t.Errorf("without a verdict (-want +got):\n%s", d)
	}
}

func checkTools(t *testing.T, c *bfcl.Case) {
	t.Helper()
	seen := map[string]bool{}
	for _, spec := range c.Tools {
		if seen[spec.Name] || len(spec.Name) > 64 {
			t.Errorf("%s: tool %q stands twice or is too long", c.ID, spec.Name)
		}
		seen[spec.Name] = true
		if _, err := schema.Compile(spec.Schema); err != nil {
			t.Errorf("%s: %s: %v", c.ID, spec.Name, err)
		}
	}
	if len(c.Tools) == 0 && !strings.Contains(c.Category, "irrelevance") {
		t.Errorf("%s has no tools", c.ID)
	}
}

// What the leaderboard holds for right, called as tools, is right.
func TestAnswersAsCallsAreRight(t *testing.T) {
	t.Parallel()
	lines := jsonLines[recorded](t, testdata.Dir(t, "bfcl", "ast_verdicts.jsonl"))
	cases := map[string]*bfcl.Case{}
	judged := 0
	for _, l := range lines {
		if !l.Valid {
			continue
		}
		if cases[l.ID] == nil {
			for c, err := range bfcl.Suite(data(t), l.Category) {
				if err != nil {
					t.Fatal(err)
				}
				cases[c.ID] = c
			}
		}
		c := cases[l.ID]
		var outputs []map[string]json.RawMessage
		if err := json.Unmarshal(l.ModelOutput, &outputs); err != nil {
			t.Fatal(err)
		}
		var calls []lathe.ToolCall
		for _, o := range outputs {
			for fn, args := range o {
				for _, spec := range c.Tools {
					if c.Function(spec.Name) == fn {
						calls = append(calls, lathe.ToolCall{Name: spec.Name, Arguments: string(args)})
					}
				}
			}
		}
		if got := c.ScoreCalls(calls); !got.Valid {
			t.Errorf("%s %s: got %+v, want valid", l.ID, l.Mutation, got)
		}
		judged++
	}
	if judged < 1000 {
		t.Errorf("judged %d, want the valid ones of the whole file", judged)
	}
}

func TestSchemaIsThatOfTheLeaderboard(t *testing.T) {
	t.Parallel()
	type named struct {
		Schema     string          `json:"schema"`
		Parameters json.RawMessage `json:"parameters"`
	}
	type question struct {
		ID       string `json:"id"`
		Function []struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
		} `json:"function"`
	}
	params := map[string]json.RawMessage{}
	dir := testdata.Dir(t, "bfcl")
	files, err := fs.Glob(os.DirFS(dir), "BFCL_*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		for _, q := range jsonLines[question](t, testdata.Dir(t, "bfcl", f)) {
			for _, fn := range q.Function {
				params[q.ID+"#"+fn.Name] = fn.Parameters
			}
		}
	}
	checked := 0
	for _, n := range jsonLines[named](t, testdata.Dir(t, "bfcl", "arg_validation.schemas.jsonl")) {
		raw, ok := params[n.Schema]
		if !ok {
			t.Errorf("%s is no function of the data", n.Schema)
			continue
		}
		got := bfcl.Schema(raw)
		if d := cmp.Diff(value(t, n.Parameters), value(t, got)); d != "" {
			t.Errorf("%s (-want +got):\n%s", n.Schema, d)
		}
		checked++
	}
	if checked < 200 {
		t.Errorf("checked %d schemas, want the whole file", checked)
	}
}

func value(t *testing.T, raw []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
