package loop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/runinput"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/tool"
)

// byHistory says the turn that the history is at: it knows nothing of other processes.
type byHistory []turn

func (byHistory) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (b byHistory) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	text := 0
	for i := range req.Messages {
		if req.Messages[i].Role == lathe.RoleAssistant {
			text++
		}
	}
	return (&script{turns: []turn{b[min(text, len(b)-1)]}}).Generate(ctx, req)
}

// world is what tools have done, in all processes: the idempotency keys, by call id.
type world struct {
	mu   sync.Mutex
	done map[string][]string
}

func (w *world) tool(name string, effect lathe.Effect) *gadget {
	g := newGadget(name, func(ctx context.Context, args json.RawMessage) (*lathe.Output, error) {
		meta := lathe.CallMetaFrom(ctx)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.done == nil {
			w.done = map[string][]string{}
		}
		w.done[meta.CallID] = append(w.done[meta.CallID], meta.IdempotencyKey)
		return &lathe.Output{Data: json.RawMessage(`{"done":true}`)}, nil
	})
	g.spec.Effect = effect
	return g
}

// A log is what a store keeps of a run: its events as JSON, numbered, without deltas.
type log struct{ lines []string }

// run takes events until the log has n of them: the next one is never kept, as when the process ends
// between what it does and what it writes. It returns the result where the run came to its end.
func (l *log) run(t testing.TB, lp *loop.Loop, in *loop.Input, n int) *event.Result {
	t.Helper()
	for e := range lp.Run(t.Context(), in) {
		if event.IsDelta(e.Data) {
			continue
		}
		if len(l.lines) == n {
			return nil
		}
		e.ID, e.RunID, e.RequestID, e.Time = int64(len(l.lines)+1), "run_1", "req_1", time.Unix(0, 0).UTC()
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		l.lines = append(l.lines, string(line))
		if res := loop.Ended(e.Data); res != nil {
			return res
		}
	}
	return nil
}

func (l *log) events(t testing.TB) []event.Event {
	t.Helper()
	events := make([]event.Event, len(l.lines))
	for i := range l.lines {
		if err := json.Unmarshal([]byte(l.lines[i]), &events[i]); err != nil {
			t.Fatal(err)
		}
	}
	return events
}

