package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/store"
)

// A SignalIndex is a store of runs and their signals.
type SignalIndex interface {
	store.RunIndex
	store.SignalStore
}

// TestSignals runs the tests for [store.SignalStore]. open is as of [Test].
func TestSignals(t *testing.T, open func() SignalIndex) {
	t.Helper()
	run(t, open, []testOf[SignalIndex]{
		{"keeps signals in the order in which they came", keepsSignals},
		{"keeps the first signal of a kind and key", keepsTheFirstSignal},
		{"refuses signals of runs that are not there or have ended", refusesSignals},
		{"deletes signals with their run", deletesSignals},
		{"lets one of many signals win", oneSignalWins},
		{"respects the context with signals", signalsRespectContext},
		{"lists runs that have signals", listsSignaled},
	})
}

func begin(t *testing.T, s store.Store, runID string) {
	t.Helper()
	mustAppend(t, s, runID, 0, stamped(runID, 1, &event.RunStarted{Input: []byte(`{"version":1}`)}))
}

func signalsOf(t *testing.T, s store.SignalStore, runID string) []store.Signal {
	t.Helper()
	got, err := s.Signals(t.Context(), runID)
	if err != nil {
		t.Fatalf("signals: %v", err)
	}
	return got
}

func mustPut(t *testing.T, s store.SignalStore, f store.Signal) {
	t.Helper()
	if err := s.PutSignal(t.Context(), f); err != nil {
		t.Fatalf("put %s %s: %v", f.Kind, f.Key, err)
	}
}

func keepsSignals(t *testing.T, s SignalIndex) {
	begin(t, s, "run_a")
	begin(t, s, "run_b")
	body := []byte(`{"a": "<&>  \u2028", "n":1.50}`)
	want := []store.Signal{
		{RunID: "run_a", Kind: "result", Key: "c2", Body: body},
		{RunID: "run_a", Kind: "approval", Key: "c2", Body: []byte(`{}`)},
		{RunID: "run_a", Kind: "result", Key: "c1", Body: []byte(`"x"`)},
		{RunID: "run_a", Kind: "cancel"},
	}
	for i, f := range want {
		f.Body = bytes.Clone(f.Body)
		mustPut(t, s, f)
		clear(f.Body) // the store has its own
		if i == 1 {
			mustPut(t, s, store.Signal{RunID: "run_b", Kind: "cancel"})
		}
	}
	for range 2 {
		got := signalsOf(t, s, "run_a")
		if len(got) != len(want) {
			t.Fatalf("got %d signals, want %d", len(got), len(want))
		}
		for i, g := range got {
			w := want[i]
			if g.RunID != w.RunID || g.Kind != w.Kind || g.Key != w.Key || !bytes.Equal(g.Body, w.Body) || g.Time.IsZero() {
				t.Errorf("signal %d: got %s %s %q at %v, want %s %s %q", i, g.Kind, g.Key, g.Body, g.Time, w.Kind, w.Key, w.Body)
			}
			if i > 0 && g.Time.Before(got[i-1].Time) {
				t.Errorf("signal %d came before the one before it", i)
			}
			clear(g.Body) // a reader has its own
		}
	}
	if got := read(t, s, "run_a", 0); len(got) != 1 {
		t.Errorf("signals made %d events of 1", len(got))
	}
}

func keepsTheFirstSignal(t *testing.T, s SignalIndex) {
	begin(t, s, "run_a")
	mustPut(t, s, store.Signal{RunID: "run_a", Kind: "approval", Key: "c1", Body: []byte(`1`)})
	for _, body := range []string{`1`, `2`} {
		wantConflict(t, "a second signal", s.PutSignal(t.Context(), store.Signal{RunID: "run_a", Kind: "approval", Key: "c1", Body: []byte(body)}))
	}
	if got := signalsOf(t, s, "run_a"); len(got) != 1 || string(got[0].Body) != "1" {
		t.Errorf("got %d signals, the first %q, want the first alone", len(got), got[0].Body)
	}
}

func refusesSignals(t *testing.T, s SignalIndex) {
	if err := s.PutSignal(t.Context(), store.Signal{RunID: "run_a", Kind: "cancel"}); !errors.Is(err, lathe.ErrNotFound) || lathe.CodeOf(err) != lathe.CodeNotFound {
		t.Errorf("a run that is not there: %v", err)
	}
	if got := signalsOf(t, s, "run_a"); len(got) != 0 {
		t.Errorf("a run that is not there has %d signals", len(got))
	}
	begin(t, s, "run_a")
	for _, f := range []store.Signal{{Kind: "cancel"}, {RunID: "run_a"}} {
		if err := s.PutSignal(t.Context(), f); lathe.CodeOf(err) != lathe.CodeInvalidRequest {
			t.Errorf("%+v: %v", f, err)
		}
	}
	mustAppend(t, s, "run_a", 1, stamped("run_a", 2, &event.RunPaused{Reason: lathe.ReasonAwaitingApproval}))
	mustPut(t, s, store.Signal{RunID: "run_a", Kind: "approval", Key: "c1"})
	mustAppend(t, s, "run_a", 2, stamped("run_a", 3, &event.RunFinished{Reason: lathe.ReasonAnswered, Status: "completed"}))
	wantConflict(t, "a signal of a run that has ended", s.PutSignal(t.Context(), store.Signal{RunID: "run_a", Kind: "cancel"}))
	if got := signalsOf(t, s, "run_a"); len(got) != 1 {
		t.Errorf("got %d signals, want 1", len(got))
	}
}

