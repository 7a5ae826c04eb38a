package loop_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
)

func relaxed(s lathe.Settings) *loop.Options { return &loop.Options{Settings: s} }

func TestModes(t *testing.T) {
	t.Parallel()
	no := false
	twoCalls := ask(call("a", "echo", `{}`), call("b", "echo", `{"n":2}`))
	badThenGood := []turn{ask(call("a", "echo", `{"n":"x"}`)), ask(call("b", "echo", `{}`)), textTurn("ok")}
	for _, tc := range []struct {
		name     string
		settings lathe.Settings
		info     lathe.ModelInfo
		turns    []turn
		reason   lathe.Reason
		history  string
		failed   []string
	}{
		{name: "relaxed needs no call", turns: []turn{textTurn("hi")}, reason: lathe.ReasonAnswered, history: "user x | assistant hi"},
		{name: "enforced without a call", settings: lathe.Settings{ToolUseMode: lathe.ModeEnforced}, turns: []turn{textTurn("hi")},
			reason: lathe.ReasonNoToolCalls, history: "user x | assistant hi"},
		{name: "enforced with a call", settings: lathe.Settings{ToolUseMode: lathe.ModeEnforced}, turns: []turn{ask(call("a", "echo", `{}`)), textTurn("hi")},
			reason: lathe.ReasonAnswered, history: "user x | assistant call:a | tool a=ok | assistant hi"},
		{name: "fatal: a tool that ends failed", settings: lathe.Settings{ToolUseMode: lathe.ModeEnforced},
			turns:  []turn{ask(call("a", "echo", `{}`), call("b", "broken", `{}`), call("c", "also_broken", `{}`)), textTurn("hi")},
			reason: lathe.ReasonToolError, history: "user x | assistant call:a call:b call:c | tool a=ok | tool b=execution_failed | tool c=execution_failed | assistant hi",
			failed: []string{"also_broken", "broken"}},
		{name: "fatal: a later success clears", settings: lathe.Settings{ToolUseMode: lathe.ModeEnforced}, turns: badThenGood,
			reason: lathe.ReasonAnswered, history: "user x | assistant call:a | tool a=invalid_arguments | assistant call:b | tool b=ok | assistant ok"},
		{name: "tolerated: one success", settings: lathe.Settings{ToolUseMode: lathe.ModeEnforced, FailurePolicy: lathe.FailureTolerated},
			turns:  []turn{ask(call("a", "echo", `{}`), call("b", "broken", `{}`)), textTurn("hi")},
			reason: lathe.ReasonAnswered, history: "user x | assistant call:a call:b | tool a=ok | tool b=execution_failed | assistant hi"},
		{name: "tolerated: no success", settings: lathe.Settings{ToolUseMode: lathe.ModeEnforced, FailurePolicy: lathe.FailureTolerated},
			turns:  []turn{ask(call("b", "broken", `{}`)), textTurn("hi")},
			reason: lathe.ReasonToolError, history: "user x | assistant call:b | tool b=execution_failed | assistant hi", failed: []string{"broken"}},
		{name: "the failure policy is for enforced only", settings: lathe.Settings{FailurePolicy: lathe.FailureFatal},
			turns:  []turn{ask(call("b", "broken", `{}`)), textTurn("hi")},
			reason: lathe.ReasonAnswered, history: "user x | assistant call:b | tool b=execution_failed | assistant hi"},
		{name: "disabled: calls are dropped", settings: lathe.Settings{ToolUseMode: lathe.ModeDisabled},
			turns:  []turn{{finish: lathe.Finish{Reason: lathe.FinishToolCalls, Message: lathe.Message{Parts: []lathe.Part{lathe.Text{Text: "hi"}, call("a", "echo", `{}`)}}}}},
			reason: lathe.ReasonAnswered, history: "user x | assistant hi"},
		{name: "disabled: nothing but calls", settings: lathe.Settings{ToolUseMode: lathe.ModeDisabled}, turns: []turn{ask(call("a", "echo", `{}`))},
			reason: lathe.ReasonEmptyAnswer, history: "user x"},
		{name: "a model without tools", info: lathe.ModelInfo{NoTools: true}, settings: lathe.Settings{ToolUseMode: lathe.ModeEnforced}, turns: []turn{textTurn("hi")},
			reason: lathe.ReasonAnswered, history: "user x | assistant hi"},
		{name: "parallel false", settings: lathe.Settings{ParallelToolCalls: &no}, turns: []turn{twoCalls, textTurn("hi")},
			reason: lathe.ReasonAnswered, history: "user x | assistant call:a call:b | tool a=ok | tool b=too_many_calls | assistant hi"},
		{name: "a model without parallel calls", info: lathe.ModelInfo{NoParallel: true}, turns: []turn{twoCalls, textTurn("hi")},
			reason: lathe.ReasonAnswered, history: "user x | assistant call:a call:b | tool a=ok | tool b=too_many_calls | assistant hi"},
		{name: "parallel unset", turns: []turn{twoCalls, textTurn("hi")},
			reason: lathe.ReasonAnswered, history: "user x | assistant call:a call:b | tool a=ok | tool b=ok | assistant hi"},
		{name: "tool choice none", settings: lathe.Settings{ToolChoice: lathe.ToolChoice{Mode: lathe.ChoiceNone}}, turns: []turn{ask(call("a", "echo", `{}`))},
			reason: lathe.ReasonEmptyAnswer, history: "user x"},
		{name: "noop runs no tool", settings: lathe.Settings{Executor: lathe.ExecutorNoop}, turns: []turn{ask(call("a", "broken", `{}`)), textTurn("hi")},
			reason: lathe.ReasonAnswered, history: "user x | assistant call:a | tool a=ok | assistant hi"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := &script{turns: tc.turns, info: tc.info}
			res, events := collect(t, t.Context(), newLoop(t, m, relaxed(tc.settings), echo("echo"), broken("broken"), broken("also_broken")), user("x"))
			if res.Reason != tc.reason {
				t.Errorf("reason: got %q, want %q", res.Reason, tc.reason)
			}
			if got := shape(res.History); got != tc.history {
				t.Errorf("history:\n got %s\nwant %s", got, tc.history)
			}
			if diff := cmp.Diff(tc.failed, res.FailedTools); diff != "" {
				t.Errorf("failed tools (-want +got):\n%s", diff)
			}
			checkRun(t, res, events)
		})
	}
}

