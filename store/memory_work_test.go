package store

import (
	"context"
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/remote"
)

func queueCall(t *testing.T, q remote.Queue, key string) {
	t.Helper()
	if _, err := q.PutCall(t.Context(), &remote.Call{Key: key, RunID: "r", Tool: "t", Definition: "d", Arguments: []byte(`{}`)}, time.Hour); err != nil {
		t.Fatal(err)
	}
}

// The end of a call looks at no other call, however many wait in the store.
func TestMemoryEndsACallWithoutLookingAtOthers(t *testing.T) {
	t.Parallel()
	s := NewMemory(nil)
	for _, key := range []string{"a", "b", "c"} {
		queueCall(t, s, key)
	}
	for _, key := range []string{"a", "c"} {
		s.rows.calls[key].Value = nil // looking at it panics
	}
	if row, err := s.CancelCall(t.Context(), "b"); err != nil || row.State != remote.Cancelled || s.rows.open.Len() != 2 {
		t.Errorf("%+v, %v; %d calls are open, want 2", row, err, s.rows.open.Len())
	}
}

// addEnded adds a run with a result to remove.
func addEnded(t *testing.T, s *Memory, id string, at time.Time) {
	t.Helper()
	events := []event.Data{&event.RunStarted{Retention: &event.RunRetention{}}, &event.ToolCallResult{Result: "a long result"}, &event.RunFinished{Reason: lathe.ReasonAnswered, Status: "completed"}}
	log := make([]event.Event, len(events))
	for i, d := range events {
		log[i] = event.Event{ID: int64(i) + 1, RunID: id, Time: at, Data: d}
	}
	if _, err := s.Append(t.Context(), id, 0, log...); err != nil {
		t.Fatal(err)
	}
}

// While content is removed from a run, others use the store.
func TestMemoryCompactsWithoutTheLock(t *testing.T) {
	t.Parallel()
	s := NewMemory(nil)
	addEnded(t, s, "r", time.Unix(1, 0))
	before, shrunk := s.kept.runs["r"].bytes, 0
	shrink := func(e event.Event) event.Event {
		if shrunk++; !s.mu.TryLock() {
			t.Fatal("the store is locked")
		}
		s.mu.Unlock()
		if d, ok := e.Data.(*event.ToolCallResult); ok {
			d.Result = "" // of the copy that the caller has
		}
		return e
	}
	if err := s.Compact(t.Context(), "r", shrink); err != nil || shrunk != 3 {
		t.Errorf("%d events, %v", shrunk, err)
	}
	for e, err := range s.Read(t.Context(), "r", 1) {
		if d, ok := e.Data.(*event.ToolCallResult); err != nil || ok && d.Result != "" {
			t.Errorf("%+v, %v", e.Data, err)
		}
	}
	if after := s.kept.runs["r"].bytes; after != before-int64(len("a long result")) {
		t.Errorf("the run takes %d bytes, and took %d", after, before)
	}
}

// A page of the runs that have ended takes as much memory in a store with many runs as in one with few.
func TestMemoryListsEndedRunsWithinAPage(t *testing.T) {
	testdata.CountsAllocations(t)
	allocations := func(runs int) float64 {
		s := NewMemory(&MemoryOptions{MaxRuns: runs})
		for i := range runs {
			addEnded(t, s, fmt.Sprintf("run_%05d", i), time.Unix(int64(i%97), 0))
		}
		return testing.AllocsPerRun(5, func() {
			rows, err := s.Ended(context.Background(), nil, time.Unix(1_000, 0), 3)
			if err != nil || len(rows) != 3 || rows[0].RunID != "run_00000" || rows[1].RunID != "run_00097" {
				t.Errorf("%+v, %v", rows, err)
			}
		})
	}
	if few, many := allocations(300), allocations(5_000); many > few {
		t.Errorf("%v allocations of 300 runs, %v of 5,000", few, many)
	}
}

// The record of a request is removed with its run, and leaves nothing behind.
func TestMemoryForgetsTheRequestsOfDeletedRuns(t *testing.T) {
	t.Parallel()
	s := NewMemory(nil)
	for i := range 3 {
		if err := s.PutRequest(t.Context(), sha256.Sum256([]byte{byte(i)}), fmt.Sprint(i%2), ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Delete(t.Context(), "0"); err != nil {
		t.Fatal(err)
	}
	if len(s.rows.requests) != 1 || s.rows.byAge.Len() != 1 {
		t.Errorf("%d records, %d in order of age; want 1", len(s.rows.requests), s.rows.byAge.Len())
	}
}

// countedRows count the calls that are read and written whole.
type countedRows struct {
	Rows
	read, put int
}

func (c *countedRows) Call(key string) (*QueuedCall, error) {
	c.read++
	return c.Rows.Call(key)
}

func (c *countedRows) PutCall(row *QueuedCall) error {
	c.put++
	return c.Rows.PutCall(row)
}

// A renewal reads and writes no arguments, and an operation that changes nothing writes no row.
func TestWhatStaysIsNotWritten(t *testing.T) {
	t.Parallel()
	m, count := NewMemory(nil), &countedRows{}
	q := NewRecords(func(ctx context.Context, op string, write bool, fn func(Rows, time.Time) error) error {
		return m.change(ctx, op, write, func(rows Rows, now time.Time) error {
			count.Rows = rows
			return fn(count, now)
		})
	})
	ctx := t.Context()
	queueCall(t, q, "k")
	ref := remote.Ref{Key: "k", Attempt: 1, Worker: "w"}
	must := func(what string, put int, errs ...error) {
		t.Helper()
		for _, err := range errs {
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
		if count.put != put {
			t.Errorf("%s: %d rows are written, want %d", what, count.put, put)
		}
		count.read, count.put = 0, 0
	}
	_, err := q.ClaimCalls(ctx, "w", []string{"d"}, time.Hour, 1)
	must("queued, claimed and started", 3, err, q.StartCall(ctx, ref, time.Hour))
	stop, err := q.RenewCalls(ctx, "w", []remote.Ref{ref}, time.Hour)
	if len(stop) > 0 || count.read > 0 {
		t.Errorf("a renewal reads %d calls and stops %v", count.read, stop)
	}
	must("renewed", 0, err)
	_, err = q.DecideCall(ctx, "k")
	must("decided, which only an unknown call is", 0, err)
	_, err = q.CancelCall(ctx, "k")
	must("cancelled", 1, err)
	_, err = q.CancelCall(ctx, "k")
	must("cancelled again", 0, err)
	if stop, err := q.RenewCalls(ctx, "w", []remote.Ref{ref}, time.Hour); err != nil || len(stop) != 1 {
		t.Errorf("the worker of a cancelled call is to stop %v, %v", stop, err)
	}
	must("finished", 1, q.FinishCall(ctx, ref, &remote.Result{Data: []byte(`1`)}))
	must("finished again", 0, q.FinishCall(ctx, ref, &remote.Result{Data: []byte(`2`)}))
	_, err = q.CancelCall(ctx, "k")
	must("cancelled after its end", 0, err)
}
