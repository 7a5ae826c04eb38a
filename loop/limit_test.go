package loop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

// rounds is a model that makes n rounds of one call and then answers.
func rounds(n int) *script {
	s := &script{}
	for i := range n {
		s.turns = append(s.turns, ask(call(fmt.Sprintf("c%d", i), "echo", fmt.Sprintf(`{"n":%d}`, i))))
	}
	s.turns = append(s.turns, textTurn("done"))
	return s
}

func TestLimitsOneBelowAtAndAbove(t *testing.T) {
	t.Parallel()
	const limit = 3
	spend := func(n int64) *script {
		return &script{turns: []turn{ask(call("a", "echo", `{}`)).tokens(n), textTurn("done").tokens(1)}}
	}
	pay := func(c float64) *script {
		return &script{turns: []turn{ask(call("a", "echo", `{}`)).cost(c), textTurn("done").cost(1)}}
	}
	many := func(n int) *script {
		var calls []lathe.ToolCall
		for i := range n {
			calls = append(calls, call(fmt.Sprintf("c%d", i), "echo", fmt.Sprintf(`{"n":%d}`, i)))
		}
		return &script{turns: []turn{ask(calls...), textTurn("done")}}
	}
	same := func(n int) *script {
		s := &script{}
		for i := range n {
			s.turns = append(s.turns, ask(call(fmt.Sprintf("c%d", i), "constant", `{}`)))
		}
		s.turns = append(s.turns, textTurn("done"))
		return s
	}
	unknown := func(n int) *script {
		s := &script{}
		for i := range n {
			s.turns = append(s.turns, ask(call(fmt.Sprintf("c%d", i), fmt.Sprintf("none%d", i), `{}`)))
		}
		s.turns = append(s.turns, textTurn("done"))
		return s
	}
	ok := lathe.ReasonAnswered
	for _, tc := range []struct {
		key    string
		limits lathe.Limits
		model  func() *script
		reason lathe.Reason
	}{
		// Three model calls are allowed: two rounds and the answer.
		{"max_iterations", lathe.Limits{MaxIterations: limit}, func() *script { return rounds(limit - 2) }, ok},
		{"max_iterations", lathe.Limits{MaxIterations: limit}, func() *script { return rounds(limit - 1) }, ok},
		{"max_iterations", lathe.Limits{MaxIterations: limit}, func() *script { return rounds(limit) }, lathe.ReasonMaxIterations},
		{"max_total_tool_calls", lathe.Limits{MaxToolCalls: limit}, func() *script { return many(limit - 1) }, ok},
		{"max_total_tool_calls", lathe.Limits{MaxToolCalls: limit}, func() *script { return many(limit) }, ok},
		{"max_total_tool_calls", lathe.Limits{MaxToolCalls: limit}, func() *script { return many(limit + 1) }, lathe.ReasonMaxToolCalls},
		{"max_repeated_calls", lathe.Limits{MaxRepeatedCalls: limit}, func() *script { return same(limit - 1) }, ok},
		{"max_repeated_calls", lathe.Limits{MaxRepeatedCalls: limit}, func() *script { return same(limit) }, lathe.ReasonToolLoop},
		{"max_repeated_calls", lathe.Limits{MaxRepeatedCalls: limit}, func() *script { return same(limit + 1) }, lathe.ReasonToolLoop},
		{"max_unknown_tools", lathe.Limits{MaxUnknownTools: limit}, func() *script { return unknown(limit - 1) }, ok},
		{"max_unknown_tools", lathe.Limits{MaxUnknownTools: limit}, func() *script { return unknown(limit) }, lathe.ReasonToolLoop},
		{"max_unknown_tools", lathe.Limits{MaxUnknownTools: limit}, func() *script { return unknown(limit + 1) }, lathe.ReasonToolLoop},
		// A budget is reached when nothing is left of it for another model call.
		{"max_tokens_total", lathe.Limits{MaxTokensTotal: 100}, func() *script { return spend(99) }, ok},
		{"max_tokens_total", lathe.Limits{MaxTokensTotal: 100}, func() *script { return spend(100) }, lathe.ReasonBudgetExceeded},
		{"max_tokens_total", lathe.Limits{MaxTokensTotal: 100}, func() *script { return spend(101) }, lathe.ReasonBudgetExceeded},
		{"max_cost", lathe.Limits{MaxCost: 1}, func() *script { return pay(0.99) }, ok},
		{"max_cost", lathe.Limits{MaxCost: 1}, func() *script { return pay(1) }, lathe.ReasonBudgetExceeded},
		{"max_cost", lathe.Limits{MaxCost: 1}, func() *script { return pay(1.01) }, lathe.ReasonBudgetExceeded},
	} {
		for _, onLimit := range []lathe.OnLimit{lathe.OnLimitStop, lathe.OnLimitFinish} {
			m := tc.model()
			name := fmt.Sprintf("%s, %d turns of %d calls, %s", tc.key, len(m.turns), len(m.turns[0].finish.Message.Parts), onLimit)
			opts := &loop.Options{Limits: tc.limits, Settings: lathe.Settings{OnLimit: onLimit}}
			res, events := collect(t, t.Context(), newLoop(t, m, opts, echo("echo"), constant("constant")), user("x"))
			if res.Reason != tc.reason {
				t.Errorf("%s: reason %q, want %q", name, res.Reason, tc.reason)
			}
			checkRun(t, res, events)
			fin := all[*event.RunFinished](events)[0]
			switch {
			case tc.reason == ok:
				if fin.Limit != "" || res.Answer != "done" {
					t.Errorf("%s: limit %q, answer %q", name, fin.Limit, res.Answer)
				}
			case fin.Limit != tc.key || fin.Status != "limited" || res.Err != nil || fin.ErrorCode != "":
				t.Errorf("%s: got %+v, error %v", name, fin, res.Err)
			}
			reqs := m.requests()
			last := reqs[len(reqs)-1]
			if closed := tc.reason != ok && onLimit == lathe.OnLimitFinish; closed {
				if res.Answer == "" && last.tools == nil && len(m.turns) == 0 {
					t.Errorf("%s: no answer", name)
				}
				if last.tools != nil || !last.messages[len(last.messages)-1].Synthetic {
					t.Errorf("%s: the closing call has tools %v, last message %+v", name, last.tools, last.messages[len(last.messages)-1])
				}
			} else if last.tools == nil {
				t.Errorf("%s: there was a closing call", name)
			}
		}
	}
}

