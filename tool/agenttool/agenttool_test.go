package agenttool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/sim"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/agenttool"
)

// A turn is what a scripted model says: its text, and its calls as pairs of name and arguments.
type turn struct {
	text  string
	calls []string
}

// scripted answers with one turn after the other, and keeps the requests.
type scripted struct {
	turns    []turn
	requests []*lathe.Request
	cost     float64
}

func (*scripted) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (m *scripted) Generate(_ context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	kept := *req
	kept.Messages = slices.Clone(req.Messages)
	m.requests = append(m.requests, &kept)
	t := m.turns[min(len(m.requests), len(m.turns))-1]
	msg := lathe.Message{Role: lathe.RoleAssistant}
	if t.text != "" {
		msg.Parts = append(msg.Parts, lathe.Text{Text: t.text})
	}
	finish := &lathe.Finish{Reason: lathe.FinishStop, Usage: lathe.Usage{InputTokens: 90, OutputTokens: 10, TotalTokens: 100}}
	if m.cost > 0 {
		finish.ProviderCost = &m.cost
	}
	for i := 0; i+1 < len(t.calls); i += 2 {
		msg.Parts = append(msg.Parts, lathe.ToolCall{ID: fmt.Sprintf("c%d_%d", len(m.requests), i), Name: t.calls[i], Arguments: t.calls[i+1]})
		finish.Reason = lathe.FinishToolCalls
	}
	finish.Message = msg
	return func(yield func(lathe.Delta, error) bool) {
		yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: finish}, nil)
	}
}

func (m *scripted) offered(i int) (names []string) {
	for _, t := range m.requests[i].Tools {
		names = append(names, t.Name)
	}
	return names
}

// A world has an agent "helper" with a model of its own, and tools "look" (reads) and "post" (writes).
type world struct {
	caller, agent *scripted
	set           *tool.Set
	loops         [2]*loop.Loop
	events        []event.Event
	posts         int
}

func newWorld(t *testing.T, p lathe.Policy, limits lathe.Limits, opts *agenttool.Options, caller, agent []turn) *world {
	t.Helper()
	w := &world{caller: &scripted{turns: caller}, agent: &scripted{turns: agent}}
	start := func(ctx context.Context, in *loop.Input) (*event.Result, error) {
		in.Run.RunID = "run_child"
		var res *event.Result
		for e := range w.loops[1].Run(ctx, in) {
			w.events = append(w.events, event.Event{RunID: "run_child", Data: e.Data})
			if end := loop.Ended(e.Data); end != nil {
				res = end
			}
		}
		return res, loop.Failure(res)
	}
	helper, err := agenttool.New("helper", "Helps.", start, opts)
	if err != nil {
		t.Fatal(err)
	}
	look := tool.Func("look", "Looks.", func(context.Context, struct{}) (string, error) { return "seen", nil },
		&tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"*"}, Labels: []string{lathe.LabelReadsUntrusted}})
	post := tool.Func("post", "Posts.", func(context.Context, struct{}) (string, error) { w.posts++; return "done", nil },
		&tool.FuncOptions{Effect: lathe.Writes, Show: []string{"*"}})
	if w.set, err = tool.NewSet(helper, look, post); err != nil {
		t.Fatal(err)
	}
	runner, err := tool.NewRunner(w.set, &tool.Options{Policy: p, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range []lathe.Model{w.caller, w.agent} {
		if w.loops[i], err = loop.New(m, runner, nil); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func (w *world) run(t *testing.T, in *loop.Input) *event.Result {
	t.Helper()
	in.Run.RunID = "run_parent"
	in.Messages = []lathe.Message{lathe.User("Go.")}
	var res *event.Result
	for e := range w.loops[0].Run(t.Context(), in) {
		w.events = append(w.events, event.Event{RunID: "run_parent", Data: e.Data})
		if end := loop.Ended(e.Data); end != nil {
			res = end
		}
	}
	return res
}

func eventsOf[T event.Data](w *world, run string) (out []T) {
	for _, e := range w.events {
		if d, ok := e.Data.(T); ok && e.RunID == run {
			out = append(out, d)
		}
	}
	return out
}

const task = `{"task":"Find it."}`

func TestCallIsARunOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, policy.AllowAll(), lathe.Limits{}, &agenttool.Options{Instructions: "Be brief.", Tools: []string{"look"}},
		[]turn{{calls: []string{"helper", task}}, {text: "Thanks."}}, []turn{{calls: []string{"look", "{}"}}, {text: "It is here."}})
	res := w.run(t, &loop.Input{})
	if res.Reason != lathe.ReasonAnswered || res.Answer != "Thanks." {
		t.Fatalf("%s, %q", res.Reason, res.Answer)
	}
	first := w.agent.requests[0].Messages
	if len(first) != 2 || first[0].Role != lathe.RoleSystem || first[0].Text() != "Be brief." || first[1].Text() != "Find it." {
		t.Errorf("the agent was given %+v", first)
	}
	if got := w.agent.offered(0); !slices.Equal(got, []string{"look"}) {
		t.Errorf("the agent was offered %q", got)
	}
	if got := eventsOf[*event.ToolCallResult](w, "run_parent")[0].Result; got != "It is here." {
		t.Errorf("the caller's model got %q", got)
	}
	started := eventsOf[*event.RunStarted](w, "run_child")[0]
	executed := eventsOf[*event.ToolCallExecuted](w, "run_parent")[0]
	if started.ParentRunID != "run_parent" || started.ParentToolCallID != executed.ToolCallID || executed.ChildRunID != "run_child" {
		t.Errorf("the runs are not linked: %+v, %+v", started, executed)
	}
	if executed.ChildUsage == nil || executed.ChildUsage.TotalTokens != 200 || res.Usage.TotalTokens != 400 {
		t.Errorf("usage of the child %+v, of the run %+v", executed.ChildUsage, res.Usage)
	}
}

func TestAgentHasOnlyToolsOfItsCaller(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		tools  []string
		effect lathe.Effect
		allow  []string
		want   []string
	}{
		{"none by default", nil, lathe.Writes, nil, nil},
		{"an empty list is none", []string{}, lathe.Writes, nil, nil},
		{"by name", []string{"post", "absent"}, lathe.Writes, nil, []string{"post"}},
		{"all", []string{"*"}, lathe.Writes, nil, []string{"look", "post"}},
		{"all that the caller's run has", []string{"*"}, lathe.Writes, []string{"helper", "look"}, []string{"look"}},
		{"by name, and not the caller's", []string{"post"}, lathe.Writes, []string{"helper", "look"}, nil},
		{"no stronger effect than its own", []string{"*"}, lathe.ReadOnly, nil, []string{"look"}},
	} {
		w := newWorld(t, policy.AllowAll(), lathe.Limits{}, &agenttool.Options{Tools: c.tools, Effect: c.effect},
			[]turn{{calls: []string{"helper", task}}, {text: "Thanks."}}, []turn{{calls: []string{"post", "{}"}}, {text: "Done."}})
		w.run(t, &loop.Input{Allow: c.allow})
		if got := w.agent.offered(0); !slices.Equal(got, c.want) {
			t.Errorf("%s: offered %q, want %q", c.name, got, c.want)
		}
		if want := slices.Contains(c.want, "post"); (w.posts == 1) != want || w.posts > 1 {
			t.Errorf("%s: posted %d times, want %v", c.name, w.posts, want)
		}
	}
}

