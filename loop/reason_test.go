package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/runinput"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/tool"
)

// Every reason that a loop can end with, by name, with the history it leaves.
func TestReasons(t *testing.T) {
	t.Parallel()
	one := ask(call("a", "echo", `{}`))
	withClient := func(park bool) *loop.Input {
		in := user("x")
		in.Park = park
		in.ClientTools = []*lathe.ToolSpec{{Name: "yours", Schema: json.RawMessage(`{"type":"object"}`), Owner: lathe.OwnerClient}}
		return in
	}
	mixed := ask(call("a", "echo", `{}`), call("b", "yours", `{}`), call("c", "echo", `{"n":3}`))
	cancelled := func(cause error) func(testing.TB) context.Context {
		return func(t testing.TB) context.Context {
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(cause)
			return ctx
		}
	}
	asking := &tool.Options{Policy: asks{}, Approver: later{}}
	for _, tc := range []struct {
		reason  lathe.Reason
		turns   []turn
		opts    loop.Options
		runner  *tool.Options
		in      *loop.Input
		ctx     func(testing.TB) context.Context
		history string
		pending []string
		answer  string
		code    lathe.Code
	}{
		{reason: lathe.ReasonAnswered, turns: []turn{textTurn("hi")}, history: "user x | assistant hi", answer: "hi"},
		{reason: lathe.ReasonClientToolCalls, turns: []turn{mixed}, in: withClient(false), pending: []string{"b"},
			history: "user x | assistant call:a call:b call:c | tool a=ok | tool c=ok"},
		{reason: lathe.ReasonAwaitingToolResults, turns: []turn{mixed}, in: withClient(true), pending: []string{"b"},
			history: "user x | assistant call:a call:b call:c | tool a=ok | tool c=ok"},
		{reason: lathe.ReasonAwaitingApproval, turns: []turn{one}, runner: asking, pending: []string{"a"}, history: "user x | assistant call:a"},
		{reason: lathe.ReasonMaxIterations, turns: []turn{one}, opts: stopping(lathe.Limits{MaxIterations: 1}), history: "user x | assistant call:a | tool a=ok"},
		{reason: lathe.ReasonMaxToolCalls, turns: []turn{ask(call("a", "echo", `{}`), call("b", "echo", `{"n":2}`))},
			opts: stopping(lathe.Limits{MaxToolCalls: 1}), history: "user x | assistant call:a call:b | tool a=ok | tool b=tool_call_limit"},
		{reason: lathe.ReasonToolLoop, turns: []turn{ask(call("a", "none", `{}`))}, opts: stopping(lathe.Limits{MaxUnknownTools: 1}),
			history: "user x | assistant call:a | tool a=unknown_tool"},
		{reason: lathe.ReasonBudgetExceeded, turns: []turn{one}, opts: stopping(lathe.Limits{MaxTokensTotal: 1}), history: "user x | assistant call:a | tool a=ok"},
		{reason: lathe.ReasonNoToolCalls, turns: []turn{textTurn("hi")}, opts: loop.Options{Settings: lathe.Settings{ToolUseMode: lathe.ModeEnforced}},
			history: "user x | assistant hi", answer: "hi", code: "no_tool_calls"},
		{reason: lathe.ReasonToolError, turns: []turn{ask(call("a", "broken", `{}`)), textTurn("hi")}, opts: loop.Options{Settings: lathe.Settings{ToolUseMode: lathe.ModeEnforced}},
			history: "user x | assistant call:a | tool a=execution_failed | assistant hi", answer: "hi", code: "tool_error"},
		{reason: lathe.ReasonUnknownTool, turns: []turn{ask(call("a", "echo", `{}`), call("b", "none", `{}`))}, opts: loop.Options{Settings: lathe.Settings{StrictUnknownTool: true}},
			history: "user x | assistant call:a call:b | tool a=ok | tool b=unknown_tool", code: lathe.CodeUnknownTool},
		{reason: lathe.ReasonContentFilter, turns: []turn{one.reason(lathe.FinishContentFilter)},
			history: "user x | assistant call:a | tool a=incomplete_call", code: "content_filter"},
		{reason: lathe.ReasonContentFilter, turns: []turn{textTurn("so f").reason(lathe.FinishContentFilter)},
			history: "user x | assistant so f", answer: "so f", code: "content_filter"},
		{reason: lathe.ReasonLength, turns: []turn{ask(call("a", "echo", `{}`), call("b", "echo", `{"n`)).reason(lathe.FinishLength)},
			history: "user x | assistant call:a call:b | tool a=incomplete_call | tool b=incomplete_call"},
		{reason: lathe.ReasonLength, turns: []turn{textTurn("so f").reason(lathe.FinishLength)}, history: "user x | assistant so f", answer: "so f"},
		{reason: lathe.ReasonUpstreamError, turns: []turn{one, fails(upstream(503, "down"))}, history: "user x | assistant call:a | tool a=ok", code: lathe.CodeUpstream},
		{reason: lathe.ReasonUpstreamError, turns: []turn{{silent: true}}, history: "user x", code: lathe.CodeUpstreamProtocol},
		{reason: lathe.ReasonGuestFault, turns: []turn{ask(call("a", "echo", `{}`), call("b", "guest", `{}`))}, history: "user x | assistant call:a call:b | tool a=ok | tool b=execution_failed", code: "guest_fault"},
		{reason: lathe.ReasonCancelled, turns: []turn{textTurn("hi")}, ctx: cancelled(errors.New("enough")), history: "user x", code: lathe.CodeCancelled},
		{reason: lathe.ReasonInterrupted, turns: []turn{textTurn("hi")}, ctx: cancelled(loop.ErrInterrupted), history: "user x", code: lathe.CodeInterrupted},
		{reason: lathe.ReasonInternal, turns: []turn{fails(errors.New("odd"))}, history: "user x", code: lathe.CodeInternal},
	} {
		t.Run(string(tc.reason), func(t *testing.T) {
			t.Parallel()
			m := &script{turns: tc.turns}
			l, err := loop.New(m, newRunner(t, tc.runner, echo("echo"), broken("broken"), faulty("guest")), &tc.opts)
			if err != nil {
				t.Fatal(err)
			}
			ctx, in := t.Context(), tc.in
			if tc.ctx != nil {
				ctx = tc.ctx(t)
			}
			if in == nil {
				in = user("x")
			}
			res, events := collect(t, ctx, l, in)
			checkRun(t, res, events)
			if res.Reason != tc.reason || res.Answer != tc.answer {
				t.Errorf("got reason %q, answer %q; want %q, %q", res.Reason, res.Answer, tc.reason, tc.answer)
			}
			if got := shape(res.History); got != tc.history {
				t.Errorf("history:\n got %s\nwant %s", got, tc.history)
			}
			if got := lathe.CodeOf(res.Err); got != tc.code {
				t.Errorf("error: got %v, want code %q", res.Err, tc.code)
			}
			var pending []string
			for _, c := range res.Pending {
				pending = append(pending, c.ID)
			}
			if len(pending) != len(tc.pending) || len(pending) > 0 && pending[0] != tc.pending[0] {
				t.Errorf("pending: got %v, want %v", pending, tc.pending)
			}
			if p := all[*event.RunPaused](events); len(p) > 0 && (p[0].Reason != tc.reason || len(p[0].Pending) != len(tc.pending)) {
				t.Errorf("RunPaused: got %+v", p[0])
			}
			_, doErr := loopError(res)
			if failed := doErr != nil; failed != (tc.reason.Status() == "failed" || tc.reason.Status() == "cancelled") {
				t.Errorf("Failure: got %v for status %q", doErr, tc.reason.Status())
			}
		})
	}
}

