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
)

// A FactIndex is a store of runs that keeps facts.
type FactIndex interface {
	lathe.RunIndex
	lathe.FactStore
}

// TestFacts runs the suite of stores that keep facts. open is as of [Test].
func TestFacts(t *testing.T, open func() FactIndex) {
	t.Helper()
	for _, tt := range []struct {
		name string
		fn   func(*testing.T, FactIndex)
	}{
		{"keeps facts in the order in which they came", keepsFacts},
		{"keeps the first fact of a kind and key", keepsTheFirstFact},
		{"refuses facts of runs that are not there or have ended", refusesFacts},
		{"deletes facts with their run", deletesFacts},
		{"lets one of many facts win", oneFactWins},
		{"respects the context with facts", factsRespectContext},
		{"lists runs that were told something", listsTold},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.fn(t, open())
		})
	}
}

func begin(t *testing.T, s lathe.Store, runID string) {
	t.Helper()
	mustAppend(t, s, runID, 0, event(runID, 1, &lathe.RunStarted{Input: []byte(`{"version":1}`)}))
}

func facts(t *testing.T, s lathe.FactStore, runID string) []lathe.Fact {
	t.Helper()
	got, err := s.Facts(t.Context(), runID)
	if err != nil {
		t.Fatalf("facts: %v", err)
	}
	return got
}

func mustPut(t *testing.T, s lathe.FactStore, f lathe.Fact) {
	t.Helper()
	if err := s.PutFact(t.Context(), f); err != nil {
		t.Fatalf("put %s %s: %v", f.Kind, f.Key, err)
	}
}

func keepsFacts(t *testing.T, s FactIndex) {
	begin(t, s, "run_a")
	begin(t, s, "run_b")
	body := []byte(`{"a": "<&>  \u2028", "n":1.50}`)
	want := []lathe.Fact{
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
			mustPut(t, s, lathe.Fact{RunID: "run_b", Kind: "cancel"})
		}
	}
	for range 2 {
		got := facts(t, s, "run_a")
		if len(got) != len(want) {
			t.Fatalf("got %d facts, want %d", len(got), len(want))
		}
		for i, g := range got {
			w := want[i]
			if g.RunID != w.RunID || g.Kind != w.Kind || g.Key != w.Key || !bytes.Equal(g.Body, w.Body) || g.Time.IsZero() {
				t.Errorf("fact %d: got %s %s %q at %v, want %s %s %q", i, g.Kind, g.Key, g.Body, g.Time, w.Kind, w.Key, w.Body)
			}
			if i > 0 && g.Time.Before(got[i-1].Time) {
				t.Errorf("fact %d came before the one before it", i)
			}
			clear(g.Body) // a reader has its own
		}
	}
	if got := read(t, s, "run_a", 0); len(got) != 1 {
		t.Errorf("facts made %d events of 1", len(got))
	}
}

func keepsTheFirstFact(t *testing.T, s FactIndex) {
	begin(t, s, "run_a")
	mustPut(t, s, lathe.Fact{RunID: "run_a", Kind: "approval", Key: "c1", Body: []byte(`1`)})
	for _, body := range []string{`1`, `2`} {
		wantConflict(t, "a second fact", s.PutFact(t.Context(), lathe.Fact{RunID: "run_a", Kind: "approval", Key: "c1", Body: []byte(body)}))
	}
	if got := facts(t, s, "run_a"); len(got) != 1 || string(got[0].Body) != "1" {
		t.Errorf("got %d facts, the first %q, want the first alone", len(got), got[0].Body)
	}
}

func refusesFacts(t *testing.T, s FactIndex) {
	if err := s.PutFact(t.Context(), lathe.Fact{RunID: "run_a", Kind: "cancel"}); !errors.Is(err, lathe.ErrNotFound) || lathe.CodeOf(err) != lathe.CodeNotFound {
		t.Errorf("a run that is not there: %v", err)
	}
	if got := facts(t, s, "run_a"); len(got) != 0 {
		t.Errorf("a run that is not there has %d facts", len(got))
	}
	begin(t, s, "run_a")
	for _, f := range []lathe.Fact{{Kind: "cancel"}, {RunID: "run_a"}} {
		if err := s.PutFact(t.Context(), f); lathe.CodeOf(err) != lathe.CodeInvalidRequest {
			t.Errorf("%+v: %v", f, err)
		}
	}
	mustAppend(t, s, "run_a", 1, event("run_a", 2, &lathe.RunPaused{Reason: lathe.ReasonAwaitingApproval}))
	mustPut(t, s, lathe.Fact{RunID: "run_a", Kind: "approval", Key: "c1"})
	mustAppend(t, s, "run_a", 2, event("run_a", 3, &lathe.RunFinished{Reason: lathe.ReasonAnswered, Status: "completed"}))
	wantConflict(t, "a fact of a run that has ended", s.PutFact(t.Context(), lathe.Fact{RunID: "run_a", Kind: "cancel"}))
	if got := facts(t, s, "run_a"); len(got) != 1 {
		t.Errorf("got %d facts, want 1", len(got))
	}
}