func TestDisabledSendsNoToolsAndCountsCalls(t *testing.T) {
	t.Parallel()
	m := &script{turns: []turn{ask(call("a", "echo", `{}`), call("b", "echo", `{}`))}}
	res, events := collect(t, t.Context(), newLoop(t, m, relaxed(lathe.Settings{ToolUseMode: lathe.ModeDisabled}), echo("echo")), user("x"))
	if q := m.requests()[0]; q.tools != nil || q.choice != (lathe.ToolChoice{}) || q.parallel != nil {
		t.Errorf("request: got tools %v, choice %v", q.tools, q.choice)
	}
	if got := all[*event.ModelCallFinished](events)[0]; got.IgnoredToolCalls != 2 || got.ToolCalls != 0 || res.Trace[0].IgnoredToolCalls != 2 {
		t.Errorf("ignored: event %+v, trace %+v", got, res.Trace[0])
	}
	if got, want := types(events), "RunStarted ModelCallStarted ModelCallFinished RunFinished"; got != want {
		t.Errorf("events:\n got %s\nwant %s", got, want)
	}
	if s := all[*event.RunStarted](events)[0]; s.Tools.Count != 0 || s.ToolUseMode != lathe.ModeDisabled {
		t.Errorf("RunStarted: got %+v", s)
	}
}