// constant answers the same at each call.
func constant(name string) *gadget {
	return newGadget(name, func(context.Context, json.RawMessage) (*lathe.Output, error) {
		return &lathe.Output{Data: json.RawMessage(`{"same":true}`)}, nil
	})
}

func TestClosingCall(t *testing.T) {
	t.Parallel()
	round := ask(call("a", "echo", `{}`))
	const asked = " | user* Please provide your final answer."
	for _, tc := range []struct {
		name    string
		closing turn
		answer  string
		history string
	}{
		{"answers", textTurn("so far"), "so far", asked + " | assistant so far"},
		{"asks for a call", ask(call("b", "echo", `{}`)), "", ""},
		{"fails", fails(upstream(500, "no")), "", ""},
		{"is cut", textTurn("so f").reason(lathe.FinishLength), "so f", asked + " | assistant so f"},
	} {
		m := &script{turns: []turn{round, tc.closing}}
		opts := &loop.Options{Limits: lathe.Limits{MaxIterations: 1}}
		res, events := collect(t, t.Context(), newLoop(t, m, opts, echo("echo")), user("x"))
		if res.Reason != lathe.ReasonMaxIterations || res.Answer != tc.answer || res.Err != nil {
			t.Errorf("%s: reason %q, answer %q, error %v", tc.name, res.Reason, res.Answer, res.Err)
		}
		want := "user x | assistant call:a | tool a=ok" + tc.history
		if got := shape(res.History); got != want {
			t.Errorf("%s: history:\n got %s\nwant %s", tc.name, got, want)
		}
		if len(m.requests()) != 2 {
			t.Errorf("%s: %d model calls, want 2", tc.name, len(m.requests()))
		}
		checkRun(t, res, events)
	}
}

