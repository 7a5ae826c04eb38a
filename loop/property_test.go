package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

// Whatever the model says, whatever the tools do and whenever the caller cancels: the run ends once,
// each call is answered once and in order, events come in their order, and no goroutine is left.
func TestRunHoldsForAnythingThatHappens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := drawScene(rt)
		var wrong string // reported to rapid outside of the bubble
		synctest.Test(t, func(t *testing.T) { wrong = s.play(t) })
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

// A scene is one random run.
type scene struct {
	turns    []turn
	settings lathe.Settings
	limits   lathe.Limits
	policy   lathe.Policy
	later    bool
	client   bool
	park     bool
	cancelAt int // cancel at that event, counted from 1; 0: never
	stopAt   int
	cause    error
}

func drawScene(t *rapid.T) *scene {
	s := &scene{
		turns: rapid.SliceOfN(rapid.Custom(drawTurn), 1, 6).Draw(t, "turns"),
		settings: lathe.Settings{
			ToolUseMode:            rapid.SampledFrom([]lathe.ToolUseMode{"", lathe.ModeEnforced, lathe.ModeDisabled}).Draw(t, "mode"),
			FailurePolicy:          rapid.SampledFrom([]lathe.FailurePolicy{"", lathe.FailureTolerated}).Draw(t, "failure"),
			MaxParallel:            rapid.IntRange(0, 3).Draw(t, "parallel"),
			NoFixEmptyFinal:        rapid.Bool().Draw(t, "no fix"),
			FixEmptyFinalKeepTools: rapid.Bool().Draw(t, "keep tools"),
			FallbackRetryCount:     rapid.IntRange(0, 1).Draw(t, "fallback"),
			OnParseError:           rapid.SampledFrom([]lathe.OnParseError{"", lathe.ParseErrorRetryWithout}).Draw(t, "on parse error"),
			OnLimit:                rapid.SampledFrom([]lathe.OnLimit{"", lathe.OnLimitStop}).Draw(t, "on limit"),
			StrictUnknownTool:      rapid.IntRange(0, 3).Draw(t, "strict") == 0,
			ToolChoice:             lathe.ToolChoice{Mode: rapid.SampledFrom([]string{"", "", lathe.ChoiceNone, lathe.ChoiceRequired}).Draw(t, "choice")},
		},
		limits: lathe.Limits{
			MaxIterations:    rapid.IntRange(1, 6).Draw(t, "max_iterations"),
			MaxToolCalls:     rapid.IntRange(1, 8).Draw(t, "max_total_tool_calls"),
			MaxUnknownTools:  rapid.IntRange(1, 3).Draw(t, "max_unknown_tools"),
			MaxRepeatedCalls: rapid.IntRange(1, 3).Draw(t, "max_repeated_calls"),
			ToolTimeout:      time.Second,
			RunTimeout:       time.Duration(rapid.IntRange(1, 8).Draw(t, "run_timeout")) * 500 * time.Millisecond,
			MaxTokensTotal:   int64(rapid.SampledFrom([]int{0, 0, 20, 40}).Draw(t, "max_tokens_total")),
		},
		policy:   rapid.SampledFrom([]lathe.Policy{anything{}, anything{}, asks{}, policy.Effects{}}).Draw(t, "policy"),
		later:    rapid.Bool().Draw(t, "later"),
		client:   rapid.Bool().Draw(t, "client"),
		park:     rapid.Bool().Draw(t, "park"),
		cancelAt: rapid.IntRange(0, 25).Draw(t, "cancel at"),
		stopAt:   max(0, rapid.IntRange(-40, 20).Draw(t, "stop at")),
		cause:    rapid.SampledFrom([]error{nil, loop.ErrInterrupted}).Draw(t, "cause"),
	}
	if p := rapid.IntRange(0, 2).Draw(t, "parallel_tool_calls"); p > 0 {
		b := p == 1
		s.settings.ParallelToolCalls = &b
	}
	return s
}