func TestAgentSpendsOfItsCaller(t *testing.T) {
	t.Parallel()
	endless := []turn{{calls: []string{"look", "{}", "look", `{"x":1}`}}}
	for _, c := range []struct {
		name   string
		limits lathe.Limits
		own    lathe.Limits
		cost   float64
		calls  int // of the agent's model at most
		reason lathe.Reason
	}{
		{"tokens", lathe.Limits{MaxTokensTotal: 350}, lathe.Limits{}, 0, 4, lathe.ReasonBudgetExceeded},
		{"cost", lathe.Limits{MaxCost: 0.35}, lathe.Limits{}, 0.1, 4, lathe.ReasonBudgetExceeded},
		{"its own limit", lathe.Limits{}, lathe.Limits{MaxIterations: 2}, 0, 3, lathe.ReasonMaxIterations},
	} {
		w := newWorld(t, policy.AllowAll(), c.limits, &agenttool.Options{Tools: []string{"*"}, Limits: c.own},
			[]turn{{calls: []string{"helper", task}}, {text: "Thanks."}}, endless)
		w.caller.cost, w.agent.cost = c.cost, c.cost
		w.run(t, &loop.Input{Limits: &lathe.Limits{MaxTokensTotal: c.limits.MaxTokensTotal, MaxCost: c.limits.MaxCost, MaxRepeatedCalls: 100}})
		end := eventsOf[*event.RunFinished](w, "run_child")
		if len(end) != 1 || end[0].Reason != c.reason || len(w.agent.requests) > c.calls {
			t.Errorf("%s: %+v after %d model calls, want %s after %d at most", c.name, end, len(w.agent.requests), c.reason, c.calls)
		}
		res := eventsOf[*event.ToolCallResult](w, "run_parent")[0]
		if res.Status != "error" || !strings.Contains(res.Result, string(c.reason)) || !strings.Contains(res.Result, "limit") {
			t.Errorf("%s: the caller's model got %s", c.name, res.Result)
		}
	}
}