func loopError(res *event.Result) (*event.Result, error) { return res, loop.Failure(res) }

func stopping(l lathe.Limits) loop.Options {
	return loop.Options{Limits: l, Settings: lathe.Settings{OnLimit: lathe.OnLimitStop}}
}

// asks asks for every call.
type asks struct{ anything }

func (asks) Call(*lathe.CallInfo) lathe.Verdict {
	return lathe.Verdict{Decision: lathe.Ask, Rule: "ask"}
}

// later answers no approval yet.
type later struct{}

func (later) Approve(context.Context, *lathe.ApprovalRequest) (lathe.Approval, error) {
	return lathe.Approval{}, lathe.ErrPending
}

// The run ends at the next safe point wherever it is cancelled: at each event in turn.
func TestCancelledAtEachEvent(t *testing.T) {
	t.Parallel()
	turns := []turn{ask(call("a", "echo", `{}`), call("b", "broken", `{}`), call("c", "echo", `{"n":3}`)), textTurn(""), textTurn("done")}
	newOne := func() *loop.Loop {
		return newLoop(t, &script{turns: turns}, nil, echo("echo"), broken("broken"))
	}
	_, whole := collect(t, t.Context(), newOne(), user("x"))
	for k := range whole {
		ctx, cancel := context.WithCancel(t.Context())
		var events []event.Event
		var res *event.Result
		for e := range newOne().Run(ctx, user("x")) {
			events = append(events, e)
			if len(events) == k+1 {
				cancel()
			}
			if f, ok := e.Data.(*event.RunFinished); ok {
				res = f.Result
			}
		}
		cancel()
		checkRun(t, res, events)
		want := lathe.ReasonCancelled
		if k >= len(whole)-2 { // the answer was complete, or the end published
			want = lathe.ReasonAnswered
		}
		if res.Reason != want {
			t.Errorf("cancelled at event %d, %s: reason %q, want %q", k, whole[k].Data.EventType(), res.Reason, want)
		}
	}
}

