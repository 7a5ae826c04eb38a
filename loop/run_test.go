package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/digest"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/tool"
)

func TestRunCallsToolAndAnswers(t *testing.T) {
	t.Parallel()
	m := &script{turns: []turn{ask(call("a", "echo", `{"n":1}`)), textTurn("It is 1.")}, info: lathe.ModelInfo{Provider: "test", Model: "m"}}
	l := newLoop(t, m, &loop.Options{Now: ticking()}, echo("echo"))
	res, events := collect(t, t.Context(), l, user("What is it?"))

	want := "RunStarted" +
		" ModelCallStarted ToolCallDelta ToolCallDelta ModelCallFinished" +
		" ToolCallProposed ToolCallPlanned ToolCallExecuted ToolCallResult" +
		" ModelCallStarted TextDelta ModelCallFinished" +
		" RunFinished"
	if got := types(events); got != want {
		t.Errorf("events:\n got %s\nwant %s", got, want)
	}
	if got, want := shape(res.History), "user What is it? | assistant call:a | tool a=ok | assistant It is 1."; got != want {
		t.Errorf("history:\n got %s\nwant %s", got, want)
	}
	if res.Reason != lathe.ReasonAnswered || res.Answer != "It is 1." || res.Err != nil {
		t.Errorf("result: reason %q, answer %q, error %v", res.Reason, res.Answer, res.Err)
	}
	if want := (lathe.Usage{InputTokens: 20, OutputTokens: 10, TotalTokens: 30}); res.Usage != want {
		t.Errorf("usage: got %+v, want %+v", res.Usage, want)
	}
	if len(res.Trace) != 2 || len(res.Trace[0].Calls) != 1 || res.Trace[0].Calls[0].Tool != "echo" || res.ToolCalls != 1 {
		t.Errorf("trace: got %+v, %d calls", res.Trace, res.ToolCalls)
	}
	fin := all[*event.RunFinished](events)[0]
	if fin.Turns != 2 || fin.ToolCalls != 1 || fin.Status != "completed" || fin.Answer != "It is 1." || fin.LatencyMS <= 0 || fin.Result != res {
		t.Errorf("RunFinished: got %+v", fin)
	}
	started := all[*event.ModelCallStarted](events)
	if started[0].Tools != 1 || started[0].Messages != 1 || started[1].Messages != 3 || started[0].Attempt != 1 || started[1].Attempt != 1 {
		t.Errorf("ModelCallStarted: got %+v, %+v", started[0], started[1])
	}
	for _, s := range started {
		if len(s.PromptHash) != 64 || len(s.PromptHashV2) != 64 || s.PromptHash == s.PromptHashV2 {
			t.Errorf("prompt hashes: got %q, %q", s.PromptHash, s.PromptHashV2)
		}
	}
	for i, q := range m.requests() {
		p := digest.NewPrompt("m")
		p.Add(q.messages...)
		v1, v2 := p.Sum(nil, digest.Tools([]*lathe.ToolSpec{echo("echo").Spec()}), lathe.ToolChoice{})
		if started[i].PromptHash != v1 || started[i].PromptHashV2 != v2 {
			t.Errorf("prompt hashes of turn %d: got %s, %s; want %s, %s", i+1, started[i].PromptHash, started[i].PromptHashV2, v1, v2)
		}
	}
	done := all[*event.ModelCallFinished](events)
	if done[0].ToolCalls != 1 || done[0].Status != "success" || done[0].LatencyMS <= 0 || done[0].FirstTokenMS <= 0 || done[0].FirstTokenMS > done[0].LatencyMS {
		t.Errorf("ModelCallFinished: got %+v", done[0])
	}
	if diff := cmp.Diff(res.History[1], *done[0].Message); diff != "" {
		t.Errorf("the finished message is not the one in the history:\n%s", diff)
	}
	for i, e := range events {
		turn := 0
		switch {
		case i >= 9:
			turn = 2
		case i >= 1:
			turn = 1
		}
		if e.Turn != turn {
			t.Errorf("event %d, %s: turn %d, want %d", i, e.Data.EventType(), e.Turn, turn)
		}
	}
}