func TestDepthCounts(t *testing.T) {
	t.Parallel()
	for depth, want := range map[int]bool{-1: false, 1: true} {
		w := newWorld(t, policy.AllowAll(), lathe.Limits{MaxDepth: depth}, nil,
			[]turn{{calls: []string{"helper", task}}, {text: "Thanks."}}, []turn{{text: "Done."}})
		w.run(t, &loop.Input{})
		if got := len(w.agent.requests) > 0; got != want {
			t.Errorf("max_depth %d: the agent ran: %v", depth, got)
		}
	}
}

// A policy that keeps writes from a run which has read what strangers wrote must not be evaded by having an agent read it.
func TestPolicySeesWhatTheAgentRead(t *testing.T) {
	t.Parallel()
	p := &seen{Policy: policy.AllowAll()}
	w := newWorld(t, p, lathe.Limits{}, &agenttool.Options{Tools: []string{"look"}},
		[]turn{{calls: []string{"helper", task}}, {calls: []string{"post", "{}"}}, {text: "Thanks."}}, []turn{{calls: []string{"look", "{}"}}, {text: "Read."}})
	w.run(t, &loop.Input{})
	if !slices.Contains(p.before["post"], "look") {
		t.Errorf("before post the policy was shown %q", p.before["post"])
	}
}

// seen notes the tools that a policy is shown as used before a call.
type seen struct {
	lathe.Policy
	before map[string][]string
}

func (s *seen) Call(info *lathe.CallInfo) lathe.Verdict {
	if s.before == nil {
		s.before = map[string][]string{}
	}
	for _, u := range info.Used {
		s.before[info.Call.Name] = append(s.before[info.Call.Name], u.Name)
	}
	return s.Policy.Call(info)
}

// A Go function that starts runs is bounded without a type of its own.
func TestFunctionThatStartsRuns(t *testing.T) {
	t.Parallel()
	var scope *tool.Scope
	nest := tool.Func("nest", "Starts a run.", func(ctx context.Context, _ struct{}) (string, error) {
		scope = tool.ScopeFrom(ctx)
		return "done", nil
	}, &tool.FuncOptions{Show: []string{"*"}, StartsRun: true})
	set, err := tool.NewSet(nest)
	if err != nil {
		t.Fatal(err)
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.AllowAll()})
	if err != nil {
		t.Fatal(err)
	}
	for depth, want := range map[int]lathe.Code{0: "", 1: lathe.CodeMaxDepth} {
		scope = nil
		work := runner.Begin(&lathe.RunInfo{Depth: depth}, nil)
		out := work.Execute(t.Context(), 1, []tool.Call{{ToolCall: lathe.ToolCall{ID: "c", Name: "nest", Arguments: "{}"}}}, func(event.Data) {})
		if got := out.Calls[0].Code; got != want || (scope != nil) != (want == "") {
			t.Errorf("at depth %d: %q and scope %v, want %q", depth, got, scope, want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	start := func(context.Context, *loop.Input) (*event.Result, error) { return nil, nil }
	if _, err := agenttool.New("a", "b", nil, nil); lathe.CodeOf(err) != lathe.CodeInvalidConfig {
		t.Errorf("without a start: %v", err)
	}
	if _, err := agenttool.New("a", "b", start, &agenttool.Options{Tools: []string{"*", "look"}}); lathe.CodeOf(err) != lathe.CodeInvalidConfig {
		t.Errorf("* beside a name: %v", err)
	}
	if _, err := agenttool.New("a", "b", start, &agenttool.Options{Timeout: -1}); lathe.CodeOf(err) != lathe.CodeInvalidConfig {
		t.Errorf("a negative timeout: %v", err)
	}
	a, err := agenttool.New("a", "b", start, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Call(t.Context(), json.RawMessage(task)); err == nil {
		t.Error("a call outside of a runner is no error")
	}
}

// An agent that answers questions about numbers, as a tool of another.
func Example() {
	model := sim.New(nil).Model("sim/demo")
	var l *loop.Loop
	agent, err := agenttool.New("ask_expert", "Answers a question.", func(ctx context.Context, in *loop.Input) (*event.Result, error) {
		return l.Do(ctx, in)
	}, &agenttool.Options{Instructions: "You are an expert.", Effect: lathe.ReadOnly})
	if err != nil {
		fmt.Println(err)
		return
	}
	set, err := tool.NewSet(agent)
	if err != nil {
		fmt.Println(err)
		return
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.Default()})
	if err != nil {
		panic(err)
	}
	l, err = loop.New(model, runner, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(agent.Spec().Name, agent.Spec().Effect)
	// Output: ask_expert read_only
}
