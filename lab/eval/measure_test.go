package eval_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/lab/eval"
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
		message       string // part of the message
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
		{"no-mistake", "partial_success_failure", eval.ClassNotProvoked, "made none"},
		{"no-mistake", "type_error_recovery", eval.ClassNotProvoked, "made none"},
		{"no-mistake", "long_arguments_guard", eval.ClassNotProvoked, "made none"},
		{"one-at-a-time", "duplicate_tool_calls", eval.ClassAssertionFailed, "one message holds"},
		{"one-at-a-time", "partial_success_failure", eval.ClassAssertionFailed, "one message holds"},
		{"passes-id", "missing_workspace_id", eval.ClassAssertionFailed, "state_get has nothing at /workspace_id"},
		{"insists", "tool_output_truncation", eval.ClassAssertionFailed, "state_get called at most once, got 2 times"},
		{"wrong-text", "chat_only", eval.ClassAssertionFailed, `last words "Done."`},
		{"empty-text", "chat_only", eval.ClassEmptyText, ""},
		{"stalls", "happy_path", eval.ClassTimeout, "--timeout"},
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
			if r.OK || r.Scored != c.class.Scored() || r.Class != c.class || !strings.Contains(r.Error, c.message) {
				t.Errorf("ok %v, scored %v, %s: %s\nwant %s: …%s…", r.OK, r.Scored, r.Class, r.Error, c.class, c.message)
			}
		})
	}
}

// Every way of misbehaving meets every scenario: what must fail does, with its class, and nothing else.
func TestMisbehavioursAtEveryScenario(t *testing.T) {
	t.Parallel()
	classes := map[byte]eval.Class{'.': "", 'A': eval.ClassAssertionFailed, 'N': eval.ClassNoToolCalls, 'E': eval.ClassEmptyText,
		'T': eval.ClassToolError, 'S': eval.ClassTimeout, 'P': eval.ClassNotProvoked}
	want := map[string]string{ // in the order of the suite
		"never-calls": "NNNNNNN.", "wrong-order": "A.AA.AA.", "wrong-value": "AAAAAAA.", "wrong-text": "AAAAAAAA",
		"empty-text": "EEEEEEEE", "hidden-tool": "AAAAAAA.", "never-repairs": ".T.T.T..", "no-mistake": ".P.P.P..",
		"one-at-a-time": ".A..A...", "passes-id": "..A.....", "insists": "......A.", "stalls": "SSSSSSS.", "hangs": "SSSSSSSS",
	}
	s := eval.Builtin()
	for i, sc := range s.Scenarios {
		if !slices.ContainsFunc(slices.Collect(maps.Values(want)), func(row string) bool { return row[i] != '.' }) {
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
				if row[i] == 'S' {
					opts.Timeout = 300 * time.Millisecond
				}
				rep, err := eval.Measure(t.Context(), s, []*eval.Scenario{sc}, []eval.Target{target("sim/eval-" + m.Name)}, opts)
				if err != nil {
					t.Fatal(err)
				}
				r := rep.Runs[0]
				if r.Class != classes[row[i]] || r.Scored != r.Class.Scored() || (r.Class == "") != r.OK {
					t.Errorf("class %q, scored %v: %s\nwant %q", r.Class, r.Scored, r.Error, classes[row[i]])
				}
			})
		}
	}
}

