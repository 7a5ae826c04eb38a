package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

func parkable(id string) *loop.Input {
	in := input()
	in.Run.RunID, in.Park = id, true
	return in
}

func TestCrewCarriesRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept, c := store.NewMemory(nil), &counter{}
		crew := engine.NewCrew(engine.New(&engine.Options{Store: kept}), 2)
		l := newLoop(t, model{pieces: 1, wait: time.Second}, c)
		ctx, cancel := context.WithCancel(t.Context())
		for _, id := range []string{"run_1", "run_2"} {
			if got, err := crew.Start(ctx, l, parkable(id)); err != nil || got != id {
				t.Fatalf("%s, %v", got, err)
			}
		}
		cancel() // whoever asked for a run may go
		if _, err := crew.Start(t.Context(), l, parkable("run_3")); lathe.CodeOf(err) != lathe.CodeUnavailable {
			t.Errorf("a run beyond the bound: %v", err)
		}
		if err := crew.Resume(t.Context(), l, "run_1", nil); err == nil {
			t.Error("a run was carried twice")
		}
		if !crew.Cancel("run_2") || crew.Cancel("run_9") {
			t.Error("cancel does not tell runs apart")
		}
		res, ok, err := crew.Wait(t.Context(), "run_1")
		if !ok || err != nil || res.Answer != "x" {
			t.Errorf("%+v, %v, %v", res, ok, err)
		}
		if left := crew.Drain(t.Context()); left != 0 || crew.Active() != 0 || c.count() != 1 {
			t.Errorf("%d left, %d active, %d calls", left, crew.Active(), c.count())
		}
		if _, err := crew.Start(t.Context(), l, parkable("run_4")); lathe.CodeOf(err) != lathe.CodeUnavailable {
			t.Errorf("a run after the end: %v", err)
		}
		if rows, _, err := kept.Runs(t.Context(), &lathe.RunFilter{Status: "cancelled"}); err != nil || len(rows) != 1 {
			t.Errorf("%d runs cancelled, %v", len(rows), err)
		}
	})
}

// A crew that has no time left leaves its runs; the next one goes on with them, each to one end.
func TestCrewLeavesAndRecovers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept, c := store.NewMemory(nil), &counter{}
		first := engine.NewCrew(engine.New(&engine.Options{Store: kept}), 0)
		slow := newLoop(t, model{pieces: 1, wait: time.Hour}, c)
		for _, id := range []string{"run_1", "run_2"} {
			if _, err := first.Start(t.Context(), slow, parkable(id)); err != nil {
				t.Fatal(err)
			}
		}
		other := input() // it was not started as one that can be resumed
		other.Run.RunID = "run_3"
		if _, err := first.Start(t.Context(), slow, other); err != nil {
			t.Fatal(err)
		}
		soon, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if left := first.Drain(soon); left != 3 {
			t.Errorf("%d runs were left", left)
		}
		second := engine.NewCrew(engine.New(&engine.Options{Store: kept}), 0)
		quick := newLoop(t, model{pieces: 1}, c)
		n, err := second.Recover(t.Context(), kept, func(*lathe.RunSummary) (*loop.Loop, error) { return quick, nil })
		if err != nil || n != 2 {
			t.Fatalf("%d runs go on, %v", n, err)
		}
		if left := second.Drain(t.Context()); left != 0 || c.count() != 2 {
			t.Errorf("%d left, the tool ran %d times", left, c.count())
		}
		rows, _, err := kept.Runs(t.Context(), &lathe.RunFilter{Status: "completed"})
		if err != nil || len(rows) != 2 {
			t.Errorf("%d runs completed, %v", len(rows), err)
		}
		for _, id := range []string{"run_1", "run_2"} {
			ends := 0
			for e, err := range kept.Read(t.Context(), id, 0) {
				if err != nil {
					t.Fatal(err)
				}
				if _, ok := e.Data.(*lathe.RunFinished); ok {
					ends++
				}
			}
			if ends != 1 {
				t.Errorf("%s has %d ends", id, ends)
			}
		}
	})
}
