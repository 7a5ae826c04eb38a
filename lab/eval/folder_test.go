package eval_test

import (
	"context"
	"encoding/json"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/lab/eval"
)

// counted counts the requests of a model.
type counted struct {
	lathe.Model
	n atomic.Int64
}

func (c *counted) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	c.n.Add(1)
	return c.Model.Generate(ctx, req)
}

func TestFinishedRunsAreNotMadeAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, sc := scenarios(t, "happy_path", "chat_only")
	m := &counted{Model: target("sim/eval").Model}
	measure := func(o *eval.Options) (reused int) {
		t.Helper()
		o.Dir, o.Resume = dir, true
		o.Progress = func(p eval.Progress) {
			if p.Reused {
				reused++
			}
		}
		rep, err := eval.Measure(t.Context(), s, sc, []eval.Target{{Name: "a/b:c", Model: m}}, o)
		if err != nil || rep.Status() != eval.Passed {
			t.Fatalf("%v, passed %v", err, rep.Status() == eval.Passed)
		}
		return reused
	}
	if n := measure(&eval.Options{}); n != 0 || m.n.Load() != 4 {
		t.Fatalf("%d reused, %d requests, want 0 and 4", n, m.n.Load())
	}
	path := filepath.Join(dir, "a__b__c__happy_path__trial_01.json")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields("model scenario trial ok elapsed_ms mode config text draft history trace checks fingerprint") {
		if fields[name] == nil {
			t.Errorf("the file of a run has no %s", name)
		}
	}
	if n := measure(&eval.Options{Trials: 2}); n != 2 || m.n.Load() != 8 {
		t.Fatalf("%d reused, %d requests, want 2 and 8", n, m.n.Load())
	}
	// Other settings would take the place of results: nothing is overwritten, and nothing is asked.
	_, err = eval.Measure(t.Context(), s, sc, []eval.Target{{Name: "a/b:c", Model: m}}, &eval.Options{Dir: dir, Resume: true, Settings: []eval.Setting{{Key: "max_iterations", Value: "7"}}})
	if now, rerr := os.ReadFile(path); err == nil || m.n.Load() != 8 || rerr != nil || string(now) != string(raw) {
		t.Fatalf("other settings: %v, %d requests, want an error and 8", err, m.n.Load())
	}
	if err := os.WriteFile(path, raw[:len(raw)/2], 0o644); err != nil { // a file that was cut
		t.Fatal(err)
	}
	if n := measure(&eval.Options{Trials: 2}); n != 3 || m.n.Load() != 11 {
		t.Fatalf("a cut file: %d reused, %d requests, want 3 and 11", n, m.n.Load())
	}
	rep, err := eval.Load(dir)
	if err != nil || len(rep.Runs) != 4 {
		t.Fatalf("%v, %v", rep, err)
	}
	if _, err := eval.Load(t.TempDir()); err == nil {
		t.Error("an empty folder is a report")
	}
}

// What failed stays a failure, however often its folder is named; only what reached no server is made again.
func TestResultsAreNotMadeAgain(t *testing.T) {
	t.Parallel()
	s, sc := scenarios(t, "happy_path")
	for name, requests := range map[string]int64{"sim/fault-status-500-always": 1, "sim/fault-status-429-always": 1, "sim/eval-never-calls": 1} {
		dir := t.TempDir()
		m := &counted{Model: target(name).Model}
		for range 3 {
			rep, err := eval.Measure(t.Context(), s, sc, []eval.Target{{Name: "m", Model: m}}, &eval.Options{Dir: dir, Resume: true})
			if err != nil || rep.Unscored() != 0 || rep.Runs[0].OK {
				t.Fatalf("%s: %v, %+v", name, err, rep.Runs)
			}
		}
		if m.n.Load() != requests {
			t.Errorf("%s: %d requests in three calls, want %d", name, m.n.Load(), requests)
		}
	}
	dir := t.TempDir()
	unreached := &counted{Model: unreachable{}}
	for i := range 2 {
		rep, err := eval.Measure(t.Context(), s, sc, []eval.Target{{Name: "m", Model: unreached}}, &eval.Options{Dir: dir, Resume: true})
		if err != nil || rep.Unscored() != 1 || rep.Runs[0].Attempts != i+1 || rep.Summary().Models[0].Repeated != i {
			t.Fatalf("%v, %d without a score, %d attempts", err, rep.Unscored(), rep.Runs[0].Attempts)
		}
	}
	if unreached.n.Load() != 2 {
		t.Errorf("%d requests where no server is reached, want 2", unreached.n.Load())
	}
}

