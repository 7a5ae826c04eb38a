package store_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/store/storetest"
)

func TestMemoryQueue(t *testing.T) {
	t.Parallel()
	storetest.TestQueue(t, 1, func() lathe.CallQueue { return store.NewMemory(nil) })
}

// Calls that ended are forgotten when their time has come, unless somebody may go on with their run.
func TestMemoryForgetsOldCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, ctx := store.NewMemory(nil), t.Context()
		for _, run := range []string{"going", "gone"} {
			c := &lathe.RemoteCall{Key: run, RunID: run, Tool: "t", Definition: "d", Arguments: []byte(`{}`)}
			if _, err := s.PutCall(ctx, c, time.Minute); err != nil {
				t.Fatal(err)
			}
			if _, err := s.CancelCall(ctx, run); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Append(ctx, "going", 0, lathe.Event{ID: 1, RunID: "going", Data: &lathe.RunStarted{}}); err != nil {
			t.Fatal(err)
		}
		for i, want := range []int{0, 1, 0} {
			if n, err := s.ReapCalls(ctx); n != want || err != nil {
				t.Errorf("reap %d forgot %d, %v; want %d", i, n, err, want)
			}
			time.Sleep(lathe.CallsKept + time.Minute)
		}
		if _, err := s.FindCall(ctx, "going"); err != nil {
			t.Errorf("the call of a run that goes on: %v", err)
		}
	})
}

// A worker that says nothing any more is forgotten.
func TestMemoryForgetsWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, ctx := store.NewMemory(nil), t.Context()
		if err := s.PutWorker(ctx, &lathe.Worker{ID: "f/a"}, time.Minute); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got, err := s.Workers(ctx); err != nil || len(got) != 0 {
			t.Errorf("%v, %v", got, err)
		}
	})
}