func (l *log) fold(t testing.TB) *loop.State {
	t.Helper()
	s, err := loop.Fold(l.events(t))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// askOf asks about calls of the tools it names.
type askOf []string

func (a askOf) Tool(*lathe.RunInfo, *lathe.ToolSpec) lathe.Verdict {
	return lathe.Verdict{Decision: lathe.Allow}
}
func (a askOf) Step(*lathe.StepInfo) lathe.Verdict { return lathe.Verdict{Decision: lathe.Allow} }
func (a askOf) Call(c *lathe.CallInfo) lathe.Verdict {
	if slices.Contains(a, c.Tool.Name) {
		return lathe.Verdict{Decision: lathe.Ask, Rule: "ask"}
	}
	return lathe.Verdict{Decision: lathe.Allow}
}

type approve func() (lathe.Approval, error)

func (f approve) Approve(context.Context, *lathe.ApprovalRequest) (lathe.Approval, error) { return f() }

func notYet() (lathe.Approval, error) { return lathe.Approval{}, lathe.ErrPending }
func yes() (lathe.Approval, error)    { return lathe.Approval{Approved: true, By: "a person"}, nil }

// A run whose process ends at any of its events goes on in the next one: it ends once, with every
// call answered once; what writes was never done twice, and what only reads was done again under
// the same key.
func TestRunsGoOnFromEachEvent(t *testing.T) {
	t.Parallel()
	turns := byHistory{
		ask(call("w1", "write", `{"a":1}`)),
		ask(call("r1", "read", `{"b":1}`), call("w2", "write", `{"c":1}`), call("r2", "read", `{"d":1}`), call("x", "nothing", `{}`)),
		textTurn("done"),
	}
	for name, approver := range map[string]approve{"no approver is asked": nil, "approved at once": yes, "approved later": notYet} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := 1; ; n++ {
				w, l := &world{}, &log{}
				start := func(a approve) *loop.Loop {
					opts := &tool.Options{Policy: askOf{}}
					if a != nil {
						opts.Policy, opts.Approver = askOf{"write"}, a
					}
					lp, err := loop.New(turns, newRunner(t, opts, w.tool("write", lathe.Writes), w.tool("read", lathe.ReadOnly)), nil)
					if err != nil {
						t.Fatal(err)
					}
					return lp
				}
				now := approver
				if now != nil {
					now = yes
				}
				in := user("x")
				in.Park = true
				res := l.run(t, start(approver), in, n)
				for res != nil && res.Reason == lathe.ReasonAwaitingApproval {
					res = l.run(t, start(now), &loop.Input{Resume: l.fold(t)}, n)
				}
				if res != nil {
					if n < 25 {
						t.Fatalf("the run had %d events: %+v", n, res)
					}
					return // it was not cut any more
				}
				begun := slices.Clone(l.fold(t).Open)
				res = l.run(t, start(now), &loop.Input{Resume: l.fold(t)}, 1_000)
				if res == nil || res.Reason != lathe.ReasonAnswered || res.Answer != "done" {
					t.Fatalf("cut after %d events: %+v", n, res)
				}
				checkHistory(t, res)
				state := l.fold(t)
				if state.Finished == nil || len(state.Open) > 0 || state.Planned != 5 || res.ToolCalls != 5 {
					t.Fatalf("cut after %d events: %d planned, %d in the result, open %v", n, state.Planned, res.ToolCalls, state.Open)
				}
				if got, want := shape(res.History), shape(state.Messages); got != want {
					t.Errorf("cut after %d events: the history is not that of the log:\n%s\n%s", n, got, want)
				}
				for id, keys := range w.done {
					if strings.HasPrefix(id, "w") && len(keys) != 1 || len(slices.Compact(slices.Clone(keys))) != 1 {
						t.Errorf("cut after %d events: %s was done %d times with keys %v", n, id, len(keys), keys)
					}
				}
				for _, o := range begun {
					if o.Begun && strings.HasPrefix(o.ID, "w") && !strings.Contains(strings.Join(l.lines, "\n"), `"error_type":"interrupted"`) {
						t.Errorf("cut after %d events: %s was begun and is not answered interrupted", n, o.ID)
					}
				}
				if n > 200 {
					t.Fatal("the run does not end")
				}
			}
		})
	}
}