// The next run of a loop does not change the trace of a result.
func TestResultKeepsItsTrace(t *testing.T) {
	t.Parallel()
	for _, turns := range []int{1, 2, 3, 9} {
		m := &script{}
		for i := range turns - 1 {
			m.turns = append(m.turns, ask(call(fmt.Sprint("c", i), "echo", fmt.Sprintf(`{"n":%d}`, i))).tokens(int64(i+1)))
		}
		m.turns = append(m.turns, textTurn("Done.").tokens(100))
		again := slices.Clone(m.turns)
		l := newLoop(t, m, nil, echo("echo"))
		first, _ := collect(t, t.Context(), l, user("Count."))
		want := fmt.Sprintf("%+v", first.Trace)
		if len(first.Trace) != turns || len(first.Trace[0].Calls) != min(turns-1, 1) {
			t.Fatalf("%d turns: the trace has %d: %s", turns, len(first.Trace), want)
		}
		m.turns = slices.Concat(m.turns, []turn{ask(call("other", "echo", `{"n":7}`)).tokens(55)}, again[1:])
		if second, _ := collect(t, t.Context(), l, user("Count again.")); fmt.Sprintf("%+v", second.Trace) == want {
			t.Fatalf("%d turns: the second run has the trace of the first", turns)
		}
		if got := fmt.Sprintf("%+v", first.Trace); got != want {
			t.Errorf("%d turns: after the next run the trace is\n%s\nit was\n%s", turns, got, want)
		}
	}
}

func TestRunDoesNotChangeItsInput(t *testing.T) {
	t.Parallel()
	l := newLoop(t, &script{turns: []turn{ask(call("a", "echo", `{}`)), textTurn("ok")}}, nil, echo("echo"))
	in := user("x")
	in.Messages = append(make([]lathe.Message, 0, 8), in.Messages...)
	collect(t, t.Context(), l, in)
	if got := shape(in.Messages[:cap(in.Messages)][:3]); got != "user x |  | " {
		t.Errorf("the caller's slice was written to: %s", got)
	}
}

func TestRequestMessagesOnlyGrow(t *testing.T) {
	t.Parallel()
	m := &script{turns: []turn{ask(call("a", "echo", `{}`)), textTurn(""), textTurn("done")}}
	collect(t, t.Context(), newLoop(t, m, nil, echo("echo")), user("x"))
	reqs := m.requests()
	for i := 1; i < len(reqs); i++ {
		before := reqs[i-1].messages
		if diff := cmp.Diff(before, reqs[i].messages[:len(before)]); diff != "" {
			t.Errorf("request %d does not begin with the messages of the one before:\n%s", i, diff)
		}
	}
}

func TestRunStoppedEarlyCancelsModel(t *testing.T) {
	t.Parallel()
	for _, stopAt := range []string{"RunStarted", "ModelCallStarted", "TextDelta"} {
		m := &watched{}
		for e := range newLoop(t, m, nil).Run(t.Context(), user("x")) {
			if e.Data.EventType() == stopAt {
				break
			}
		}
		if stopAt == "TextDelta" && (m.ctx == nil || m.ctx.Err() == nil || !m.stopped) {
			t.Errorf("stopped at %s: the model was not cancelled", stopAt)
		}
	}
}

// watched is a model that yields deltas until its consumer stops.
type watched struct {
	ctx     context.Context
	stopped bool
}

func (*watched) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (m *watched) Generate(ctx context.Context, _ *lathe.Request) iter.Seq2[lathe.Delta, error] {
	m.ctx = ctx
	return func(yield func(lathe.Delta, error) bool) {
		for yield(lathe.Delta{Kind: lathe.DeltaText, Text: "x"}, nil) {
		}
		m.stopped = true
	}
}