// A run that reached no server has no score. Once a server was reached, whatever it does counts; what it refuses is
// listed apart, and after a few such runs nothing more is asked of it where the next one would end the same.
func TestWhatAServerDoesCounts(t *testing.T) {
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
		refused    bool
		runs       int // of four
		status     eval.Status
	}{
		{"gone", dead, eval.ClassConnection, false, false, 3, eval.Inconclusive},
		{"sim/fault-status-401", live.URL + "/v1", eval.ClassAuth, true, true, 3, eval.Inconclusive},
		{"sim/nothing", live.URL + "/v1", eval.ClassNotFound, true, true, 3, eval.Inconclusive},
		{"sim/fault-status-429-always", live.URL + "/v1", eval.ClassRateLimit, true, true, 4, eval.Inconclusive},
		{"sim/fault-status-500-always", live.URL + "/v1", eval.ClassUpstream5xx, true, false, 4, eval.Failed},
		{"sim/fault-error-in-band", live.URL + "/v1", eval.ClassUpstream5xx, true, false, 4, eval.Failed},
		{"sim/fault-html", live.URL + "/v1", eval.ClassDecode, true, false, 4, eval.Failed},
		{"sim/eval-hangs", live.URL + "/v1", eval.ClassTimeout, true, false, 4, eval.Failed},
		{"sim/fault-status-404-tools", live.URL + "/v1", eval.ClassNoToolEndpoint, true, false, 4, eval.Failed},
		{"sim/fault-status-400-tools", live.URL + "/v1", eval.ClassNoToolEndpoint, true, false, 4, eval.Failed},
	} {
		t.Run(c.model, func(t *testing.T) {
			t.Parallel()
			m, err := provider.OpenAI(c.model, &provider.Options{BaseURL: c.url, Retry: provider.Retry{Attempts: 1}})
			if err != nil {
				t.Fatal(err)
			}
			s, sc := scenarios(t, "happy_path", "missing_workspace_id", "type_error_recovery", "long_arguments_guard")
			opts := &eval.Options{Jobs: 1, Timeout: time.Minute}
			if c.class == eval.ClassTimeout {
				opts.Timeout = 500 * time.Millisecond
			}
			rep, err := eval.Measure(t.Context(), s, sc, []eval.Target{{Name: c.model, Model: m}}, opts)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rep.Runs {
				if r.OK || r.Class != c.class || r.Scored != c.scored {
					t.Errorf("ok %v, scored %v, class %s: %s", r.OK, r.Scored, r.Class, r.Error)
				}
			}
			row := rep.Summary().All
			counted := row.Runs + row.Recoveries
			if len(rep.Runs) != c.runs || len(rep.Skipped) != 4-c.runs || rep.Status() != c.status || (row.Refused > 0) != c.refused {
				t.Errorf("%d runs, %d skipped, %s, row %+v", len(rep.Runs), len(rep.Skipped), rep.Status(), row)
			}
			if c.scored && counted != c.runs || !c.scored && row.Errors != c.runs {
				t.Errorf("counted %d, and %d without a score, of %d", counted, row.Errors, c.runs)
			}
		})
	}
}

// A model that streams without end has a score, and its run keeps the beginning of what it said.
func TestEndlessAnswerIsAFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, sc := scenarios(t, "happy_path")
		rep, err := eval.Measure(t.Context(), s, sc, []eval.Target{{Name: "endless", Model: endless{}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r := rep.Runs[0]; r.Class != eval.ClassTimeout || !r.Scored || !strings.HasPrefix(r.Partial, "again and again and ") || r.PartialBytes < len(r.Partial) {
			t.Errorf("%s, scored %v, %d bytes, %.40q", r.Class, r.Scored, r.PartialBytes, r.Partial)
		}
	})
}

// endless streams until it is stopped, one word a second.
type endless struct{}

func (endless) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (endless) Generate(ctx context.Context, _ *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		for ctx.Err() == nil {
			if !yield(lathe.Delta{Kind: lathe.DeltaText, Text: "again and "}, nil) {
				return
			}
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
		yield(lathe.Delta{}, ctx.Err())
	}
}