// What the loop has asked for once, it does not ask for again at once.
func TestClosingCallAfterABlankAnswer(t *testing.T) {
	t.Parallel()
	m := &script{turns: []turn{ask(call("a", "echo", `{}`)), textTurn(""), textTurn("so far")}}
	res, events := collect(t, t.Context(), newLoop(t, m, &loop.Options{Limits: lathe.Limits{MaxIterations: 2}}, echo("echo")), user("x"))
	want := "user x | assistant call:a | tool a=ok | user* Please provide your final answer. | assistant so far"
	if got := shape(res.History); got != want || res.Reason != lathe.ReasonMaxIterations {
		t.Errorf("reason %q, history:\n got %s\nwant %s", res.Reason, got, want)
	}
	checkRun(t, res, events)
}

// Who cancels the closing call has cancelled the run.
func TestClosingCallIsCancelled(t *testing.T) {
	t.Parallel()
	for cause, want := range map[error]lathe.Reason{context.Canceled: lathe.ReasonCancelled, loop.ErrInterrupted: lathe.ReasonInterrupted} {
		m := &script{turns: []turn{ask(call("a", "echo", `{}`)), {block: true}}}
		l := newLoop(t, m, &loop.Options{Limits: lathe.Limits{MaxIterations: 1}}, echo("echo"))
		ctx, cancel := context.WithCancelCause(t.Context())
		var events []event.Event
		for e := range l.Run(ctx, user("x")) {
			events = append(events, e)
			if _, ok := e.Data.(*event.ModelCallStarted); ok && e.Turn == 2 {
				cancel(cause)
			}
		}
		cancel(nil)
		res := all[*event.RunFinished](events)[0].Result
		if res.Reason != want || res.Err == nil {
			t.Errorf("reason %q, error %v, want %q", res.Reason, res.Err, want)
		}
		checkRun(t, res, events)
	}
}

func TestRunTimeout(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		wait time.Duration
		want lathe.Reason
	}{
		{"below", time.Second - 1, lathe.ReasonAnswered},
		{"at", time.Second, lathe.ReasonRunTimeout},
		{"above", time.Second + 1, lathe.ReasonRunTimeout},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				slow := newGadget("slow", func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
					time.Sleep(tc.wait) // it does not look at its context
					if tc.wait >= time.Second {
						<-ctx.Done()
					}
					return &lathe.Output{Data: json.RawMessage(`1`)}, ctx.Err()
				})
				m := &script{turns: []turn{ask(call("a", "slow", `{}`)), textTurn("done")}}
				res, events := collect(t, t.Context(), newLoop(t, m, &loop.Options{Limits: lathe.Limits{RunTimeout: time.Second}}, slow), user("x"))
				checkRun(t, res, events)
				if res.Reason != tc.want {
					t.Fatalf("reason: got %q, want %q", res.Reason, tc.want)
				}
				if tc.want == lathe.ReasonRunTimeout {
					if f := all[*event.RunFinished](events)[0]; f.Limit != "run_timeout" || len(m.requests()) != 1 || f.LatencyMS != 1000 {
						t.Errorf("got %+v after %d model calls", f, len(m.requests()))
					}
				}
				synctest.Wait()
			})
		})
	}
}

func TestRunTimeoutWhileModelIsSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &script{turns: []turn{{block: true}}}
		res, events := collect(t, t.Context(), newLoop(t, m, nil), user("x"))
		if f := all[*event.RunFinished](events)[0]; f.Reason != lathe.ReasonRunTimeout || f.LatencyMS != (15*time.Minute).Milliseconds() {
			t.Errorf("got %+v", f)
		}
		if f := all[*event.ModelCallFinished](events)[0]; f.ErrorCode != "timeout" {
			t.Errorf("got %+v", f)
		}
		checkRun(t, res, events)
	})
}

// The loop distinguishes the run's own time limit from one of the caller, also where both are limits of this package.
func TestTimeLimitOfCallerCancels(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := newLoop(t, &script{turns: []turn{{block: true}}}, nil)
		var got *event.Result
		agent := newGadget("agent", func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
			res, err := inner.Do(ctx, user("y"))
			got = res
			return nil, err
		})
		m := &script{turns: []turn{ask(call("a", "agent", `{}`)), textTurn("done")}}
		res, _ := collect(t, t.Context(), newLoop(t, m, &loop.Options{Limits: lathe.Limits{RunTimeout: time.Second}}, agent), user("x"))
		synctest.Wait()
		if res.Reason != lathe.ReasonRunTimeout || got == nil || got.Reason != lathe.ReasonCancelled {
			t.Errorf("outer %q, inner %+v", res.Reason, got)
		}
	})
}