// A run that is cancelled, or may do no more, after its process ended within a model call has a log that
// can still be read: its end is of the turn that had begun.
func TestEndsAfterABegunTurn(t *testing.T) {
	t.Parallel()
	lp, err := loop.New(byHistory{ask(call("r", "read", `{}`)), textTurn("done")}, newRunner(t, nil, (&world{}).tool("read", lathe.ReadOnly)), nil)
	if err != nil {
		t.Fatal(err)
	}
	l := &log{}
	in := user("x")
	in.Park = true
	for n := 1; l.run(t, lp, in, n) == nil; n++ {
		if e := l.events(t)[n-1]; e.Turn == 2 {
			break // the second turn has begun
		}
		l.lines = nil
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	events := l.events(t)
	for e := range lp.Run(gone, &loop.Input{Resume: l.fold(t)}) {
		e.ID, e.RunID = int64(len(events)+1), "run_1"
		events = append(events, e)
	}
	state, err := loop.Fold(events)
	if err != nil || state.Finished == nil || state.Finished.Reason != lathe.ReasonCancelled || state.Finished.Turns != 1 {
		t.Errorf("%+v, %v", state, err)
	}
}

// An answer in place of the tool that is lost with its process is asked for again: it was no denial.
func TestLostAnswersAreAskedForAgain(t *testing.T) {
	t.Parallel()
	w, l := &world{}, &log{}
	start := func(a approve) *loop.Loop {
		lp, err := loop.New(byHistory{ask(call("w", "write", `{}`)), textTurn("done")},
			newRunner(t, &tool.Options{Policy: askOf{"write"}, Approver: a}, w.tool("write", lathe.Writes)), nil)
		if err != nil {
			t.Fatal(err)
		}
		return lp
	}
	answer := func() (lathe.Approval, error) {
		return lathe.Approval{Approved: true, By: "ann", Result: json.RawMessage(`{"by":"hand"}`)}, nil
	}
	in := user("x")
	in.Park = true
	l.run(t, start(answer), in, 7) // up to the ApprovalResolved
	if last := l.lines[len(l.lines)-1]; !strings.Contains(last, `"decision":"answered"`) {
		t.Fatal(last)
	}
	res := l.run(t, start(answer), &loop.Input{Resume: l.fold(t)}, 1_000)
	if res == nil || res.Answer != "done" || len(w.done) != 0 || !strings.Contains(shape(res.History), "w=ok") {
		t.Errorf("%+v, done %v", res, w.done)
	}
}

// A call that waited behind another one is called after the run is resumed, without an event that
// says so. When that process ends, too, what writes is not called a second time.
func TestWithheldCallsAreNotMadeTwice(t *testing.T) {
	t.Parallel()
	w, l := &world{}, &log{}
	start := func(a approve) *loop.Loop {
		lp, err := loop.New(byHistory{ask(call("a", "asked", `{}`), call("w", "write", `{}`)), textTurn("done")},
			newRunner(t, &tool.Options{Policy: askOf{"asked"}, Approver: a}, w.tool("asked", lathe.ReadOnly), w.tool("write", lathe.Writes)), nil)
		if err != nil {
			t.Fatal(err)
		}
		return lp
	}
	in := user("x")
	in.Park = true
	if res := l.run(t, start(notYet), in, 1_000); res == nil || len(res.Pending) != 2 {
		t.Fatalf("%+v", res)
	}
	// The next process answers the first call, makes the second, and ends before it has written so.
	for n := len(l.lines) + 1; len(w.done["w"]) == 0; n++ {
		before := slices.Clone(l.lines)
		if l.run(t, start(yes), &loop.Input{Resume: l.fold(t)}, n); len(w.done["w"]) == 0 {
			l.lines = before
		}
		if n > 100 {
			t.Fatal("the call is never made")
		}
	}
	res := l.run(t, start(yes), &loop.Input{Resume: l.fold(t)}, 1_000)
	if res == nil || res.Answer != "done" || len(w.done["w"]) != 1 {
		t.Fatalf("made %d times: %+v", len(w.done["w"]), res)
	}
	if got := shape(res.History); !strings.Contains(got, "w=interrupted") {
		t.Error(got)
	}
}

// The state is the same after JSON, and for every way of cutting the log in two.
func TestFoldIsAFunctionOfTheEvents(t *testing.T) {
	t.Parallel()
	w, l := &world{}, &log{}
	lp, err := loop.New(byHistory{ask(call("a", "read", `{}`), call("b", "read", `{"n":1}`)), textTurn("done")},
		newRunner(t, nil, w.tool("read", lathe.ReadOnly)), nil)
	if err != nil {
		t.Fatal(err)
	}
	in := user("x")
	in.Park, in.Target, in.Run.Labels = true, "main", map[string]string{"team": "a"}
	in.Settings, in.Limits, in.Allow = &lathe.Settings{ToolUseMode: lathe.ModeEnforced}, &lathe.Limits{MaxIterations: 3}, []string{"read"}
	res := l.run(t, lp, in, 1_000)
	if res == nil || res.Answer != "done" {
		t.Fatalf("%+v", res)
	}
	whole := l.fold(t)
	if whole.Target != "main" || whole.Run.Labels["team"] != "a" || whole.Usage != res.Usage || whole.Turn != 2 || whole.Finished.Answer != "done" {
		t.Errorf("%+v", whole)
	}
	if diff := cmp.Diff(whole, l.fold(t), cmp.AllowUnexported(loop.State{})); diff != "" {
		t.Error(diff)
	}
	if got := shape(whole.Messages); got != shape(res.History) {
		t.Errorf("%s, want %s", got, shape(res.History))
	}
}

// The trace of a resumed run and that of its first process say the same of each call: whether its tool ran, and how long its
// arguments are.
func TestFoldTracesCallsAsTheRunDid(t *testing.T) {
	t.Parallel()
	w, l := &world{}, &log{}
	lp, err := loop.New(byHistory{ask(call("a", "read", `{}`), call("b", "absent", `{"n":1}`)), textTurn("done")}, newRunner(t, nil, w.tool("read", lathe.ReadOnly)), nil)
	if err != nil {
		t.Fatal(err)
	}
	res := l.run(t, lp, user("x"), 1_000)
	if res == nil || len(res.Trace) != 2 || len(res.Trace[0].Calls) != 2 || !res.Trace[0].Calls[0].Executed || res.Trace[0].Calls[1].Executed {
		t.Fatalf("%+v", res)
	}
	if diff := cmp.Diff(res.Trace[0].Calls, l.fold(t).Trace[0].Calls); diff != "" {
		t.Error(diff)
	}
}

// A log that cannot be is refused, and no order of events makes the fold panic.
func TestFoldRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	started := event.Event{ID: 1, RunID: "r", Data: &event.RunStarted{}}
	for name, events := range map[string][]event.Event{
		"no start":        {{ID: 1, RunID: "r", Data: &event.RunPaused{}}},
		"a gap":           {started, {ID: 3, RunID: "r", Data: &event.RunPaused{}}},
		"two starts":      {started, {ID: 2, RunID: "r", Data: &event.RunStarted{}}},
		"a delta":         {started, {ID: 2, RunID: "r", Data: &event.TextDelta{}}},
		"another run":     {started, {ID: 2, RunID: "q", Data: &event.RunPaused{}}},
		"an earlier turn": {started, {ID: 2, RunID: "r", Turn: 2, Data: &event.RunPaused{}}, {ID: 3, RunID: "r", Turn: 1, Data: &event.RunPaused{}}},
		"after the end":   {started, {ID: 2, RunID: "r", Data: &event.RunFinished{}}, {ID: 3, RunID: "r", Data: &event.RunPaused{}}},
		"a newer start":   {{ID: 1, RunID: "r", Data: &event.RunStarted{Input: json.RawMessage(`{"version":99}`)}}},
		"nothing":         {{ID: 1}},
	} {
		if _, err := loop.Fold(events); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A run that waits for results of its client takes those that the client sends, and stays parked for the rest.
func TestClientAnswers(t *testing.T) {
	t.Parallel()
	lp, err := loop.New(byHistory{ask(call("a", "theirs", `{}`), call("b", "echo", `{}`), call("c", "theirs", `{}`)), textTurn("done")}, newRunner(t, nil, echo("echo")), nil)
	if err != nil {
		t.Fatal(err)
	}
	in := user("x")
	in.Park, in.ClientTools = true, []*lathe.ToolSpec{{Name: "theirs", Schema: json.RawMessage(`{"type":"object"}`)}}
	l := &log{}
	if res := l.run(t, lp, in, 1_000); res == nil || res.Reason != lathe.ReasonAwaitingToolResults || len(res.Pending) != 2 {
		t.Fatalf("%+v", res)
	}
	res := l.run(t, lp, &loop.Input{Resume: l.fold(t), Answers: map[string]lathe.Output{"c": {Data: json.RawMessage(`"third"`)}}}, 1_000)
	if res == nil || res.Reason != lathe.ReasonAwaitingToolResults || len(res.Pending) != 1 || res.Pending[0].ID != "a" {
		t.Fatalf("%+v", res)
	}
	res = l.run(t, lp, &loop.Input{Resume: l.fold(t), Answers: map[string]lathe.Output{
		"a": {IsError: true, Data: json.RawMessage(`{"why":"no"}`)}, "b": {Data: json.RawMessage(`"forged"`)}}}, 1_000)
	if res == nil || res.Answer != "done" {
		t.Fatalf("%+v", res)
	}
	checkHistory(t, res)
	if got, want := shape(res.History), "user x | assistant call:a call:b call:c | tool a=execution_failed | tool b=ok | tool c=ok | assistant done"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if s := l.fold(t); strings.Contains(shape(s.Messages), "forged") || s.Planned != 3 {
		t.Errorf("%d planned: %s", s.Planned, shape(s.Messages))
	}
}

// What cannot be resumed is said to be so, and nothing is done.
func TestResumeRefuses(t *testing.T) {
	t.Parallel()
	w := &world{}
	lp, err := loop.New(byHistory{ask(call("a", "write", `{}`)), textTurn("done")}, newRunner(t, nil, w.tool("write", lathe.Writes)), nil)
	if err != nil {
		t.Fatal(err)
	}
	ended, open := &log{}, &log{}
	in := user("x")
	in.Park = true
	ended.run(t, lp, in, 1_000)
	open.run(t, lp, user("x"), 3)
	done := len(w.done)
	for name, s := range map[string]*loop.State{"ended": ended.fold(t), "not to be resumed": open.fold(t), "nothing": {}} {
		res, err := lp.Do(t.Context(), &loop.Input{Resume: s})
		if err == nil || res.Reason != lathe.ReasonInternal || lathe.CodeOf(err) != lathe.CodeInvalidRequest {
			t.Errorf("%s: %v, %+v", name, err, res)
		}
	}
	if len(w.done) != done {
		t.Error("a tool was called")
	}
}

// keepsRequest is a model that keeps of its last request what a vendor's server is asked for beyond the conversation.
type keepsRequest struct {
	byHistory
	hosted, betas, version string
}

func (k *keepsRequest) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	k.hosted, k.betas, k.version = fmt.Sprintf("%s", req.HostedTools), strings.Join(req.Betas, ","), req.APIVersion
	return k.byHistory.Generate(ctx, req)
}

// A run that is resumed from its log asks the model for the same hosted tools, betas and version of the API as before. A program
// that does not know them refuses the log.
func TestResumedRunKeepsItsHostedTools(t *testing.T) {
	t.Parallel()
	w, l := &world{}, &log{}
	opts := &tool.Options{Policy: askOf{"write"}, Approver: approve(notYet)}
	turns := byHistory{ask(call("w1", "write", `{}`)), textTurn("done")}
	in := user("x")
	in.Park, runinput.Of(in).HostedTools, runinput.Of(in).Betas, runinput.Of(in).APIVersion = true, []json.RawMessage{json.RawMessage(`{"type":"web_search"}`)}, []string{"b-1", "b-2"}, "2023-01-01"
	for process, want := range []lathe.Reason{lathe.ReasonAwaitingApproval, lathe.ReasonAnswered} {
		m := &keepsRequest{byHistory: turns}
		lp, err := loop.New(m, newRunner(t, opts, w.tool("write", lathe.Writes)), nil)
		if err != nil {
			t.Fatal(err)
		}
		if res := l.run(t, lp, in, 1_000); res == nil || res.Reason != want {
			t.Fatalf("process %d: %+v", process, res)
		}
		if m.hosted != `[{"type":"web_search"}]` || m.betas != "b-1,b-2" || m.version != "2023-01-01" {
			t.Errorf("process %d: the model was asked for %s, %s and %s", process, m.hosted, m.betas, m.version)
		}
		opts.Approver = approve(yes)
		in = &loop.Input{Resume: l.fold(t)}
	}
	for _, hosted := range []bool{false, true} {
		plain, first := user("x"), &log{}
		if plain.Park = true; hosted {
			runinput.Of(plain).HostedTools = []json.RawMessage{json.RawMessage(`{}`)}
		}
		lp, err := loop.New(turns, newRunner(t, opts, w.tool("write", lathe.Writes)), nil)
		if err != nil {
			t.Fatal(err)
		}
		first.run(t, lp, plain, 1)
		if got := strings.Contains(first.lines[0], `"version":2`); got != hosted {
			t.Errorf("hosted tools %v: version 2 is %v in %s", hosted, got, first.lines[0])
		}
	}
}
