package temporal

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/mocks"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
)

// A namespace is a Temporal server that records what it is asked, as "start id", "signal id" and "NAME id". It fails with the error.
type namespace struct {
	asked []string
	err   error
	// update, if set, is the error of updates.
	update func(name string) error
}

// client returns a client of the namespace.
func (n *namespace) client(t *testing.T) client.Client {
	t.Helper()
	c := &mocks.Client{}
	options := func(o client.StartWorkflowOptions) {
		if o.TaskQueue != "agents" {
			t.Errorf("the task queue is %q", o.TaskQueue)
		}
	}
	c.On("ExecuteWorkflow", mock.Anything, mock.Anything, Name, mock.Anything).Return(
		func(_ context.Context, o client.StartWorkflowOptions, _ any, args ...any) (client.WorkflowRun, error) {
			options(o)
			n.asked = append(n.asked, "start "+o.ID+" "+args[0].(*Input).Target)
			return &mocks.WorkflowRun{}, n.err
		})
	c.On("SignalWithStartWorkflow", mock.Anything, mock.Anything, SignalWake, mock.Anything, mock.Anything, Name, mock.Anything).Return(
		func(_ context.Context, id, _ string, _ any, o client.StartWorkflowOptions, _ any, args ...any) (client.WorkflowRun, error) {
			options(o)
			if o.WorkflowIDReusePolicy != enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE {
				t.Errorf("the workflow may not be started again: %v", o.WorkflowIDReusePolicy)
			}
			n.asked = append(n.asked, "signal "+id+" "+args[0].(*Input).Target)
			return &mocks.WorkflowRun{}, n.err
		})
	c.On("UpdateWorkflow", mock.Anything, mock.Anything).Return(
		func(_ context.Context, o client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
			n.asked = append(n.asked, o.UpdateName+" "+o.WorkflowID)
			err := n.err
			if err == nil && n.update != nil {
				err = n.update(o.UpdateName)
			}
			h := &mocks.WorkflowUpdateHandle{}
			h.On("Get", mock.Anything, mock.Anything).Return(nil)
			return h, err
		})
	return c
}

// want checks what was asked since the last check.
func (n *namespace) want(t *testing.T, asked ...string) {
	t.Helper()
	if len(asked) != len(n.asked) {
		t.Errorf("asked %q, want %q", n.asked, asked)
	} else {
		for i := range asked {
			if asked[i] != n.asked[i] {
				t.Errorf("asked %q, want %q", n.asked, asked)
				break
			}
		}
	}
	n.asked = nil
}

func newExecutor(t *testing.T, n *namespace) (*Executor, *world) {
	t.Helper()
	w := newWorld(t, script{calls("a pay"), lathe.Assistant("done")}, nil)
	x, err := NewExecutor(n.client(t), w.w, &ExecutorOptions{TaskQueue: "agents"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Drain(context.Background()) })
	return x, w
}

// A run that is stored is started, now or when Temporal can be reached again; its caller gets the id either way.
func TestExecutorStarts(t *testing.T) {
	t.Parallel()
	n := &namespace{}
	x, w := newExecutor(t, n)
	start := func(id string) {
		t.Helper()
		in := &loop.Input{Run: lathe.RunInfo{RunID: id}, Target: "main", Messages: []lathe.Message{lathe.User("hi")}}
		if got, err := x.Start(t.Context(), nil, in); err != nil || got != id {
			t.Fatalf("%q, %v", got, err)
		}
		if rows, _, err := w.kept.Runs(t.Context(), &store.RunFilter{RunID: id}); err != nil || len(rows) != 1 || rows[0].Executor != x.Name() {
			t.Errorf("%+v, %v", rows, err)
		}
	}
	start("run_1")
	n.want(t, "start run_1 main")
	n.err = errors.New("no connection")
	start("run_2")
	x.retry()
	n.want(t, "start run_2 main", "start run_2 main")
	n.err = nil
	x.retry()
	x.retry()
	n.want(t, "start run_2 main")
	x.mu.Lock()
	for i := range maxMissed {
		x.missed[string(rune(i))] = missed{}
	}
	x.mu.Unlock()
	if _, err := x.Start(t.Context(), nil, &loop.Input{Run: lathe.RunInfo{RunID: "run_3"}, Messages: []lathe.Message{lathe.User("hi")}}); lathe.CodeOf(err) != lathe.CodeUnavailable {
		t.Errorf("with %d runs that wait for Temporal: %v", maxMissed, err)
	}
	if rows, _, _ := w.kept.Runs(t.Context(), &store.RunFilter{RunID: "run_3"}); len(rows) != 0 {
		t.Error("the refused run is stored")
	}
}