// Stopping the iterator ends everything, wherever it is done, and yields nothing more.
func TestStoppedAtEachEvent(t *testing.T) {
	t.Parallel()
	turns := []turn{ask(call("a", "echo", `{}`), call("b", "broken", `{}`)), textTurn("done")}
	for k := range 30 {
		m := &contextual{script: &script{turns: turns}}
		n := 0
		for range newLoop(t, m, nil, echo("echo"), broken("broken")).Run(t.Context(), user("x")) {
			if n++; n > k {
				break
			}
		}
		if m.ctx != nil && m.ctx.Err() == nil {
			t.Errorf("stopped at event %d: the context of the model's last call is not done", k)
		}
	}
}

// A contextual model keeps the context of its last call.
type contextual struct {
	*script
	ctx context.Context
}

func (m *contextual) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	m.ctx = ctx
	return m.script.Generate(ctx, req)
}

// A run that ends for another reason does not wait for clients and approvals: their calls are
// answered, in call order, so that the history can be sent again.
func TestEndedRunGivesUpWhatIsPending(t *testing.T) {
	t.Parallel()
	client := []*lathe.ToolSpec{{Name: "yours", Schema: json.RawMessage(`{"type":"object"}`), Owner: lathe.OwnerClient}}
	for _, tc := range []struct {
		name     string
		calls    []lathe.ToolCall
		runner   *tool.Options
		settings lathe.Settings
		cancelAt string
		reason   lathe.Reason
		history  string
	}{
		{name: "cancelled with a call of the client", cancelAt: "ToolCallResult", reason: lathe.ReasonCancelled,
			calls:   []lathe.ToolCall{call("a", "yours", `{}`), call("b", "echo", `{}`), call("c", "echo", `{"n":3}`), call("d", "yours", `{}`)},
			history: "user x | assistant call:a call:b call:c call:d | tool a=cancelled | tool b=ok | tool c=cancelled | tool d=cancelled"},
		{name: "cancelled with an approval to come", cancelAt: "ApprovalRequested", reason: lathe.ReasonCancelled, runner: &tool.Options{Policy: asks{}, Approver: later{}},
			calls:   []lathe.ToolCall{call("a", "echo", `{}`), call("b", "echo", `{"n":3}`)},
			history: "user x | assistant call:a call:b | tool a=cancelled | tool b=cancelled"},
		{name: "a guest broke its memory", reason: lathe.ReasonGuestFault,
			calls:   []lathe.ToolCall{call("a", "yours", `{}`), call("b", "guest", `{}`), call("c", "yours", `{}`)},
			history: "user x | assistant call:a call:b call:c | tool a=cancelled | tool b=execution_failed | tool c=cancelled"},
		{name: "an unknown tool, strictly", reason: lathe.ReasonUnknownTool, settings: lathe.Settings{StrictUnknownTool: true},
			calls:   []lathe.ToolCall{call("a", "yours", `{}`), call("b", "none", `{}`)},
			history: "user x | assistant call:a call:b | tool a=cancelled | tool b=unknown_tool"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			l, err := loop.New(&script{turns: []turn{ask(tc.calls...)}}, newRunner(t, tc.runner, echo("echo"), faulty("guest")), &loop.Options{Settings: tc.settings})
			if err != nil {
				t.Fatal(err)
			}
			in := user("x")
			in.ClientTools = client
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var events []event.Event
			var res *event.Result
			for e := range l.Run(ctx, in) {
				events = append(events, e)
				if e.Data.EventType() == tc.cancelAt {
					cancel()
				}
				if f, ok := e.Data.(*event.RunFinished); ok {
					res = f.Result
				}
			}
			checkRun(t, res, events)
			if res.Reason != tc.reason {
				t.Errorf("reason: got %q, want %q", res.Reason, tc.reason)
			}
			if got := shape(res.History); got != tc.history {
				t.Errorf("history:\n got %s\nwant %s", got, tc.history)
			}
			var seqs []int
			for _, c := range res.Trace[0].Calls {
				seqs = append(seqs, c.Seq)
			}
			if !slices.IsSorted(seqs) || len(seqs) != len(tc.calls) {
				t.Errorf("trace: got seqs %v for %d calls", seqs, len(tc.calls))
			}
		})
	}
}