func deletesFacts(t *testing.T, s FactIndex) {
	begin(t, s, "run_a")
	mustPut(t, s, lathe.Fact{RunID: "run_a", Kind: "cancel"})
	if err := s.Delete(t.Context(), "run_a"); err != nil {
		t.Fatal(err)
	}
	begin(t, s, "run_a")
	if got := facts(t, s, "run_a"); len(got) != 0 {
		t.Errorf("the run has %d facts of one that was deleted", len(got))
	}
}

func oneFactWins(t *testing.T, s FactIndex) {
	begin(t, s, "run_a")
	var won atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			switch err := s.PutFact(context.Background(), lathe.Fact{RunID: "run_a", Kind: "approval", Key: "c1", Body: []byte(`1`)}); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, lathe.ErrConflict):
				t.Errorf("put: %v", err)
			}
		})
	}
	wg.Wait()
	if got := facts(t, s, "run_a"); won.Load() != 1 || len(got) != 1 {
		t.Errorf("%d won, %d facts, want 1", won.Load(), len(got))
	}
}

func factsRespectContext(t *testing.T, s FactIndex) {
	begin(t, s, "run_a")
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.PutFact(done, lathe.Fact{RunID: "run_a", Kind: "cancel"}); lathe.CodeOf(err) != lathe.CodeCancelled {
		t.Errorf("put: %v", err)
	}
	if _, err := s.Facts(done, "run_a"); lathe.CodeOf(err) != lathe.CodeCancelled {
		t.Errorf("facts: %v", err)
	}
	if got := facts(t, s, "run_a"); len(got) != 0 {
		t.Errorf("a refused fact was kept")
	}
}

// told returns the runs that wait and were told something, in pages of two.
func told(t *testing.T, s lathe.RunIndex) (ids []string) {
	t.Helper()
	for f := (&lathe.RunFilter{Told: true, Limit: 2}); ; {
		rows, next, err := s.Runs(t.Context(), f)
		if err != nil || len(rows) > 2 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		for i := range rows {
			ids = append(ids, rows[i].RunID)
		}
		if f.After = next; next == "" {
			return ids
		}
	}
}

// listsTold has runs in motion, runs that wait with and without facts, and one that took its fact up and waits
// for another.
func listsTold(t *testing.T, s FactIndex) {
	pause := &lathe.RunPaused{Reason: lathe.ReasonAwaitingApproval, Pending: []string{"c1"}}
	fact := func(id, kind, key string) {
		mustPut(t, s, lathe.Fact{RunID: id, Kind: kind, Key: key, Body: []byte(`{}`)})
	}
	shared, _ := s.(lathe.SharedStore)
	moves := func(id string, last int64, events ...lathe.EventData) {
		t.Helper()
		var all []lathe.Event
		for i, d := range events {
			all = append(all, event(id, last+int64(i)+1, d))
		}
		if shared == nil {
			mustAppend(t, s, id, last, all...)
			return
		}
		c, err := shared.Take(t.Context(), "node_1", id, time.Minute)
		if err == nil {
			if last, err = shared.AppendAs(t.Context(), c, last, all...); err == nil {
				err = shared.Release(t.Context(), c, last)
			}
		}
		if err != nil {
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
	if got := told(t, s); len(got) != 0 {
		t.Errorf("nothing came, and %v were told something", got)
	}
	fact("run_0", lathe.FactApproval, "c1") // it does not wait
	fact("run_2", lathe.FactApproval, "c1")
	fact("run_3", lathe.FactResult, "c1")
	fact("run_4", lathe.FactCancel, "")
	fact("run_5", lathe.FactApproval, "c1")
	moves("run_5", 2, &lathe.RunResumed{Reason: lathe.ReasonAwaitingApproval}, &lathe.RunPaused{Reason: lathe.ReasonAwaitingApproval, Pending: []string{"c2"}})
	fact("run_6", lathe.FactCancel, "")
	moves("run_6", 2, &lathe.RunFinished{Reason: lathe.ReasonCancelled, Status: "cancelled"})
	if got := told(t, s); !slices.Equal(slices.Sorted(slices.Values(got)), []string{"run_2", "run_3", "run_4"}) {
		t.Errorf("%v were told something", got)
	}
	fact("run_5", lathe.FactApproval, "c2")
	fact("run_1", lathe.FactApproval, "c1")
	if got := told(t, s); len(got) != 5 {
		t.Errorf("%v were told something", got)
	}
	if rows, _, err := s.Runs(t.Context(), &lathe.RunFilter{Told: true, RunID: "run_5"}); err != nil || len(rows) != 1 {
		t.Errorf("of one run: %d rows, %v", len(rows), err)
	}
}