// What is in the store is repeated until the workflow has got it. A resume is not in the store: it fails.
func TestExecutorWakes(t *testing.T) {
	t.Parallel()
	gone := serviceerror.NewNotFound("no workflow")
	for name, tt := range map[string]struct {
		why    server.Wake
		update func(name string) error
		want   []string
		code   lathe.Code
	}{
		"input":                                  {why: server.WakeInput, want: []string{"signal run_1 main"}},
		"cancel":                                 {why: server.WakeCancel, want: []string{"cancel run_1"}},
		"cancel without a workflow":              {why: server.WakeCancel, update: func(string) error { return gone }, want: []string{"cancel run_1", "signal run_1 main"}},
		"resume":                                 {why: server.WakeResume, want: []string{"resume run_1"}},
		"resume, which cannot be reached":        {why: server.WakeResume, update: func(string) error { return errors.New("no connection") }, want: []string{"resume run_1"}, code: lathe.CodeUnavailable},
		"resume of what the workflow knows late": {why: server.WakeResume, update: once(sdk.NewApplicationError("not yet", notWaiting)), want: []string{"resume run_1", "signal run_1 main", "resume run_1"}},
		"resume without a workflow":              {why: server.WakeResume, update: once(gone), want: []string{"resume run_1", "signal run_1 main", "resume run_1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := &namespace{update: tt.update}
			x, _ := newExecutor(t, n)
			if _, err := x.flow.Accept(t.Context(), &loop.Input{Run: lathe.RunInfo{RunID: "run_1"}, Messages: []lathe.Message{lathe.User("hi")}}); err != nil {
				t.Fatal(err)
			}
			if err := x.Wake(t.Context(), "run_1", "main", tt.why); lathe.CodeOf(err) != tt.code {
				t.Error(err)
			}
			n.want(t, tt.want...)
		})
	}
	n := &namespace{err: errors.New("no connection")}
	x, _ := newExecutor(t, n)
	for _, why := range []server.Wake{server.WakeInput, server.WakeCancel, server.WakeInput} {
		if err := x.Wake(t.Context(), "run_1", "main", why); err != nil {
			t.Errorf("without Temporal: %v", err)
		}
	}
	n.asked, n.err = nil, nil
	x.retry()
	x.retry()
	n.want(t, "cancel run_1")

	n.update = func(string) error { return gone }
	if err := x.Wake(t.Context(), "run_deleted", "main", server.WakeCancel); err != nil {
		t.Error(err)
	}
	n.want(t, "cancel run_deleted")
}

// once returns the error at the first call.
func once(err error) func(string) error {
	return func(string) error {
		first := err
		err = nil
		return first
	}
}

// A search finds the runs of this executor whose workflow was not started or has missed a signal, and no other run.
func TestExecutorSweeps(t *testing.T) {
	t.Parallel()
	n := &namespace{}
	x, w := newExecutor(t, n)
	accept := func(id string) {
		t.Helper()
		if _, err := x.flow.Accept(t.Context(), &loop.Input{Run: lathe.RunInfo{RunID: id}, Target: "main", Messages: []lathe.Message{lathe.User("hi")}}); err != nil {
			t.Fatal(err)
		}
	}
	park := func(id string) {
		t.Helper()
		if _, err := w.kept.Append(t.Context(), id, 1, event.Event{ID: 2, RunID: id, Data: &event.RunPaused{Reason: lathe.ReasonAwaitingApproval, Pending: []string{"a"}}}); err != nil {
			t.Fatal(err)
		}
	}
	accept("run_1")
	accept("run_2")
	park("run_2")
	accept("run_3")
	park("run_3")
	if err := w.kept.PutSignal(t.Context(), store.Signal{RunID: "run_3", Kind: store.SignalCancel}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.kept.Append(t.Context(), "run_4", 0, event.Event{ID: 1, RunID: "run_4", Data: &event.RunStarted{Input: []byte(`{"version":1}`)}}); err != nil {
		t.Fatal(err)
	}
	x.sweep()
	n.want(t, "start run_1 main", "signal run_3 main")
	n.err = errors.New("no connection")
	x.sweep()
	n.want(t, "start run_1 main")
	n.err = nil
	x.retry()
	n.want(t, "start run_1 main")
}

// A step in progress is left when its process ends: it fails with an error that another attempt follows, and writes nothing more. The
// loop of each step is released.
func TestStepsAreLeft(t *testing.T) {
	t.Parallel()
	var w *world
	slow := tool.Func("remote", "Waits.", func(ctx context.Context, _ struct{}) (string, error) {
		w.w.leaveSteps()
		<-ctx.Done()
		return "", ctx.Err()
	}, &tool.FuncOptions{Effect: lathe.Writes, Show: []string{"*"}})
	w = newWorld(t, script{calls("a remote"), lathe.Assistant("done")}, nil, slow)
	held, released := 0, 0
	w.w.opts.HoldLoop = func(target string) (*loop.Loop, func(), error) {
		held++
		l, err := w.w.opts.LoopFor(target)
		return l, func() { released++ }, err
	}
	if _, err := w.w.Accept(t.Context(), &loop.Input{Run: lathe.RunInfo{RunID: "run_1"}, Messages: []lathe.Message{lathe.User("hi")}}); err != nil {
		t.Fatal(err)
	}
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(w.w.step)
	value, err := env.ExecuteActivity(w.w.step, &stepInput{RunID: "run_1", After: 1})
	var out stepOutput
	if err != nil || value.Get(&out) != nil || out.Next == nil || out.Next.Tool != "remote" {
		t.Fatalf("%+v, %v", out, err)
	}
	_, err = env.ExecuteActivity(w.w.step, &stepInput{RunID: "run_1", After: out.LastID})
	var failed *sdk.ApplicationError
	if !errors.As(err, &failed) || failed.NonRetryable() || !strings.Contains(failed.Error(), "left") {
		t.Errorf("the step that was left: %v", err)
	}
	if s := w.state(); s.Finished != nil || len(s.Open) != 1 {
		t.Errorf("the run has ended, or the call has a result: %+v", s)
	}
	if held != 3 || released != held {
		t.Errorf("%d loops were held and %d released, want 3", held, released)
	}
}

// The cancellation of a run that was deleted ends its workflow, and does not fail.
func TestCancelOfADeletedRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script{calls("a pay"), lathe.Assistant("done")}, nil)
	w.env.RegisterDelayedCallback(func() {
		if err := w.kept.Delete(context.Background(), "run_1"); err != nil {
			t.Error(err)
		}
	}, time.Minute)
	u := w.update(2*time.Minute, UpdateCancel, func() []any { return nil })
	out, err := w.start()
	if err != nil || out.Status != "cancelled" || u.err != nil {
		t.Errorf("%+v, %v, the update: %v", out, err, u.err)
	}
}