// unreachable is a model whose server cannot be connected to.
type unreachable struct{}

func (unreachable) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (unreachable) Generate(context.Context, *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		yield(lathe.Delta{}, &lathe.Error{Code: lathe.CodeUpstream, Op: "test", Err: &lathe.UpstreamError{Kind: lathe.UpstreamAborted, Connect: true}})
	}
}

func TestModelsWithTheSameFileNameAreRefused(t *testing.T) {
	t.Parallel()
	s, sc := scenarios(t, "happy_path")
	_, err := eval.Measure(t.Context(), s, sc, []eval.Target{{Name: "a/b"}, {Name: "a:b"}}, nil)
	if err == nil || !strings.Contains(err.Error(), "too much alike") {
		t.Errorf("got %v", err)
	}
}

func TestCancelledEvaluationKeepsNoHalfRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, sc := scenarios(t, "happy_path")
	ctx, cancel := context.WithCancel(t.Context())
	m := &leaver{Model: target("sim/eval-hangs").Model, leave: cancel}
	rep, err := eval.Measure(ctx, s, sc, []eval.Target{{Name: "m", Model: m}}, &eval.Options{Dir: dir})
	if err == nil || len(rep.Runs) != 0 {
		t.Fatalf("%v, %d runs", err, len(rep.Runs))
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("%v", entries)
	}
}

// A leaver calls leave when it is asked.
type leaver struct {
	lathe.Model
	leave func()
}

func (l *leaver) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	l.leave()
	return l.Model.Generate(ctx, req)
}

