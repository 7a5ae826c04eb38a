package search_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/tool/search"
)

// function is a function of the leaderboard. Its parameters are no JSON Schema (their types are those of Python and Java),
// but have the keywords that the index reads.
type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

func (f *function) spec() *lathe.ToolSpec {
	return &lathe.ToolSpec{Name: f.Name, Description: f.Description, Schema: f.Parameters}
}

// question is a question of the leaderboard with the names of the functions that answer it.
type question struct {
	ID       string `json:"id"`
	Question [][]struct {
		Content string `json:"content"`
	} `json:"question"`
	Function []function `json:"function"`
	right    []string
}

func (q *question) text() string {
	var b strings.Builder
	for _, turn := range q.Question {
		for _, m := range turn {
			b.WriteString(m.Content + "\n")
		}
	}
	return b.String()
}

func readLines(t testing.TB, path string, each func(line []byte) error) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		if err := each(sc.Bytes()); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
}

// questions returns the questions of one file of the leaderboard.
func questions(t testing.TB, file string) []*question {
	t.Helper()
	dir := testdata.Dir(t, "bfcl")
	var all []*question
	byID := map[string]*question{}
	readLines(t, filepath.Join(dir, file), func(line []byte) error {
		q := &question{}
		all = append(all, q)
		if err := json.Unmarshal(line, q); err != nil {
			return err
		}
		byID[q.ID] = q
		return nil
	})
	readLines(t, filepath.Join(dir, "possible_answer", file), func(line []byte) error {
		var answer struct {
			ID          string                       `json:"id"`
			GroundTruth []map[string]json.RawMessage `json:"ground_truth"`
		}
		if err := json.Unmarshal(line, &answer); err != nil {
			return err
		}
		q := byID[answer.ID]
		if q == nil {
			return fmt.Errorf("no question has the id %s", answer.ID)
		}
		for _, call := range answer.GroundTruth {
			for name := range call {
				if !slices.Contains(q.right, name) {
					q.right = append(q.right, name)
				}
			}
		}
		return nil
	})
	return all
}

// corpus returns the functions of the leaderboard, one per name, in the order of the files.
func corpus(t testing.TB) []*lathe.ToolSpec {
	t.Helper()
	dir := testdata.Dir(t, "bfcl")
	var specs []*lathe.ToolSpec
	seen := map[string]bool{}
	add := func(f *function) {
		if !seen[f.Name] {
			seen[f.Name] = true
			specs = append(specs, f.spec())
		}
	}
	for _, pattern := range []string{"BFCL_v4_*.json", filepath.Join("multi_turn_func_doc", "*.json")} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			readLines(t, file, func(line []byte) error {
				var l struct {
					function
					Function []function `json:"function"`
				}
				if err := json.Unmarshal(line, &l); err != nil {
					return err
				}
				if l.Name != "" {
					add(&l.function)
				}
				for i := range l.Function {
					add(&l.Function[i])
				}
				return nil
			})
		}
	}
	if len(specs) != 1639 {
		t.Fatalf("the leaderboard has %d functions, want 1639", len(specs))
	}
	return specs
}

// The search finds the tools that questions of the Berkeley leaderboard need among 300 others. The query is the question as
// it stands; a question counts as answered if all its tools are among the first 5 hits. What a model would ask for, and
// whether it then chooses well, is not measured here.
func TestRecallOnBerkeleyLeaderboard(t *testing.T) {
	t.Parallel()
	all := corpus(t)
	for _, set := range []struct {
		file    string
		atLeast float64 // percent, at 5
	}{
		{"BFCL_v4_simple_python.json", 95},
		{"BFCL_v4_multiple.json", 97},
		{"BFCL_v4_live_simple.json", 80},
		{"BFCL_v4_live_multiple.first350.json", 89},
		{"BFCL_v4_parallel_multiple.json", 83},
	} {
		t.Run(set.file, func(t *testing.T) {
			t.Parallel()
			qs := questions(t, set.file)
			var line strings.Builder
			for _, distractors := range recallSizes(all) {
				found := recall(qs, all, distractors)
				fmt.Fprintf(&line, " | %d:", distractors)
				for i, k := range recallAt {
					fmt.Fprintf(&line, " @%d %.1f", k, found[i])
				}
				if at5 := found[1]; distractors == 300 && at5 < set.atLeast {
					t.Errorf("recall at 5 among 300 others is %.1f %%, want at least %.1f %%", at5, set.atLeast)
				}
			}
			t.Logf("%d questions%s", len(qs), &line)
		})
	}
}

var recallAt = []int{1, 5, 10}

// recallSizes are the numbers of distractors: 300, and with $LATHE_RECALL set also 1,000 and all.
func recallSizes(all []*lathe.ToolSpec) []int {
	if os.Getenv("LATHE_RECALL") == "" {
		return []int{300}
	}
	return []int{300, 1000, len(all)}
}

// recall returns the percentage of the questions whose tools are all among the first 1, 5 and 10 hits.
func recall(qs []*question, all []*lathe.ToolSpec, distractors int) [3]float64 {
	var found [3]float64
	for n, q := range qs {
		rng := rand.New(rand.NewPCG(uint64(n), uint64(distractors)))
		var specs []*lathe.ToolSpec
		for i := range q.Function {
			if slices.Contains(q.right, q.Function[i].Name) {
				specs = append(specs, q.Function[i].spec())
			}
		}
		right := len(specs)
		for _, i := range rng.Perm(len(all)) {
			if len(specs) == right+distractors {
				break
			}
			if !slices.Contains(q.right, all[i].Name) {
				specs = append(specs, all[i])
			}
		}
		rng.Shuffle(len(specs), func(i, j int) { specs[i], specs[j] = specs[j], specs[i] })
		hits := search.NewIndex(specs).Search(q.text(), 10)
		for i, k := range recallAt {
			n := 0
			for _, h := range hits[:min(k, len(hits))] {
				if slices.Contains(q.right, specs[h.Position].Name) {
					n++
				}
			}
			if n == right {
				found[i] += 100 / float64(len(qs))
			}
		}
	}
	return found
}
