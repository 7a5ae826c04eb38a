package temporal

import (
	"context"
	"encoding/json"

	"slices"
	"strings"
	"testing"

	"go.temporal.io/sdk/activity"
	sdk "go.temporal.io/sdk/temporal"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

// queueTool returns a tool on the task queue "elsewhere".
func newQueued(t *testing.T, name string, effect lathe.Effect) lathe.Tool {
	t.Helper()
	q, err := NewQueueTool(&lathe.ToolSpec{Name: name, Description: "Runs elsewhere.", Effect: effect, Allowlist: []string{"shown"},
		Schema: json.RawMessage(`{"type":"object"}`)}, &QueueOptions{TaskQueue: "elsewhere"})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// serve registers the activity of a tool on a task queue.
func (w *world) serve(name string, fn func(context.Context, *CallInput) (*CallResult, error)) {
	w.env.RegisterActivityWithOptions(fn, registerAs(name))
}

func registerAs(name string) activity.RegisterOptions { return activity.RegisterOptions{Name: name} }

// A call of a tool on a task queue is an activity of its own, between the step that begins it and the one that takes its output through
// the runner. The log is that of any other call.
func TestQueueTool(t *testing.T) {
	t.Parallel()
	for _, effect := range []lathe.Effect{lathe.Writes, lathe.ReadOnly} {
		w := newWorld(t, script{calls("a remote", "b save"), lathe.Assistant("done")}, nil, newQueued(t, "remote", effect))
		var got []CallInput
		var queue string
		w.serve("remote", func(ctx context.Context, in *CallInput) (*CallResult, error) {
			got, queue = append(got, *in), activity.GetInfo(ctx).TaskQueue
			return &CallResult{Data: json.RawMessage(`{"shown":"yes","hidden":"no"}`)}, nil
		})
		if out, err := w.start(); err != nil || out.Reason != lathe.ReasonAnswered {
			t.Fatalf("%+v, %v", out, err)
		}
		w.check()
		if len(got) != 1 || got[0].RunID != "run_1" || got[0].CallID != "a" || got[0].Tool != "remote" || string(got[0].Arguments) != "{}" || got[0].IdempotencyKey == "" || queue != "elsewhere" {
			t.Errorf("%v: the activity got %+v on %s", effect, got, queue)
		}
		if r := w.state().Messages[2].Parts[0].(lathe.ToolResult); r.Content != `{"shown":"yes"}` || w.results() != "a ok, b ok" {
			t.Errorf("%v: the model got %+v; results %s", effect, r, w.results())
		}
		if want := []string{"model", "tool", "tool", "tool", "model"}; !slices.Equal(w.steps, want) {
			t.Errorf("%v: activities %q, want %q", effect, w.steps, want)
		}
		if log := kinds(t, w.kept); strings.Contains(log, "RunResumed") || strings.Count(log, "ToolCallPlanned") != 2 || strings.Count(log, "ToolCallExecuted") != 2 {
			t.Errorf("%v: the log\n%s", effect, log)
		}
	}
}

// What the model reads of a call on a task queue that failed: the error of the tool, unavailable if no worker began it, and, if its
// worker was lost, interrupted for a call that writes. Such a call has one attempt, and a call that reads has three.
func TestQueueToolFails(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		effect   lathe.Effect
		err      error
		want     string
		attempts int
	}{
		{"its error", lathe.Writes, sdk.NewApplicationError("no such city", "lookup"), "a execution_failed", 1},
		{"its error", lathe.ReadOnly, sdk.NewNonRetryableApplicationError("no such city", "lookup", nil), "a execution_failed", 1},
		{"lost worker", lathe.Writes, sdk.NewHeartbeatTimeoutError(), "a interrupted", 1},
		{"lost worker", lathe.ReadOnly, sdk.NewHeartbeatTimeoutError(), "a timeout", 3},
	} {
		w := newWorld(t, script{calls("a remote"), lathe.Assistant("done")}, nil, newQueued(t, "remote", tt.effect))
		var keys []string
		w.serve("remote", func(_ context.Context, in *CallInput) (*CallResult, error) {
			keys = append(keys, in.IdempotencyKey)
			return nil, tt.err
		})
		if out, err := w.start(); err != nil || out.Reason != lathe.ReasonAnswered {
			t.Fatalf("%s: %+v, %v", tt.name, out, err)
		}
		w.check()
		if got := w.results(); got != tt.want || len(keys) != tt.attempts || len(slices.Compact(keys)) != 1 {
			t.Errorf("%s, %v: results %s after %d attempts, want %s after %d, all with one key", tt.name, tt.effect, got, len(keys), tt.want, tt.attempts)
		}
	}
}

// If the step that begins a call is lost, or the one that takes its output, the activity on the task queue still runs once.
func TestQueueToolRunsOnce(t *testing.T) {
	t.Parallel()
	for _, kind := range []fault{before, after} {
		for at := 1; at <= 5; at++ {
			w := newWorld(t, script{calls("a remote"), lathe.Assistant("done")}, func(w *world) {
				w.fail = func(n int, _ string) fault {
					if n == at {
						return kind
					}
					return none
				}
			}, newQueued(t, "remote", lathe.Writes))
			n := 0
			w.serve("remote", func(context.Context, *CallInput) (*CallResult, error) {
				n++
				return &CallResult{Data: json.RawMessage(`{"shown":1}`)}, nil
			})
			if out, err := w.start(); err != nil || out.Reason != lathe.ReasonAnswered {
				t.Fatalf("%+v, %v", out, err)
			}
			w.check()
			if n != 1 || w.results() != "a ok" {
				t.Errorf("fault %d at activity %d: the tool ran %d times, results %s", kind, at, n, w.results())
			}
		}
	}
}

// A run that Temporal does not execute gets policy_denied for a call of a tool on a task queue.
func TestQueueToolElsewhere(t *testing.T) {
	t.Parallel()
	for _, spec := range []*lathe.ToolSpec{nil, {}, {Name: "x"}} {
		if q, err := NewQueueTool(spec, &QueueOptions{}); q != nil || lathe.CodeOf(err) != lathe.CodeInvalidConfig {
			t.Errorf("%+v: %v, %v", spec, q, err)
		}
	}
	w := newWorld(t, script{calls("a remote"), lathe.Assistant("done")}, nil, newQueued(t, "remote", lathe.Writes))
	l, err := w.w.opts.LoopFor("")
	if err != nil {
		t.Fatal(err)
	}
	res, err := l.Do(t.Context(), &loop.Input{Run: lathe.RunInfo{RunID: "run_2"}, Messages: []lathe.Message{lathe.User("hi")}})
	if err != nil || len(res.Trace) == 0 || res.Trace[0].Calls[0].Code != lathe.CodePolicyDenied {
		t.Errorf("%+v, %v", res, err)
	}
	checker, ok := newQueued(t, "remote", lathe.Writes).(tool.OutcomeChecker)
	if !ok {
		t.Fatal("it cannot say what became of a call")
	}
	if r, err := checker.CheckOutcome(t.Context(), &lathe.CallMeta{CallID: "a"}); err != nil || r.Outcome != tool.RecoveryUnknown {
		t.Errorf("%+v, %v", r, err)
	}
}

// The run of an agent is a part of a call, and the workflow does not execute it: its calls of a tool on a task queue are refused, and the
// call of the agent ends.
func TestQueueToolInAgent(t *testing.T) {
	t.Parallel()
	var codes []lathe.Code
	agent := tool.Func("leak", "Runs an agent.", func(ctx context.Context, _ struct{}) (string, error) {
		set, err := tool.NewSet(newQueued(t, "remote", lathe.ReadOnly))
		if err != nil {
			return "", err
		}
		runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.AllowAll()})
		if err != nil {
			return "", err
		}
		l, err := loop.New(script{calls("b remote"), lathe.Assistant("done")}, runner, nil)
		if err != nil {
			return "", err
		}
		res, err := l.Do(ctx, &loop.Input{Run: lathe.RunInfo{RunID: "run_2"}, Messages: []lathe.Message{lathe.User("hi")}})
		if err != nil {
			return "", err
		}
		codes = append(codes, res.Trace[0].Calls[0].Code)
		return "done", nil
	}, &tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"*"}})
	w := newWorld(t, script{calls("a leak"), lathe.Assistant("done")}, nil, agent)
	if out, err := w.start(); err != nil || out.Reason != lathe.ReasonAnswered {
		t.Fatalf("%+v, %v", out, err)
	}
	if w.results() != "a ok" || !slices.Equal(codes, []lathe.Code{lathe.CodePolicyDenied}) {
		t.Errorf("results %s, calls of the agent %v", w.results(), codes)
	}
}