func TestMaxTools(t *testing.T) {
	t.Parallel()
	client := func(n int) []*lathe.ToolSpec {
		var specs []*lathe.ToolSpec
		for i := range n {
			specs = append(specs, &lathe.ToolSpec{Name: fmt.Sprintf("t%d", i), Schema: json.RawMessage(`{"type":"object"}`), Owner: lathe.OwnerClient})
		}
		return specs
	}
	for n, want := range map[int]lathe.Reason{2: lathe.ReasonAnswered, 3: lathe.ReasonAnswered, 4: lathe.ReasonInternal} {
		in := user("x")
		in.ClientTools = client(n)
		m := &script{turns: []turn{textTurn("ok")}}
		res, events := collect(t, t.Context(), newLoop(t, m, &loop.Options{Limits: lathe.Limits{MaxTools: 3}}), in)
		checkRun(t, res, events)
		if res.Reason != want {
			t.Errorf("%d tools: reason %q, want %q", n, res.Reason, want)
		}
		if want == lathe.ReasonInternal && (lathe.CodeOf(res.Err) != lathe.CodeTooManyTools || len(m.requests()) != 0 || all[*event.RunFinished](events)[0].Limit != "max_tools") {
			t.Errorf("%d tools: error %v after %d model calls", n, res.Err, len(m.requests()))
		}
	}
}

func TestMaxDepth(t *testing.T) {
	t.Parallel()
	for depth, want := range map[int]lathe.Reason{1: lathe.ReasonAnswered, 2: lathe.ReasonAnswered, 3: lathe.ReasonInternal} {
		ctx := lathe.WithCallMeta(t.Context(), &lathe.CallMeta{Depth: depth - 1})
		if got := loop.Depth(ctx); got != depth {
			t.Errorf("depth: got %d, want %d", got, depth)
		}
		res, events := collect(t, ctx, newLoop(t, &script{turns: []turn{textTurn("ok")}}, &loop.Options{Limits: lathe.Limits{MaxDepth: 2}}), user("x"))
		checkRun(t, res, events)
		if res.Reason != want || want == lathe.ReasonInternal && lathe.CodeOf(res.Err) != lathe.CodeMaxDepth {
			t.Errorf("depth %d: reason %q, error %v", depth, res.Reason, res.Err)
		}
	}
	if got := loop.Depth(t.Context()); got != 0 {
		t.Errorf("outside of a call: depth %d", got)
	}
}

func TestPolicyStep(t *testing.T) {
	t.Parallel()
	m := rounds(3)
	p := &stepping{allow: 2}
	res, events := collect(t, t.Context(), newLoop(t, m, &loop.Options{Policy: p}, echo("echo")), user("x"))
	checkRun(t, res, events)
	if res.Reason != lathe.ReasonBudgetExceeded || lathe.CodeOf(res.Err) != lathe.CodePolicyDenied || !strings.Contains(res.Err.Error(), "two_steps") {
		t.Errorf("got reason %q, error %v", res.Reason, res.Err)
	}
	if len(m.requests()) != 2 {
		t.Errorf("model calls: got %d, want 2", len(m.requests()))
	}
	want := lathe.StepInfo{Turn: 3, Usage: lathe.Usage{InputTokens: 20, OutputTokens: 10, TotalTokens: 30}, ToolCalls: 2}
	if p.last.Turn != want.Turn || p.last.Usage != want.Usage || p.last.ToolCalls != want.ToolCalls || p.last.Run.RunID != "run_1" {
		t.Errorf("the policy saw %+v", p.last)
	}
}

type stepping struct {
	anything
	allow int
	last  lathe.StepInfo
}

func (p *stepping) Step(s *lathe.StepInfo) lathe.Verdict {
	p.last = *s
	if s.Turn > p.allow {
		return lathe.Verdict{Rule: "two_steps", Reason: "enough"}
	}
	return lathe.Verdict{Decision: lathe.Allow}
}