// A scenario that looks at how a model recovers from a mistake does not count against one that makes none.
func TestFaultlessModelIsNotBlamed(t *testing.T) {
	t.Parallel()
	s, sc := scenarios(t, "type_error_recovery", "long_arguments_guard", "chat_only")
	rep, err := eval.Measure(t.Context(), s, sc, []eval.Target{{Name: "faultless", Model: faultless{}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	row := rep.Summary().Models[0]
	if rep.Status() != eval.Passed || row.NotProvoked != 2 || row.Errors != 0 || row.Runs != 0 || row.ControlsOK != 1 {
		t.Errorf("%s: %+v", rep.Status(), row)
	}
}

// faultless reads, patches and says Done.
type faultless struct{}

func (faultless) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (faultless) Generate(_ context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	results := 0
	for i := range req.Messages {
		if req.Messages[i].Role == lathe.RoleTool {
			results++
		}
	}
	finish := &lathe.Finish{Reason: lathe.FinishStop, Message: lathe.Assistant("Done.")}
	if len(req.Tools) > 0 && results < 2 {
		call := lathe.ToolCall{ID: "c0", Name: "state_get", Arguments: "{}"}
		if results == 1 {
			call = lathe.ToolCall{ID: "c1", Name: "state_patch", Arguments: `{"request_id":"r","ops":[{"op":"set","path":"/draft/foo","value":"bar"}]}`}
		}
		finish.Reason, finish.Message.Parts = lathe.FinishToolCalls, []lathe.Part{call}
	}
	return func(yield func(lathe.Delta, error) bool) {
		yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: finish}, nil)
	}
}

// A server that refuses 20 of 50 second turns shows 60 %, however often its folder is resumed. The
// turn may be that after a call, or that after a reply of the user. What the server did lowers no rate of what the model did.
func TestRateRestsWhenItIsResumed(t *testing.T) {
	t.Parallel()
	s, sc := scenarios(t, "happy_path")
	restsAtSixty(t, s, sc, target("sim/eval").Model)
	s = eval.Retail()
	sc, err := s.Find("cancel_open_order")
	if err != nil {
		t.Fatal(err)
	}
	restsAtSixty(t, s, sc, eval.Play(sc[0].Gold))
}

func restsAtSixty(t *testing.T, s *eval.Suite, sc []*eval.Scenario, model lathe.Model) {
	t.Helper()
	dir, m := t.TempDir(), &refuses{Model: model}
	for range 5 {
		rep, err := eval.Measure(t.Context(), s, sc, []eval.Target{{Name: "tuf", Model: m}}, &eval.Options{Dir: dir, Resume: true, Trials: 50})
		if err != nil {
			t.Fatal(err)
		}
		row := rep.Summary().Models[0]
		if row.Runs != 50 || row.OK != 30 || row.Errors != 0 || row.Low > 0.6 || row.High < 0.6 || row.Classes["HTTP_400"] != 20 {
			t.Errorf("%d of %d, %.2f to %.2f, %v", row.OK, row.Runs, row.Low, row.High, row.Classes)
		}
		if row.Unfinished[lathe.ReasonUpstreamError] != 20 || *row.StateRate != 1 || *row.TraceRate != 1 || *row.TextRate != 1 {
			t.Errorf("unfinished %v, state %.2f, trace %.2f, text %.2f", row.Unfinished, *row.StateRate, *row.TraceRate, *row.TextRate)
		}
		if p := row.PassK[0]; p.K != 2 || math.Abs(p.Rate-30.0*29/(50*49)) > 1e-9 || p.Low > 0.36 || p.High < 0.36 {
			t.Errorf("pass^2 is %+v, want 0.36", p)
		}
	}
	if n := m.second.Load(); n != 50 {
		t.Errorf("%d second turns were asked for, want 50", n)
	}
}

// refuses answers 4 of 10 second turns with status 400, as servers do that cannot parse a call.
type refuses struct {
	lathe.Model
	second atomic.Int64
}

func (m *refuses) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	answers := 0
	for i := range req.Messages {
		if req.Messages[i].Role == lathe.RoleAssistant {
			answers++
		}
	}
	if answers == 1 && m.second.Add(1)%10 < 4 {
		return func(yield func(lathe.Delta, error) bool) {
			yield(lathe.Delta{}, &lathe.Error{Code: lathe.CodeUpstream, Op: "test", Err: &lathe.UpstreamError{Kind: lathe.Upstream4xx, Status: 400, ProviderCode: "tool_use_failed"}})
		}
	}
	return m.Model.Generate(ctx, req)
}

// A model without errors has 100 %, whether it makes the mistakes that it is asked for or not; one without tools has 0 of
// the scenarios with tools, and passes the control.
func TestBestAndWorstModel(t *testing.T) {
	t.Parallel()
	s := eval.Builtin()
	list, err := s.Select("")
	if err != nil {
		t.Fatal(err)
	}
	rep, err := eval.Measure(t.Context(), s, list, []eval.Target{target("sim/eval"), {Name: "faultless", Model: faultless{}}, target("sim/eval-never-calls")}, &eval.Options{Trials: 3})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []eval.Row{{Runs: 6, OK: 6, Recoveries: 6, RecoveriesOK: 6}, {Runs: 6, OK: 6, NotProvoked: 6}, {Runs: 6, Recoveries: 6}} {
		row := rep.Summary().Models[i]
		if row.Runs != want.Runs || row.OK != want.OK || row.Recoveries != want.Recoveries || row.RecoveriesOK != want.RecoveriesOK || row.NotProvoked != want.NotProvoked || row.Controls != 3 || row.ControlsOK != 3 {
			t.Errorf("%s: %+v", row.Model, row)
		}
	}
}

// The scenario without tools is no measure of how a model uses tools: it stands apart.
func TestControlIsCountedApart(t *testing.T) {
	t.Parallel()
	s, sc := scenarios(t, "happy_path", "chat_only")
	rep, err := eval.Measure(t.Context(), s, sc, []eval.Target{target("sim/eval-never-calls")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	row := rep.Summary().Models[0]
	if row.Runs != 1 || row.OK != 0 || row.Controls != 1 || row.ControlsOK != 1 {
		t.Errorf("%+v, want 0 of 1 and the control 1 of 1", row)
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