func TestDeltasAreEmittedAsTheyArrive(t *testing.T) {
	t.Parallel()
	last := textTurn("answer")
	last.before = []lathe.Delta{
		{Kind: lathe.DeltaReasoning, Text: "hm"},
		{Kind: lathe.DeltaCommentary, Text: "wait"},
		{Kind: lathe.DeltaText, Text: "ans"},
		{Kind: lathe.DeltaText, Text: "wer"},
	}
	_, events := collect(t, t.Context(), newLoop(t, &script{turns: []turn{last}}, nil), user("x"))
	if got, want := types(events), "RunStarted ModelCallStarted ReasoningDelta CommentaryDelta TextDelta TextDelta ModelCallFinished RunFinished"; got != want {
		t.Errorf("events:\n got %s\nwant %s", got, want)
	}
	var text strings.Builder
	for _, d := range all[*event.TextDelta](events) {
		text.WriteString(d.Text)
		if d.Bytes != len(d.Text) {
			t.Errorf("bytes: got %d for %q", d.Bytes, d.Text)
		}
	}
	if text.String() != "answer" {
		t.Errorf("text: got %q", text.String())
	}
}

// Events name registered tools only: a name that the model made up appears as `unknown`.
func TestCallDeltasNameRegisteredToolsOnly(t *testing.T) {
	t.Parallel()
	m := &script{turns: []turn{ask(call("a", "echo", `{"n":1}`), call("b", "made_up", `{}`), call("a", "echo", `{"n":2}`)),
		ask(call("b", "ec.ho", "")), ask(call(" c ", "echo", "")), textTurn("ok")}}
	_, events := collect(t, t.Context(), newLoop(t, m, nil, echo("echo")), user("x"))
	var got []string
	for _, d := range all[*event.ToolCallDelta](events) {
		got = append(got, strings.Join([]string{d.ToolCallID, d.Tool, d.Text}, ","))
	}
	// The second calls "a" and "b" will get other ids, so the stream does not name them.
	want := []string{"a,echo,", `a,echo,{"n":1}`, "b,unknown,", "b,unknown,{}", ",echo,", `,echo,{"n":2}`,
		",unknown,", ",unknown,", "c,echo,", "c,echo,"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("call deltas (-want +got):\n%s", diff)
	}
}

func TestRetriesAreAttempts(t *testing.T) {
	t.Parallel()
	last := textTurn("ok")
	last.before = append([]lathe.Delta{{Kind: lathe.DeltaRetry, Retry: &lathe.Retry{
		Attempt: 1, Err: &lathe.Error{Code: lathe.CodeUpstream, Err: &lathe.UpstreamError{Kind: lathe.UpstreamRateLimited, Status: 429, RequestID: "up_1"}},
	}}}, last.before...)
	_, events := collect(t, t.Context(), newLoop(t, &script{turns: []turn{last}}, nil), user("x"))
	if got, want := types(events), "RunStarted ModelCallStarted ModelCallFinished ModelCallStarted TextDelta ModelCallFinished RunFinished"; got != want {
		t.Fatalf("events:\n got %s\nwant %s", got, want)
	}
	done := all[*event.ModelCallFinished](events)
	if done[0].Attempt != 1 || done[0].Status != "error" || done[0].ErrorCode != "rate_limited" || done[0].UpstreamRequestID != "up_1" {
		t.Errorf("first attempt: got %+v", done[0])
	}
	if done[1].Attempt != 2 || done[1].Status != "success" || done[1].ErrorCode != "" {
		t.Errorf("second attempt: got %+v", done[1])
	}
}

// What a server says of itself goes into events only when it is short and plain.
func TestEventsHaveNoServerProse(t *testing.T) {
	t.Parallel()
	last := textTurn("ok")
	last.finish.Model, last.finish.UpstreamRequestID, last.finish.ResponseID = "a model of\nmany words", strings.Repeat("x", 129), "an id\nof words"
	_, events := collect(t, t.Context(), newLoop(t, &script{turns: []turn{last}, info: lathe.ModelInfo{Model: "m"}}, nil), user("x"))
	if d := all[*event.ModelCallFinished](events)[0]; d.Model != "m" || d.UpstreamRequestID+d.ResponseID != "" {
		t.Errorf("got model %q, request id %q", d.Model, d.UpstreamRequestID)
	}
}