// The policy is asked about the closing call too.
func TestPolicyDeniesClosingCall(t *testing.T) {
	t.Parallel()
	m := rounds(3)
	opts := &loop.Options{Policy: &stepping{allow: 1}, Limits: lathe.Limits{MaxIterations: 1}}
	res, events := collect(t, t.Context(), newLoop(t, m, opts, echo("echo")), user("x"))
	checkRun(t, res, events)
	if res.Reason != lathe.ReasonMaxIterations || len(m.requests()) != 1 || res.Err != nil {
		t.Errorf("got reason %q, error %v after %d model calls", res.Reason, res.Err, len(m.requests()))
	}
	if got, want := shape(res.History), "user x | assistant call:c0 | tool c0=ok"; got != want {
		t.Errorf("history:\n got %s\nwant %s", got, want)
	}
}

func TestPolicyThatPanicsDenies(t *testing.T) {
	t.Parallel()
	m := rounds(1)
	res, events := collect(t, t.Context(), newLoop(t, m, &loop.Options{Policy: panicking{}}, echo("echo")), user("x"))
	checkRun(t, res, events)
	if res.Reason != lathe.ReasonBudgetExceeded || len(m.requests()) != 0 || strings.Contains(res.Err.Error(), "secret") {
		t.Errorf("got reason %q, error %v after %d model calls", res.Reason, res.Err, len(m.requests()))
	}
}

type panicking struct{ anything }

func (panicking) Step(*lathe.StepInfo) lathe.Verdict { panic("secret") }

// An agent as a tool: its run is one deeper, and at max_depth a call that would start another is
// answered, not made.
func TestRunInRun(t *testing.T) {
	t.Parallel()
	var inner *event.Result
	m := &script{turns: []turn{ask(call("a", "agent", `{}`)), ask(call("b", "agent", `{}`)), textTurn("inner"), textTurn("outer")}}
	g := &agent{gadget: newGadget("agent", nil)}
	l := newLoop(t, m, nil, g)
	g.do = func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
		if got := loop.Depth(ctx); got != 1 {
			t.Errorf("depth: got %d, want 1", got)
		}
		res, err := l.Do(ctx, user("y"))
		inner = res
		return &lathe.Output{Data: json.RawMessage(`"` + res.Answer + `"`)}, err
	}
	res, events := collect(t, t.Context(), l, user("x"))
	checkRun(t, res, events)
	if got, want := shape(inner.History), "user y | assistant call:b | tool b=max_depth | assistant inner"; got != want {
		t.Errorf("inner history:\n got %s\nwant %s", got, want)
	}
	if got, want := shape(res.History), "user x | assistant call:a | tool a=ok | assistant outer"; got != want {
		t.Errorf("outer history:\n got %s\nwant %s", got, want)
	}
}

type agent struct{ *gadget }

func (agent) StartsRun() bool { return true }

// An offeringCounter counts how often a policy is asked about offering a tool.
type offeringCounter struct {
	lathe.Policy
	asked int
}

func (p *offeringCounter) Tool(run *lathe.RunInfo, spec *lathe.ToolSpec) lathe.Verdict {
	p.asked++
	return p.Policy.Tool(run, spec)
}

// A run with limits of its own asks the policy about each tool once, and so does one without.
func TestRunAsksAboutEachToolOnce(t *testing.T) {
	t.Parallel()
	set, err := tool.NewSet(echo("a"), echo("b"))
	if err != nil {
		t.Fatal(err)
	}
	for _, limits := range []*lathe.Limits{nil, {MaxTools: 5}} {
		p := &offeringCounter{Policy: policy.AllowAll()}
		r, err := tool.NewRunner(set, &tool.Options{Policy: p})
		if err != nil {
			t.Fatal(err)
		}
		l, err := loop.New(&script{turns: []turn{textTurn("done")}}, r, nil)
		if err != nil {
			t.Fatal(err)
		}
		p.asked = 0
		in := user("x")
		in.Limits = limits
		if _, err := l.Do(t.Context(), in); err != nil || p.asked != 2 {
			t.Errorf("limits %+v: asked %d times about 2 tools, %v", limits, p.asked, err)
		}
	}
}