func TestToolChoiceForcesFirstTurnOnly(t *testing.T) {
	t.Parallel()
	required := lathe.ToolChoice{Mode: lathe.ChoiceRequired}
	named := lathe.ToolChoice{Mode: lathe.ChoiceFunction, Name: "echo"}
	auto := lathe.ToolChoice{Mode: lathe.ChoiceAuto}
	for _, tc := range []struct {
		choice lathe.ToolChoice
		every  bool
		second lathe.ToolChoice
	}{
		{choice: required},
		{choice: required, every: true, second: required},
		{choice: named},
		{choice: named, every: true, second: named},
		{choice: auto, second: auto},
		{},
	} {
		m := &script{turns: []turn{ask(call("a", "echo", `{}`)), textTurn("ok")}}
		collect(t, t.Context(), newLoop(t, m, relaxed(lathe.Settings{ToolChoice: tc.choice, ToolChoiceEveryTurn: tc.every}), echo("echo")), user("x"))
		reqs := m.requests()
		if reqs[0].choice != tc.choice || reqs[1].choice != tc.second {
			t.Errorf("%+v: got %v then %v", tc, reqs[0].choice, reqs[1].choice)
		}
	}
}

func TestParallelIsSentAsSet(t *testing.T) {
	t.Parallel()
	yes := true
	m := &script{turns: []turn{textTurn("ok")}}
	collect(t, t.Context(), newLoop(t, m, relaxed(lathe.Settings{ParallelToolCalls: &yes}), echo("echo")), user("x"))
	collect(t, t.Context(), newLoop(t, m, nil, echo("echo")), user("x"))
	collect(t, t.Context(), newLoop(t, m, relaxed(lathe.Settings{ParallelToolCalls: &yes})), user("x"))
	reqs := m.requests()
	if reqs[0].parallel == nil || !*reqs[0].parallel || reqs[1].parallel != nil || reqs[2].parallel != nil {
		t.Errorf("got %v, %v, %v", reqs[0].parallel, reqs[1].parallel, reqs[2].parallel)
	}
}

func TestEmptyFinalIsAskedForOnce(t *testing.T) {
	t.Parallel()
	one := ask(call("a", "echo", `{}`))
	const head = "user x | assistant call:a | tool a=ok"
	for _, tc := range []struct {
		name     string
		settings lathe.Settings
		turns    []turn
		history  string
		answer   string
		tools    bool // sent with the last request
	}{
		{name: "repaired", turns: []turn{one, textTurn(" \n"), textTurn("done")}, answer: "done",
			history: head + " | user* Please provide your final answer. | assistant done"},
		{name: "once only", turns: []turn{one, textTurn(""), textTurn("")}, history: head},
		{name: "with its own text and tools", settings: lathe.Settings{FixEmptyFinalText: "Well?", FixEmptyFinalKeepTools: true},
			turns: []turn{one, textTurn(""), textTurn("done")}, answer: "done", tools: true, history: head + " | user* Well? | assistant done"},
		{name: "tools come back", settings: lathe.Settings{FixEmptyFinalKeepTools: true},
			turns: []turn{one, textTurn(""), ask(call("b", "echo", `{"n":3}`)), textTurn("done")}, answer: "done", tools: true,
			history: head + " | user* Please provide your final answer. | assistant call:b | tool b=ok | assistant done"},
		{name: "off", settings: lathe.Settings{NoFixEmptyFinal: true}, turns: []turn{one, textTurn("")}, history: head, tools: true},
		{name: "not without a call", turns: []turn{textTurn("")}, history: "user x", tools: true},
		{name: "not when disabled", settings: lathe.Settings{ToolUseMode: lathe.ModeDisabled}, turns: []turn{textTurn("")}, history: "user x"},
		{name: "a refusal is an answer", turns: []turn{one, {finish: lathe.Finish{Reason: lathe.FinishStop, Message: lathe.Message{Parts: []lathe.Part{lathe.Refusal{Text: "I will not"}}}}}},
			answer: "I will not", tools: true, history: head + " | assistant lathe.Refusal"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := &script{turns: tc.turns}
			res, events := collect(t, t.Context(), newLoop(t, m, relaxed(tc.settings), echo("echo")), user("x"))
			if (res.Reason == lathe.ReasonAnswered) != (tc.answer != "") || res.Answer != tc.answer {
				t.Errorf("got reason %q, answer %q", res.Reason, res.Answer)
			}
			if got := shape(res.History); got != tc.history {
				t.Errorf("history:\n got %s\nwant %s", got, tc.history)
			}
			reqs := m.requests()
			if len(reqs) != len(tc.turns) {
				t.Errorf("model calls: got %d, want %d", len(reqs), len(tc.turns))
			}
			if got := len(reqs[len(reqs)-1].tools) > 0; got != tc.tools {
				t.Errorf("tools with the last request: got %v, want %v", got, tc.tools)
			}
			checkRun(t, res, events)
		})
	}
}

