package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

func parkable(id string) *loop.Input {
	in := input()
	in.Run.RunID, in.Park = id, true
	return in
}

func TestSupervisorExecutesRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept, c := store.NewMemory(nil), &counter{}
		supervisor := newSupervisor(t, newEngine(t, &engine.Options{Store: kept}), 2)
		l := newLoop(t, model{pieces: 1, wait: time.Second}, c)
		ctx, cancel := context.WithCancel(t.Context())
		for _, id := range []string{"run_1", "run_2"} {
			if got, err := supervisor.Start(ctx, l, parkable(id), nil); err != nil || got != id {
				t.Fatalf("%s, %v", got, err)
			}
		}
		cancel() // the end of the caller's context does not end its runs
		if _, err := supervisor.Start(t.Context(), l, parkable("run_3"), nil); lathe.CodeOf(err) != lathe.CodeUnavailable {
			t.Errorf("a run beyond the bound: %v", err)
		}
		if err := supervisor.Resume(t.Context(), l, "run_1", nil); err == nil {
			t.Error("a run was executed twice")
		}
		if !supervisor.Cancel("run_2") || supervisor.Cancel("run_9") {
			t.Error("cancel confuses two runs")
		}
		res, ok, err := supervisor.Wait(t.Context(), "run_1")
		if !ok || err != nil || res.Answer != "x" {
			t.Errorf("%+v, %v, %v", res, ok, err)
		}
		if left := supervisor.Drain(t.Context()); left != 0 || supervisor.Active() != 0 || c.count() != 1 {
			t.Errorf("%d left, %d active, %d calls", left, supervisor.Active(), c.count())
		}
		if _, err := supervisor.Start(t.Context(), l, parkable("run_4"), nil); lathe.CodeOf(err) != lathe.CodeUnavailable {
			t.Errorf("a run after the end: %v", err)
		}
		if rows, _, err := kept.Runs(t.Context(), &store.RunFilter{Status: "cancelled"}); err != nil || len(rows) != 1 {
			t.Errorf("%d runs cancelled, %v", len(rows), err)
		}
	})
}

// A supervisor whose time to drain is over releases its runs; the next supervisor resumes them, each to one end.
func TestSupervisorDrainsAndRecovers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept, c := store.NewMemory(nil), &counter{}
		first := newSupervisor(t, newEngine(t, &engine.Options{Store: kept}), 0)
		slow := newLoop(t, model{pieces: 1, wait: time.Hour}, c)
		for _, id := range []string{"run_1", "run_2"} {
			if _, err := first.Start(t.Context(), slow, parkable(id), nil); err != nil {
				t.Fatal(err)
			}
		}
		other := input() // it was not started as one that can be resumed
		other.Run.RunID = "run_3"
		if _, err := first.Start(t.Context(), slow, other, nil); err != nil {
			t.Fatal(err)
		}
		soon, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if left := first.Drain(soon); left != 3 {
			t.Errorf("%d runs were left", left)
		}
		second := newSupervisor(t, newEngine(t, &engine.Options{Store: kept}), 0)
		quick := newLoop(t, model{pieces: 1}, c)
		n, err := second.Recover(t.Context(), kept, func(*store.RunSummary) (*loop.Loop, error) { return quick, nil })
		if err != nil || n != 2 {
			t.Fatalf("%d runs go on, %v", n, err)
		}
		if left := second.Drain(t.Context()); left != 0 || c.count() != 2 {
			t.Errorf("%d left, the tool ran %d times", left, c.count())
		}
		rows, _, err := kept.Runs(t.Context(), &store.RunFilter{Status: "completed"})
		if err != nil || len(rows) != 2 {
			t.Errorf("%d runs completed, %v", len(rows), err)
		}
		for _, id := range []string{"run_1", "run_2"} {
			ends := 0
			for e, err := range kept.Read(t.Context(), id, 0) {
				if err != nil {
					t.Fatal(err)
				}
				if _, ok := e.Data.(*event.RunFinished); ok {
					ends++
				}
			}
			if ends != 1 {
				t.Errorf("%s has %d ends", id, ends)
			}
		}
	})
}
