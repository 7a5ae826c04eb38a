package storetest

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

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