func TestNewRefusesWhatIsNotOfTheContract(t *testing.T) {
	t.Parallel()
	m, r := &script{turns: []turn{textTurn("x")}}, newRunner(t, nil)
	for name, opts := range map[string]*loop.Options{
		"tool_use_mode":           {Settings: lathe.Settings{ToolUseMode: "sometimes"}},
		"tool_failure_policy":     {Settings: lathe.Settings{FailurePolicy: "x"}},
		"executor":                {Settings: lathe.Settings{Executor: "x"}},
		"on_parse_error":          {Settings: lathe.Settings{OnParseError: "x"}},
		"on_limit":                {Settings: lathe.Settings{OnLimit: "x"}},
		"oversize_output":         {Settings: lathe.Settings{OversizeOutput: "x"}},
		"repair":                  {Settings: lathe.Settings{Repair: "x"}},
		"result_format":           {Settings: lathe.Settings{ResultFormat: "x"}},
		"tool_choice":             {Settings: lathe.Settings{ToolChoice: lathe.ToolChoice{Mode: "x"}}},
		"tool_choice: a name":     {Settings: lathe.Settings{ToolChoice: lathe.ToolChoice{Mode: lathe.ChoiceFunction}}},
		"max_parallel_tool_calls": {Settings: lathe.Settings{MaxParallel: -1}},
		"max_iterations":          {Limits: lathe.Limits{MaxIterations: -1}},
		"max_cost":                {Limits: lathe.Limits{MaxCost: -1}},
	} {
		_, err := loop.New(m, r, opts)
		if lathe.CodeOf(err) != lathe.CodeInvalidConfig || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := loop.New(nil, r, nil); lathe.CodeOf(err) != lathe.CodeInvalidConfig {
		t.Errorf("no model: got %v", err)
	}
	if _, err := loop.New(m, nil, nil); lathe.CodeOf(err) != lathe.CodeInvalidConfig {
		t.Errorf("no runner: got %v", err)
	}
}

func TestDoReturnsResultAlways(t *testing.T) {
	t.Parallel()
	res, err := newLoop(t, &script{turns: []turn{textTurn("ok")}}, nil).Do(t.Context(), user("x"))
	if err != nil || res == nil || res.Answer != "ok" {
		t.Errorf("answered: got %+v, %v", res, err)
	}
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	res, err = newLoop(t, &script{turns: []turn{textTurn("ok")}}, nil).Do(ctx, user("x"))
	if res == nil || res.Reason != lathe.ReasonCancelled || !errors.Is(err, cause) || lathe.CodeOf(err) != lathe.CodeCancelled {
		t.Errorf("cancelled: got %+v, %v", res, err)
	}
}

// A run whose consumer went away calls no tool.
func TestStoppedRunCallsNoTool(t *testing.T) {
	t.Parallel()
	called := false
	g := newGadget("act", func(context.Context, json.RawMessage) (*lathe.Output, error) {
		called = true
		return &lathe.Output{Data: json.RawMessage(`1`)}, nil
	})
	m := &script{turns: []turn{ask(call("a", "act", `{}`)), textTurn("ok")}}
	for e := range newLoop(t, m, nil, g).Run(t.Context(), user("x")) {
		if _, ok := e.Data.(*event.ToolCallPlanned); ok {
			break
		}
	}
	if called || len(m.requests()) != 1 {
		t.Errorf("the tool was called: %v; model calls: %d", called, len(m.requests()))
	}
}

// What a model says after its finish does not count.
func TestNothingCountsAfterFinish(t *testing.T) {
	t.Parallel()
	res, events := collect(t, t.Context(), newLoop(t, talkative{}, nil), user("x"))
	if res.Reason != lathe.ReasonAnswered || res.Answer != "first" || len(all[*event.TextDelta](events)) != 0 {
		t.Errorf("got %q, %q: %s", res.Reason, res.Answer, types(events))
	}
}

type talkative struct{}

func (talkative) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (talkative) Generate(context.Context, *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		_ = yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: &lathe.Finish{Reason: lathe.FinishStop, Message: lathe.Assistant("first")}}, nil) &&
			yield(lathe.Delta{Kind: lathe.DeltaText, Text: "more"}, nil) &&
			yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: &lathe.Finish{Reason: lathe.FinishStop, Message: lathe.Assistant("second")}}, nil) &&
			yield(lathe.Delta{}, errors.New("late"))
	}
}