func TestFallbackGoesWithoutTools(t *testing.T) {
	t.Parallel()
	cannot := upstream(404, "No endpoints found that support tool use. Try disabling it.")
	for _, tc := range []struct {
		name     string
		err      error
		settings lathe.Settings
		retried  bool
	}{
		{"404 no endpoints", cannot, lathe.Settings{FallbackRetryCount: 1}, true},
		{"400 names tools", upstream(400, "registry/llama does not support tools"), lathe.Settings{FallbackRetryCount: 1}, true},
		{"400 names function calling", upstream(400, "Function calling is not enabled for this model"), lathe.Settings{FallbackRetryCount: 1}, true},
		{"400 names tool choice", upstream(400, `"auto" tool choice requires --enable-auto-tool-choice`), lathe.Settings{FallbackRetryCount: 1}, true},
		{"not by default", cannot, lathe.Settings{}, false},
		{"not when enforced", cannot, lathe.Settings{FallbackRetryCount: 1, ToolUseMode: lathe.ModeEnforced}, false},
		{"not when disabled", cannot, lathe.Settings{FallbackRetryCount: 1, ToolUseMode: lathe.ModeDisabled}, false},
		{"400 about something else", upstream(400, "temperature is out of range"), lathe.Settings{FallbackRetryCount: 1}, false},
		{"400 about the messages of calls", upstream(400, "messages with role 'tool' must follow 'tool_calls'"), lathe.Settings{FallbackRetryCount: 1}, false},
		{"400 about an answer to a call", upstream(400, "tool_call_id x answers none of the tool calls before it"), lathe.Settings{FallbackRetryCount: 1}, false},
		{"404 model not found", upstream(404, "model not found"), lathe.Settings{FallbackRetryCount: 1}, false},
		{"401", upstream(401, "no tools for you"), lathe.Settings{FallbackRetryCount: 1}, false},
		{"403", upstream(403, "tools are forbidden"), lathe.Settings{FallbackRetryCount: 1}, false},
		{"408", upstream(408, "tools timed out"), lathe.Settings{FallbackRetryCount: 1}, false},
		{"429", upstream(429, "too many tools"), lathe.Settings{FallbackRetryCount: 1}, false},
		{"500", upstream(500, "tools param requires a flag"), lathe.Settings{FallbackRetryCount: 1}, false},
		{"503", upstream(503, "no endpoints found that support tool use"), lathe.Settings{FallbackRetryCount: 1}, false},
		{"not an upstream error", errors.New("does not support tools"), lathe.Settings{FallbackRetryCount: 1}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := &script{turns: []turn{fails(tc.err), textTurn("plain")}}
			res, events := collect(t, t.Context(), newLoop(t, m, relaxed(tc.settings), echo("echo")), user("x"))
			reqs := m.requests()
			if got := len(reqs) == 2; got != tc.retried {
				t.Fatalf("retried: got %v, want %v (%s)", got, tc.retried, types(events))
			}
			checkRun(t, res, events)
			if !tc.retried {
				return
			}
			if res.Reason != lathe.ReasonAnswered || len(reqs[0].tools) != 1 || reqs[1].tools != nil {
				t.Errorf("got reason %q, tools %v then %v", res.Reason, reqs[0].tools, reqs[1].tools)
			}
			done := all[*event.ModelCallFinished](events)
			if done[0].Attempt != 1 || done[0].Status != "error" || done[1].Attempt != 2 || all[*event.RunFinished](events)[0].Turns != 1 {
				t.Errorf("attempts: got %+v, %+v", done[0], done[1])
			}
		})
	}
}

