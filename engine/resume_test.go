package engine_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
)

// approvals answers an approval once it is open.
type approvals struct{ open atomic.Bool }

func (d *approvals) Approve(context.Context, *lathe.ApprovalRequest) (lathe.Approval, error) {
	if !d.open.Load() {
		return lathe.Approval{}, lathe.ErrPending
	}
	return lathe.Approval{Approved: true, By: "an approver"}, nil
}

func askingLoop(t *testing.T, d *approvals, tools ...lathe.Tool) *loop.Loop {
	t.Helper()
	return askingLoopOf(t, model{pieces: 1}, d, tools...)
}

func askingLoopOf(t *testing.T, m lathe.Model, d *approvals, tools ...lathe.Tool) *loop.Loop {
	t.Helper()
	set, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.Tools{Ask: []string{"count"}}, Approver: d})
	if err != nil {
		t.Fatal(err)
	}
	l, err := loop.New(m, runner, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// If several processes resume a run at once, one succeeds: the tool runs once, and the log has one end.
func TestResumeOnce(t *testing.T) {
	t.Parallel()
	kept, c, d := store.NewMemory(nil), &counter{}, &approvals{}
	e := newEngine(t, &engine.Options{Store: kept})
	in := input()
	in.Run.RunID, in.Park = "run_1", true
	res, err := e.Run(t.Context(), askingLoop(t, d, c), in, nil)
	if err != nil || res.Reason != lathe.ReasonAwaitingApproval || len(res.Pending) != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	state, err := e.State(t.Context(), "run_1")
	if err != nil || state.Paused != lathe.ReasonAwaitingApproval || !state.Open[0].Asked || state.Open[0].Digest == "" {
		t.Fatalf("%+v, %v", state, err)
	}
	res, err = e.Resume(t.Context(), askingLoop(t, d, c), "run_1", nil)
	if err != nil || res.Reason != lathe.ReasonAwaitingApproval || c.count() != 0 {
		t.Fatalf("no approver has answered: %+v, %v", res, err)
	}
	d.open.Store(true)
	var wg sync.WaitGroup
	var done, refused atomic.Int64
	for range 8 {
		wg.Go(func() {
			res, err := newEngine(t, &engine.Options{Store: kept}).Resume(context.Background(), askingLoop(t, d, c), "run_1", nil)
			switch {
			case err == nil && res.Answer == "x":
				done.Add(1)
			case lathe.CodeOf(err) == lathe.CodeConflict:
				refused.Add(1)
			default:
				t.Errorf("%+v, %v", res, err)
			}
		})
	}
	wg.Wait()
	if done.Load() != 1 || refused.Load() != 7 || c.count() != 1 {
		t.Errorf("%d went on, %d were refused, the tool ran %d times", done.Load(), refused.Load(), c.count())
	}
	if state, err = e.State(t.Context(), "run_1"); err != nil || state.Finished == nil || state.Finished.Reason != lathe.ReasonAnswered {
		t.Errorf("%+v, %v", state, err)
	}
}

func TestCancelAParkedRun(t *testing.T) {
	t.Parallel()
	kept, c := store.NewMemory(nil), &counter{}
	e := newEngine(t, &engine.Options{Store: kept})
	in := input()
	in.Run.RunID, in.Park = "run_1", true
	if _, err := e.Run(t.Context(), askingLoop(t, &approvals{}, c), in, nil); err != nil {
		t.Fatal(err)
	}
	res, err := e.Cancel(t.Context(), askingLoop(t, &approvals{}, c), "run_1")
	if err != nil || res.Reason != lathe.ReasonCancelled || len(res.Pending) != 0 || c.count() != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	state, err := e.State(t.Context(), "run_1")
	if err != nil || state.Finished == nil || len(state.Open) != 0 {
		t.Errorf("%+v, %v", state, err)
	}
	if _, err := e.Cancel(t.Context(), askingLoop(t, &approvals{}, c), "run_1"); lathe.CodeOf(err) != lathe.CodeConflict {
		t.Errorf("cancelled twice: %v", err)
	}
}

func TestResumeRefuses(t *testing.T) {
	t.Parallel()
	kept, c := store.NewMemory(nil), &counter{}
	e := newEngine(t, &engine.Options{Store: kept})
	in := input()
	in.Run.RunID, in.Park = "run_1", true
	l := newLoop(t, model{pieces: 1}, c)
	if _, err := e.Run(t.Context(), l, in, nil); err != nil {
		t.Fatal(err)
	}
	if res, err := e.Resume(t.Context(), l, "run_1", nil); res != nil || lathe.CodeOf(err) != lathe.CodeConflict {
		t.Errorf("a run that has ended: %+v, %v", res, err)
	}
	if res, err := e.Resume(t.Context(), l, "run_2", nil); res != nil || lathe.CodeOf(err) != lathe.CodeNotFound {
		t.Errorf("no such run: %+v, %v", res, err)
	}
	if res, err := newEngine(t, nil).Resume(t.Context(), l, "run_1", nil); res != nil || lathe.CodeOf(err) != lathe.CodeNotFound {
		t.Errorf("no store: %+v, %v", res, err)
	}
	if c.count() != 1 {
		t.Errorf("the tool ran %d times", c.count())
	}
}

// If the store fails while a run is being parked, the run ends `internal`, since no process could resume it.
func TestStoreFailsAtThePause(t *testing.T) {
	t.Parallel()
	in := input()
	in.Park = true
	e := newEngine(t, &engine.Options{Store: &memory{failAt: "RunPaused", err: context.DeadlineExceeded}})
	res, err := e.Run(t.Context(), askingLoop(t, &approvals{}, &counter{}), in, nil)
	if err == nil || res.Reason != lathe.ReasonInternal {
		t.Errorf("%+v, %v", res, err)
	}
}