// A blank answer ends a run empty_answer, after it was asked for once more where tools were called. It does not replace the reasons
// of an answer that was cut off.
func TestBlankAnswersAreNoAnswers(t *testing.T) {
	t.Parallel()
	thought := turn{finish: lathe.Finish{Reason: lathe.FinishStop, Message: lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Reasoning{Text: "hm"}}}}}
	refusal := turn{finish: lathe.Finish{Reason: lathe.FinishStop, Message: lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Refusal{Text: "no"}}}}}
	for name, tc := range map[string]struct {
		turns    []turn
		settings lathe.Settings
		relay    *lathe.Relay
		reason   lathe.Reason
		blank    lathe.Blank
		requests int
	}{
		"at once":           {turns: []turn{textTurn(" \n")}, reason: lathe.ReasonEmptyAnswer, blank: lathe.BlankOutputDropped, requests: 1},
		"thought alone":     {turns: []turn{thought}, reason: lathe.ReasonEmptyAnswer, blank: lathe.BlankReasoning, requests: 1},
		"asked again":       {turns: []turn{ask(call("a", "echo", `{}`)), textTurn(""), textTurn("")}, reason: lathe.ReasonEmptyAnswer, blank: lathe.BlankOutputDropped, requests: 3},
		"answered then":     {turns: []turn{ask(call("a", "echo", `{}`)), textTurn(""), textTurn("hi")}, reason: lathe.ReasonAnswered, requests: 3},
		"without tools":     {turns: []turn{textTurn("")}, settings: lathe.Settings{ToolUseMode: lathe.ModeDisabled}, reason: lathe.ReasonEmptyAnswer, blank: lathe.BlankOutputDropped, requests: 1},
		"enforced":          {turns: []turn{textTurn("")}, settings: lathe.Settings{ToolUseMode: lathe.ModeEnforced}, reason: lathe.ReasonNoToolCalls, requests: 1},
		"cut off":           {turns: []turn{textTurn("").reason(lathe.FinishLength)}, reason: lathe.ReasonLength, blank: lathe.BlankLength, requests: 1},
		"filtered":          {turns: []turn{textTurn("").reason(lathe.FinishContentFilter)}, reason: lathe.ReasonContentFilter, requests: 1},
		"refused":           {turns: []turn{refusal}, reason: lathe.ReasonAnswered, requests: 1},
		"relayed":           {turns: []turn{textTurn("")}, relay: &lathe.Relay{}, reason: lathe.ReasonEmptyAnswer, blank: lathe.BlankOutputDropped, requests: 1},
		"relayed in a form": {turns: []turn{textTurn("")}, relay: &lathe.Relay{Opaque: true}, reason: lathe.ReasonAnswered, blank: lathe.BlankOutputDropped, requests: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &script{turns: tc.turns}
			l, err := loop.New(m, newRunner(t, nil, echo("echo")), &loop.Options{Settings: tc.settings})
			if err != nil {
				t.Fatal(err)
			}
			in := user("x")
			runinput.Of(in).Relay = tc.relay
			res, events := collect(t, t.Context(), l, in)
			checkRun(t, res, events)
			if res.Reason != tc.reason || res.Blank != tc.blank || len(m.asked) != tc.requests {
				t.Errorf("ended %s, blank %q, after %d requests", res.Reason, res.Blank, len(m.asked))
			}
			if failed := lathe.CodeOf(loop.Failure(res)) == lathe.Code(lathe.ReasonEmptyAnswer); failed != (tc.reason == lathe.ReasonEmptyAnswer) {
				t.Errorf("the error is %v", res.Err)
			}
		})
	}
}
