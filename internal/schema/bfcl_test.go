package schema

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/testdata"
)

// bfclCall is one call of the Berkeley Function Calling Leaderboard and what is wrong with it.
type bfclCall struct {
	Schema    string          `json:"schema"`
	Mutation  string          `json:"mutation"`
	Arguments json.RawMessage `json:"arguments"`
	Valid     bool            `json:"valid"`
	Errors    []struct {
		Keyword string `json:"keyword"`
		Path    string `json:"path"`
	} `json:"errors"`
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

// bfcl returns the calls and the compiled schemas they name.
func bfcl(t testing.TB) ([]bfclCall, map[string]*Schema) {
	t.Helper()
	type named struct {
		Schema     string          `json:"schema"`
		Parameters json.RawMessage `json:"parameters"`
	}
	schemas := map[string]*Schema{}
	for _, n := range jsonLines[named](t, testdata.Dir(t, "bfcl", "arg_validation.schemas.jsonl")) {
		s, err := Compile(n.Parameters)
		if err != nil {
			t.Fatalf("%s: %v", n.Schema, err)
		}
		schemas[n.Schema] = s
	}
	return jsonLines[bfclCall](t, testdata.Dir(t, "bfcl", "arg_validation.jsonl")), schemas
}

func TestBFCL(t *testing.T) {
	t.Parallel()
	calls, schemas := bfcl(t)
	checked := 0
	for _, c := range calls {
		checked++
		vs := schemas[c.Schema].Validate(c.Arguments)
		if (vs == nil) != c.Valid {
			t.Errorf("%s %s: got %v, want valid %v", c.Schema, c.Mutation, vs, c.Valid)
			continue
		}
		var got, want []string
		for _, v := range vs {
			got = append(got, v.Pointer+" "+v.Keyword)
		}
		for _, e := range c.Errors {
			want = append(want, e.Path+" "+e.Keyword)
		}
		slices.Sort(got)
		slices.Sort(want)
		if g, w := strings.Join(slices.Compact(got), ", "), strings.Join(slices.Compact(want), ", "); g != w {
			t.Errorf("%s %s %s: got %s, want %s", c.Schema, c.Mutation, c.Arguments, g, w)
		}
	}
	if checked < 1500 {
		t.Errorf("checked %d calls, want the whole file", checked)
	}
}
