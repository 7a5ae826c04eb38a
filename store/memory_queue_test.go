package store_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/testkit/storetest"
	"github.com/lathe-run/lathe/remote"
	"github.com/lathe-run/lathe/store"
)

func TestMemoryQueue(t *testing.T) {
	t.Parallel()
	storetest.TestQueue(t, 1, func() remote.Queue { return store.NewMemory(nil) })
}

// Calls that ended are removed after the retention time, unless their run has not ended.
func TestMemoryForgetsOldCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, ctx := store.NewMemory(nil), t.Context()
		for _, run := range []string{"going", "gone"} {
			c := &remote.Call{Key: run, RunID: run, Tool: "t", Definition: "d", Arguments: []byte(`{}`)}
			if _, err := s.PutCall(ctx, c, time.Minute); err != nil {
				t.Fatal(err)
			}
			if _, err := s.CancelCall(ctx, run); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Append(ctx, "going", 0, event.Event{ID: 1, RunID: "going", Data: &event.RunStarted{}}); err != nil {
			t.Fatal(err)
		}
		for i, want := range []int{0, 1, 0} {
			if n, err := s.ExpireCalls(ctx); n != want || err != nil {
				t.Errorf("pass %d removed %d, %v; want %d", i, n, err, want)
			}
			time.Sleep(remote.CallsKept + time.Minute)
		}
		if _, err := s.FindCall(ctx, "going"); err != nil {
			t.Errorf("the call of a run that goes on: %v", err)
		}
	})
}

// A worker that no longer renews its entry is removed.
func TestMemoryForgetsWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, ctx := store.NewMemory(nil), t.Context()
		if err := s.PutWorker(ctx, &remote.Worker{ID: "f/a"}, time.Minute); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got, err := s.Workers(ctx); err != nil || len(got) != 0 {
			t.Errorf("%v, %v", got, err)
		}
	})
}

// Watchers learn that the list of workers is another when a worker leaves whose time was up, since it was not removed before.
func TestMemoryNotifiesOfAnExpiredWorkerThatLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := store.NewMemory(nil)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var seen int
		go func() { _ = s.WatchCalls(ctx, func(remote.Notification) { seen++ }) }()
		synctest.Wait()
		for i, ttl := range []time.Duration{time.Minute, 0} {
			if err := s.PutWorker(ctx, &remote.Worker{ID: "f/a"}, ttl); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			if seen != i+1 {
				t.Errorf("put for %v: %d notifications, want %d", ttl, seen, i+1)
			}
		}
	})
}