func drawTurn(t *rapid.T) turn {
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0:
		return textTurn(rapid.SampledFrom([]string{"", " ", "answer"}).Draw(t, "text"))
	case 1:
		x := fails(rapid.SampledFrom([]error{
			errors.New("odd"), upstream(500, "down"), upstream(404, "no endpoints found that support tool use"), upstream(401, "who"),
		}).Draw(t, "error"))
		x.before = []lathe.Delta{{Kind: lathe.DeltaText, Text: "begun"}, {Kind: lathe.DeltaCallStart, ID: "a", Name: "echo"}}
		return x
	case 2:
		return rapid.SampledFrom([]turn{{block: true}, {silent: true}}).Draw(t, "no end")
	default:
	}
	calls := rapid.SliceOfN(rapid.Custom(drawCall), 1, 4).Draw(t, "calls")
	x := ask(calls...)
	if rapid.Bool().Draw(t, "with text") {
		x.finish.Message.Parts = append([]lathe.Part{lathe.Text{Text: "let me see"}}, x.finish.Message.Parts...)
	}
	if rapid.IntRange(0, 4).Draw(t, "retried") == 0 {
		x.before = append([]lathe.Delta{{Kind: lathe.DeltaRetry, Retry: &lathe.Retry{Attempt: 1, Wait: time.Millisecond,
			Err: &lathe.Error{Code: lathe.CodeUpstream, Err: &lathe.UpstreamError{Kind: lathe.UpstreamTimeout}}}}}, x.before...)
	}
	if rapid.IntRange(0, 5).Draw(t, "unreadable") == 0 {
		x.before = append(x.before, lathe.Delta{Kind: lathe.DeltaParseError, Code: lathe.CodePayloadParseError, Text: "<tool"})
	}
	return x.reason(rapid.SampledFrom([]lathe.FinishReason{
		lathe.FinishToolCalls, lathe.FinishToolCalls, lathe.FinishToolCalls, lathe.FinishToolCalls, lathe.FinishLength, lathe.FinishContentFilter,
	}).Draw(t, "finish"))
}

func drawCall(t *rapid.T) lathe.ToolCall {
	c := lathe.ToolCall{
		ID:         rapid.SampledFrom([]string{"a", "b", "a__2", "", " ", " a "}).Draw(t, "id"),
		Name:       rapid.SampledFrom([]string{"echo", "echo", "broken", "panics", "sleeps", "deaf", "guest", "none", "", "yours", "ec.ho"}).Draw(t, "name"),
		Arguments:  rapid.SampledFrom([]string{`{}`, `{"n":1}`, `{"n":2}`, ``, `null`, `{"n":"x"}`, `{"n":`, `[1]`, `{"n":1,"n":2}`, "\xff"}).Draw(t, "args"),
		Incomplete: rapid.IntRange(0, 9).Draw(t, "incomplete") == 0,
	}
	if rapid.IntRange(0, 9).Draw(t, "parse error") == 0 {
		c.ParseError = lathe.CodePayloadParseError
		c.Dialect = "tags"
	}
	return c
}

// play runs the scene and says what is wrong.
func (s *scene) play(t *testing.T) string {
	// deaf does not hear its context: it is let go when the run is over.
	over := make(chan struct{})
	tools := []lathe.Tool{
		echo("echo"), broken("broken"), faulty("guest"),
		newGadget("panics", func(context.Context, json.RawMessage) (*lathe.Output, error) { panic("of a tool") }),
		newGadget("sleeps", func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(700 * time.Millisecond):
				return &lathe.Output{Data: json.RawMessage(`"slept"`)}, nil
			}
		}),
		newGadget("deaf", func(context.Context, json.RawMessage) (*lathe.Output, error) {
			<-over
			return &lathe.Output{Data: json.RawMessage(`"late"`)}, nil
		}),
	}
	ropts := &tool.Options{Policy: s.policy}
	if s.later {
		ropts.Approver = later{}
	}
	l, err := loop.New(&script{turns: s.turns}, newRunner(t, ropts, tools...), &loop.Options{Settings: s.settings, Limits: s.limits})
	if err != nil {
		return err.Error()
	}
	in := user("x")
	in.Park = s.park
	if s.client {
		in.ClientTools = []*lathe.ToolSpec{{Name: "yours", Schema: json.RawMessage(`{"type":"object"}`), Owner: lathe.OwnerClient}}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	var events []event.Event
	var res *event.Result
	for e := range l.Run(ctx, in) {
		events = append(events, e)
		if end := loop.Ended(e.Data); end != nil {
			res = end
		}
		if len(events) == s.cancelAt {
			cancel(s.cause)
		}
		if len(events) == s.stopAt {
			break
		}
	}
	cancel(nil)
	close(over)
	synctest.Wait() // what is left must end by itself, or the bubble says so
	if len(events) == s.stopAt {
		return ""
	}
	if res == nil {
		return "no end: " + types(events)
	}
	f := &recorder{}
	checkRun(f, res, events)
	if len(f.lines) == 0 {
		return ""
	}
	return fmt.Sprintf("%s\nreason %s\n%s\n%s", strings.Join(f.lines, "\n"), res.Reason, types(events), shape(res.History))
}

// A recorder collects what a check finds.
type recorder struct{ lines []string }

func (*recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}