// The retries are counted over the run, and a request that had no tools is not made again.
func TestFallbackEnds(t *testing.T) {
	t.Parallel()
	none := &script{turns: []turn{fails(upstream(400, "tools: none"))}}
	if res, _ := newLoop(t, none, relaxed(lathe.Settings{FallbackRetryCount: 5})).Do(t.Context(), user("x")); len(none.requests()) != 1 || res.Reason != lathe.ReasonUpstreamError {
		t.Errorf("without tools: got %d model calls, reason %q", len(none.requests()), res.Reason)
	}
	m := &script{turns: []turn{fails(upstream(404, "no endpoints found that support tool use"))}}
	res, events := collect(t, t.Context(), newLoop(t, m, relaxed(lathe.Settings{FallbackRetryCount: 5}), echo("echo")), user("x"))
	if n := len(m.requests()); n != 2 || res.Reason != lathe.ReasonUpstreamError {
		t.Errorf("got %d model calls, reason %q", n, res.Reason)
	}
	checkRun(t, res, events)
}

// The count is of turns: each may be repeated once without tools, and the next one has them again.
func TestFallbackCountsTurns(t *testing.T) {
	t.Parallel()
	cannot := fails(upstream(404, "no endpoints found that support tool use"))
	turns := []turn{ask(call("a", "echo", `{}`)), cannot, textTurn(""), cannot, textTurn("done")}
	for count, want := range []struct {
		reason lathe.Reason
		asked  string // of each request: with tools, or without
		answer string
	}{
		{lathe.ReasonUpstreamError, "with with", ""},
		{lathe.ReasonUpstreamError, "with with without with", ""},
		{lathe.ReasonAnswered, "with with without with without", "done"},
		{lathe.ReasonAnswered, "with with without with without", "done"},
	} {
		m := &script{turns: turns}
		l := newLoop(t, m, relaxed(lathe.Settings{FallbackRetryCount: count, FixEmptyFinalKeepTools: true}), echo("echo"))
		res, events := collect(t, t.Context(), l, user("x"))
		var asked []string
		for _, q := range m.requests() {
			if len(q.tools) > 0 {
				asked = append(asked, "with")
			} else {
				asked = append(asked, "without")
			}
		}
		if got := strings.Join(asked, " "); res.Reason != want.reason || got != want.asked || res.Answer != want.answer {
			t.Errorf("count %d: %s, requests %s, answer %q; want %+v", count, res.Reason, got, res.Answer, want)
		}
		checkRun(t, res, events)
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	bad := lathe.ToolCall{Arguments: `{"n":`, Dialect: "tags", ParseError: lathe.CodePayloadParseError}
	text := lathe.Delta{Kind: lathe.DeltaParseError, Code: lathe.CodePayloadParseError, Text: `{"n":`, Bytes: 5}
	streamed := ask(bad)
	streamed.before = []lathe.Delta{text}
	whole := ask(bad)
	whole.before = nil

	for name, first := range map[string]turn{"streamed": streamed, "only in the message": whole} {
		t.Run("tell, "+name, func(t *testing.T) {
			t.Parallel()
			m := &script{turns: []turn{first, textTurn("sorry")}}
			res, events := collect(t, t.Context(), newLoop(t, m, nil, echo("echo")), user("x"))
			pe := all[*event.ToolCallParseError](events)
			if len(pe) != 1 || pe[0].Error != lathe.CodePayloadParseError || pe[0].ExcerptBytes != 5 || pe[0].RawExcerpt != `{"n":` {
				t.Errorf("parse errors: got %+v", pe)
			}
			r := all[*event.ToolCallResult](events)
			if len(r) != 1 || r[0].ErrorType != lathe.CodePayloadParseError || r[0].Tool != "unknown" {
				t.Errorf("results: got %+v", r)
			}
			if res.Reason != lathe.ReasonAnswered || len(m.requests()) != 2 {
				t.Errorf("got reason %q after %d model calls", res.Reason, len(m.requests()))
			}
			checkRun(t, res, events)
		})
		t.Run("retry without tools, "+name, func(t *testing.T) {
			t.Parallel()
			m := &script{turns: []turn{first, textTurn("plain")}}
			opts := relaxed(lathe.Settings{OnParseError: lathe.ParseErrorRetryWithout})
			res, events := collect(t, t.Context(), newLoop(t, m, opts, echo("echo")), user("x"))
			reqs := m.requests()
			if len(reqs) != 2 || reqs[1].tools != nil || len(reqs[1].messages) != 1 {
				t.Errorf("requests: got %+v", reqs)
			}
			if got := shape(res.History); got != "user x | assistant plain" {
				t.Errorf("history: got %s", got)
			}
			if pe := all[*event.ToolCallParseError](events); len(pe) != 1 {
				t.Errorf("parse errors: got %+v", pe)
			}
			if d := all[*event.ModelCallFinished](events); d[0].IgnoredToolCalls != 1 || d[0].Message != nil || d[1].Attempt != 2 || res.Usage.TotalTokens != 30 {
				t.Errorf("attempts: got %+v, %+v", d[0], d[1])
			}
			checkRun(t, res, events)
		})
	}
}

func TestParseErrorExcerptIsBounded(t *testing.T) {
	t.Parallel()
	long := ""
	for len(long) < 400 {
		long += "żółw"
	}
	first := textTurn("text")
	first.before = []lathe.Delta{{Kind: lathe.DeltaParseError, Code: lathe.CodePayloadTooLarge, Text: long, Bytes: 9000}}
	_, events := collect(t, t.Context(), newLoop(t, &script{turns: []turn{first}}, nil), user("x"))
	pe := all[*event.ToolCallParseError](events)[0]
	if n := len(pe.RawExcerpt); n > 200 || n < 197 || pe.RawExcerpt != long[:n] || pe.ExcerptBytes != 9000 {
		t.Errorf("got %d bytes of excerpt, size %d", n, pe.ExcerptBytes)
	}
	for _, c := range pe.RawExcerpt {
		if c == '\uFFFD' {
			t.Error("the excerpt was cut inside a rune")
		}
	}
}

// With tool choice none, tools are sent, and a call that the model makes all the same is not published as a call.
func TestToolChoiceNoneSendsTools(t *testing.T) {
	t.Parallel()
	m := &script{turns: []turn{ask(call("a", "echo", `{}`))}}
	_, events := collect(t, t.Context(), newLoop(t, m, relaxed(lathe.Settings{ToolChoice: lathe.ToolChoice{Mode: lathe.ChoiceNone}}), echo("echo")), user("x"))
	if q := m.requests()[0]; len(q.tools) != 1 || q.choice.Mode != lathe.ChoiceNone {
		t.Errorf("request: got tools %v, choice %v", q.tools, q.choice)
	}
	if got, want := types(events), "RunStarted ModelCallStarted ModelCallFinished RunFinished"; got != want {
		t.Errorf("events:\n got %s\nwant %s", got, want)
	}
}

func TestDeprecatedSyntaxIsReported(t *testing.T) {
	t.Parallel()
	old := lathe.ToolCall{ID: "a", Name: "echo", Arguments: `{}`, Dialect: "tags", Deprecated: true}
	_, events := collect(t, t.Context(), newLoop(t, &script{turns: []turn{ask(old, old), ask(old), textTurn("ok")}}, nil, echo("echo")), user("x"))
	if p := all[*event.ToolCallProposed](events); len(p) != 3 || !p[2].DeprecatedSyntax {
		t.Errorf("proposed: %+v", p)
	}
}

// Each unreadable call is reported once, streamed or not, in every turn.
func TestParseErrorsOfSeveralTurns(t *testing.T) {
	t.Parallel()
	bad := lathe.ToolCall{Arguments: "<", ParseError: lathe.CodePayloadParseError}
	streamed, whole := ask(bad), ask(bad, bad)
	streamed.before = []lathe.Delta{{Kind: lathe.DeltaParseError, Code: lathe.CodePayloadParseError, Text: "<"}}
	whole.before = nil
	res, events := collect(t, t.Context(), newLoop(t, &script{turns: []turn{streamed, whole, textTurn("ok")}}, nil), user("x"))
	if n := len(all[*event.ToolCallParseError](events)); n != 3 {
		t.Errorf("parse errors: got %d, want 3", n)
	}
	checkRun(t, res, events)
}