func TestReplayAsksNoModel(t *testing.T) {
	t.Parallel()
	tapes := t.TempDir()
	s := eval.Builtin()
	all, err := s.Select("all")
	if err != nil {
		t.Fatal(err)
	}
	targets := []eval.Target{target("sim/eval"), target("sim/eval-never-repairs"), target("sim/fault-status-404-tools")}
	first, err := eval.Measure(t.Context(), s, all, targets, &eval.Options{Record: tapes})
	if err != nil {
		t.Fatal(err)
	}
	var asked []eval.Target
	for _, tg := range targets {
		asked = append(asked, eval.Target{Name: tg.Name, Model: forbidden{t}})
	}
	second, err := eval.Measure(t.Context(), s, all, asked, &eval.Options{Replay: tapes})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range first.Runs {
		got := second.Runs[i]
		if got.OK != r.OK || got.Class != r.Class || got.Error != r.Error || got.Text != r.Text || len(got.History) != len(r.History) {
			t.Errorf("%s %s: recorded %s %q, replayed %s %q", r.Model, r.Scenario, r.Class, r.Error, got.Class, got.Error)
		}
	}

	// What was not recorded is an error and no score.
	miss, err := eval.Measure(t.Context(), s, all[:1], asked[:1], &eval.Options{Replay: tapes, Trials: 2, Settings: []eval.Setting{{Key: "parallel_tool_calls", Value: "unset"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range miss.Runs {
		if r.Class != eval.ClassReplay || r.Scored {
			t.Errorf("trial %d: %s: %s", r.Trial, r.Class, r.Error)
		}
	}
}

// Tools that stay away leave what they had left when they were recorded: of every kind of answer.
func TestReplayLeavesToolsAlone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		suite  *eval.Suite
		models []string
	}{
		{eval.Builtin(), []string{"sim/eval", "sim/eval-never-repairs", "sim/eval-wrong-value"}},
		{eval.Faults(), []string{"sim/obedient"}},
		{eval.Injection(), []string{"sim/obedient"}},
	} {
		t.Run(c.suite.Name, func(t *testing.T) {
			t.Parallel()
			tapes := t.TempDir()
			var live, gone []eval.Target
			for _, m := range c.models {
				live = append(live, target(m))
				gone = append(gone, eval.Target{Name: m, Model: forbidden{t}})
			}
			first, err := eval.Measure(t.Context(), c.suite, c.suite.Scenarios, live, &eval.Options{Record: tapes})
			if err != nil {
				t.Fatal(err)
			}
			second, err := eval.Measure(t.Context(), c.suite, c.suite.Scenarios, gone, &eval.Options{Replay: tapes, ReplayTools: true})
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range first.Runs {
				got := second.Runs[i]
				if diff := cmp.Diff(plain(r), plain(got)); diff != "" {
					t.Errorf("%s %s, recorded and replayed:\n%s", r.Model, r.Scenario, diff)
				}
			}
		})
	}
}

// plain is a run without what differs from try to try.
func plain(r *eval.Run) eval.Run {
	c := *r
	c.Started, c.ElapsedMS, c.Trace = time.Time{}, 0, nil
	c.Calls = slices.Clone(c.Calls)
	for i := range c.Calls {
		c.Calls[i].MS, c.Calls[i].TTFTMS = 0, nil
	}
	return c
}

// A call that the recording does not hold is no score, even where the model would not notice.
func TestReplayMissesCalls(t *testing.T) {
	t.Parallel()
	s, sc := scenarios(t, "happy_path")
	for name, spoil := range map[string]func(string) string{
		"no calls": func(s string) string { return s[:strings.Index(s, `"tools"`)] + `"tools": []}` },
		"other arguments": func(s string) string {
			model, tools, _ := strings.Cut(s, `"tools"`)
			return model + `"tools"` + strings.Replace(tools, `"arguments": "{`, `"arguments": "{ `, 1)
		},
		"another tool": func(s string) string { return strings.ReplaceAll(s, `"tool": "state_patch"`, `"tool": "state_punch"`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tapes := t.TempDir()
			if _, err := eval.Measure(t.Context(), s, sc, []eval.Target{target("sim/eval")}, &eval.Options{Record: tapes}); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(tapes, "sim__eval__happy_path__trial_01.exchanges.json")
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			spoilt := spoil(string(raw))
			if spoilt == string(raw) {
				t.Fatalf("nothing was spoilt in %s", raw)
			}
			if err := os.WriteFile(path, []byte(spoilt), 0o600); err != nil {
				t.Fatal(err)
			}
			rep, err := eval.Measure(t.Context(), s, sc, []eval.Target{{Name: "sim/eval", Model: forbidden{t}}}, &eval.Options{Replay: tapes, ReplayTools: true})
			if err != nil {
				t.Fatal(err)
			}
			if r := rep.Runs[0]; r.Class != eval.ClassReplay || r.Scored || !strings.Contains(r.Error, "this call of state_") {
				t.Errorf("%s, scored %v: %s", r.Class, r.Scored, r.Error)
			}
		})
	}
	if _, err := eval.Measure(t.Context(), s, sc, []eval.Target{target("sim/eval")}, &eval.Options{ReplayTools: true}); err == nil {
		t.Error("tools were replayed from nothing")
	}
}

// A forbidden model fails the test that asks it.
type forbidden struct{ t *testing.T }

func (forbidden) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (f forbidden) Generate(context.Context, *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(func(lathe.Delta, error) bool) { f.t.Error("the model was asked") }
}