func TestRunStartedHashesToolsOfTheRun(t *testing.T) {
	t.Parallel()
	l := newLoop(t, &script{turns: []turn{textTurn("ok")}}, nil, echo("echo"))
	var hashes []string
	for _, client := range []string{"", "yours", "other", ""} {
		in := user("x")
		if client != "" {
			in.ClientTools = []*lathe.ToolSpec{{Name: client, Owner: lathe.OwnerClient}}
		}
		_, events := collect(t, t.Context(), l, in)
		s := all[*event.RunStarted](events)[0]
		if want := 1 + min(len(client), 1); s.Tools.Count != want {
			t.Errorf("tools: got %d, want %d", s.Tools.Count, want)
		}
		hashes = append(hashes, s.Tools.Hash)
	}
	if hashes[0] != hashes[3] || hashes[0] == hashes[1] || hashes[1] == hashes[2] || hashes[0] == hashes[2] {
		t.Errorf("got %v", hashes)
	}
}

// A dry run or a limit that was given to the runner alone holds in the loop too.
func TestLoopTakesOverWhatTheRunnerHas(t *testing.T) {
	t.Parallel()
	ran := 0
	count := newGadget("count", func(context.Context, json.RawMessage) (*lathe.Output, error) {
		ran++
		return &lathe.Output{Data: json.RawMessage(`{"n":1}`)}, nil
	})
	runner := newRunner(t, &tool.Options{Policy: anything{}, Settings: lathe.Settings{Executor: lathe.ExecutorNoop},
		Limits: lathe.Limits{MaxIterations: 1}}, count)
	for name, tc := range map[string]struct {
		opts   *loop.Options
		ran    int
		reason lathe.Reason
	}{
		"nothing said": {nil, 0, lathe.ReasonMaxIterations},
		"limits said":  {&loop.Options{Limits: lathe.Limits{MaxIterations: 2}}, 0, lathe.ReasonAnswered},
		"all said":     {&loop.Options{Limits: lathe.Limits{MaxIterations: 2}, Settings: lathe.Settings{Executor: lathe.ExecutorReal}}, 1, lathe.ReasonAnswered},
	} {
		l, err := loop.New(&script{turns: []turn{ask(call("a", "count", `{}`)), textTurn("done")}}, runner, tc.opts)
		if err != nil {
			t.Fatal(err)
		}
		ran = 0
		if res, _ := l.Do(t.Context(), user("x")); res.Reason != tc.reason || ran != tc.ran {
			t.Errorf("%s: reason %q, ran %d times, want %q and %d", name, res.Reason, ran, tc.reason, tc.ran)
		}
	}
}

// An id that the stream has reported is the id that the call keeps.
func TestCallDeltasHaveTheFinalIDs(t *testing.T) {
	t.Parallel()
	for _, ids := range [][]string{{"x", "y"}, {"x", "x", "x__2"}, {"", "x"}, {"x__2", "x", "x"}, {"a b", "c"}, {"old", "old__2", "new"}} {
		var calls []lathe.ToolCall
		for _, id := range ids {
			calls = append(calls, call(id, "echo", `{}`))
		}
		in := user("x")
		in.Messages = append(in.Messages, lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{call("old", "echo", `{}`)}},
			lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: "old", Name: "echo", Content: "1"}}})
		m := &script{turns: []turn{ask(calls...), textTurn("done")}}
		res, events := collect(t, t.Context(), newLoop(t, m, nil, echo("echo")), in)
		kept := res.History[3].Calls()
		for _, d := range all[*event.ToolCallDelta](events) {
			if d.ToolCallID != "" && d.ToolCallID != kept[d.Index].ID {
				t.Errorf("%q: call %d was reported as %q and is %q", ids, d.Index, d.ToolCallID, kept[d.Index].ID)
			}
		}
		checkRun(t, res, events)
	}
}