func deletesSignals(t *testing.T, s SignalIndex) {
	begin(t, s, "run_a")
	mustPut(t, s, store.Signal{RunID: "run_a", Kind: "cancel"})
	if err := s.Delete(t.Context(), "run_a"); err != nil {
		t.Fatal(err)
	}
	begin(t, s, "run_a")
	if got := signalsOf(t, s, "run_a"); len(got) != 0 {
		t.Errorf("the run has %d signals of one that was deleted", len(got))
	}
}

func oneSignalWins(t *testing.T, s SignalIndex) {
	begin(t, s, "run_a")
	var won atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			switch err := s.PutSignal(context.Background(), store.Signal{RunID: "run_a", Kind: "approval", Key: "c1", Body: []byte(`1`)}); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, lathe.ErrConflict):
				t.Errorf("put: %v", err)
			}
		})
	}
	wg.Wait()
	if got := signalsOf(t, s, "run_a"); won.Load() != 1 || len(got) != 1 {
		t.Errorf("%d won, %d signals, want 1", won.Load(), len(got))
	}
}

func signalsRespectContext(t *testing.T, s SignalIndex) {
	begin(t, s, "run_a")
	done := cancelled(t)
	if err := s.PutSignal(done, store.Signal{RunID: "run_a", Kind: "cancel"}); lathe.CodeOf(err) != lathe.CodeCancelled {
		t.Errorf("put: %v", err)
	}
	if _, err := s.Signals(done, "run_a"); lathe.CodeOf(err) != lathe.CodeCancelled {
		t.Errorf("signals: %v", err)
	}
	if got := signalsOf(t, s, "run_a"); len(got) != 0 {
		t.Errorf("a refused signal was kept")
	}
}

// signaled returns the suspended runs that have a signal, in pages of two.
func signaled(t *testing.T, s store.RunIndex) (ids []string) {
	t.Helper()
	f := &store.RunFilter{Signaled: true, Limit: 2}
	for {
		rows, next, err := s.Runs(t.Context(), f)
		if err != nil || len(rows) > 2 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		for i := range rows {
			ids = append(ids, rows[i].RunID)
		}
		f.After = next
		if next == "" {
			return ids
		}
	}
}

// listsSignaled has running runs, suspended runs with and without signals, and one that has read its signal and is
// suspended for another.
func listsSignaled(t *testing.T, s SignalIndex) {
	pause := &event.RunPaused{Reason: lathe.ReasonAwaitingApproval, Pending: []string{"c1"}}
	signal := func(id, kind, key string) {
		mustPut(t, s, store.Signal{RunID: id, Kind: kind, Key: key, Body: []byte(`{}`)})
	}
	shared, _ := s.(store.Shared)
	moves := func(id string, last int64, events ...event.Data) {
		t.Helper()
		var all []event.Event
		for i, d := range events {
			all = append(all, stamped(id, last+int64(i)+1, d))
		}
		if shared == nil {
			mustAppend(t, s, id, last, all...)
			return
		}
		c, err := shared.ClaimRun(t.Context(), "node_1", id, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		end, err := shared.AppendAs(t.Context(), c, last, all...)
		if err != nil {
			t.Fatal(err)
		}
		if err := shared.Release(t.Context(), c, end); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 7 {
		id := fmt.Sprintf("run_%d", i)
		begin(t, s, id)
		if i > 0 {
			moves(id, 1, pause)
		}
	}
	if got := signaled(t, s); len(got) != 0 {
		t.Errorf("nothing came, and %v have signals", got)
	}
	signal("run_0", store.SignalApproval, "c1") // it does not wait
	signal("run_2", store.SignalApproval, "c1")
	signal("run_3", store.SignalResult, "c1")
	signal("run_4", store.SignalCancel, "")
	signal("run_5", store.SignalApproval, "c1")
	moves("run_5", 2, &event.RunResumed{Reason: lathe.ReasonAwaitingApproval}, &event.RunPaused{Reason: lathe.ReasonAwaitingApproval, Pending: []string{"c2"}})
	signal("run_6", store.SignalCancel, "")
	moves("run_6", 2, &event.RunFinished{Reason: lathe.ReasonCancelled, Status: "cancelled"})
	if got := signaled(t, s); !slices.Equal(slices.Sorted(slices.Values(got)), []string{"run_2", "run_3", "run_4"}) {
		t.Errorf("%v have signals", got)
	}
	signal("run_5", store.SignalApproval, "c2")
	signal("run_1", store.SignalApproval, "c1")
	if got := signaled(t, s); len(got) != 5 {
		t.Errorf("%v have signals", got)
	}
	if rows, _, err := s.Runs(t.Context(), &store.RunFilter{Signaled: true, RunID: "run_5"}); err != nil || len(rows) != 1 {
		t.Errorf("of one run: %d rows, %v", len(rows), err)
	}
}
