package storetest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/store"
)

// shrunk is what tests leave of a result: the settings are those of package loop.
func shrunk(e event.Event) event.Event {
	switch d := e.Data.(type) {
	case *event.RunStarted:
		c, keep := *d, *d.Retention
		keep.Applied, c.Retention = true, &keep
		e.Data = &c
	case *event.ToolCallResult:
		if len(d.Result) > 10 {
			c := *d
			c.Result = d.Result[:10]
			e.Removed += len(d.Result) - 10
			e.Data = &c
		}
	default: // stays as it is
	}
	return e
}

// TestCompaction runs the tests for [store.Compactor]. open is as of [Test].
func TestCompaction(t *testing.T, open func() store.Compactor) {
	t.Helper()
	t.Run("removes content of a run that has ended", func(t *testing.T) {
		t.Parallel()
		s := open()
		begin := func(id string, day int) {
			keep := &event.RunRetention{Mode: "metrics_only", MaxOutputBytes: 64}
			mustAppend(t, s, id, 0, at(id, 1, day*86400, &event.RunStarted{Principal: "p", Retention: keep, Messages: []lathe.Message{lathe.User("hello")}}),
				at(id, 2, day*86400+1, &event.ToolCallResult{ToolCallID: "c", Tool: "t", Status: "ok", Result: strings.Repeat("y", 1000) + "canary"}))
		}
		for _, run := range []struct {
			id  string
			day int
		}{{"run_b", 2}, {"run_a", 1}, {"run_c", 3}} {
			begin(run.id, run.day)
			mustAppend(t, s, run.id, 2, at(run.id, 3, run.day*86400+2, &event.RunFinished{Reason: lathe.ReasonAnswered, Status: "completed", Answer: "an answer"}))
		}
		begin("run_going", 1)
		end := epoch.Add(1000 * 24 * time.Hour)
		if got := endedIDs(t, s, nil, end, 10); got != "run_a run_b run_c" {
			t.Errorf("ended: %s", got)
		}
		if got := endedIDs(t, s, nil, epoch.Add(3*24*time.Hour), 10); got != "run_a run_b" {
			t.Errorf("ended before day 3: %s", got)
		}
		first, err := s.Ended(t.Context(), nil, end, 1)
		if err != nil || len(first) != 1 || first[0].Retention != "due" {
			t.Fatalf("%v, %v", first, err)
		}
		if got := endedIDs(t, s, &first[0], end, 10); got != "run_b run_c" {
			t.Errorf("ended after run_a: %s", got)
		}
		for range 2 { // the second time changes nothing
			if err := s.Compact(t.Context(), "run_a", shrunk); err != nil {
				t.Fatal(err)
			}
			n := 0
			for e, err := range s.Read(t.Context(), "run_a", 0) {
				if err != nil {
					t.Fatal(err)
				}
				n++
				if d, ok := e.Data.(*event.ToolCallResult); ok && (d.Result != strings.Repeat("y", 10) || e.Removed != 996) {
					t.Errorf("the result is %q, and %d bytes were removed", d.Result, e.Removed)
				}
				if d, ok := e.Data.(*event.RunFinished); ok && (d.Answer != "an answer" || e.Removed != 0) {
					t.Errorf("the answer is %q", d.Answer)
				}
			}
			if n != 3 {
				t.Errorf("%d events, want 3", n)
			}
			rows, _, err := s.Runs(t.Context(), &store.RunFilter{RunID: "run_a"})
			if err != nil || len(rows) != 1 || rows[0].Retention != "applied" || rows[0].Status != "completed" {
				t.Errorf("%+v, %v", rows, err)
			}
		}
		for e, err := range s.Read(t.Context(), "run_b", 0) {
			if err != nil || e.Removed != 0 {
				t.Errorf("another run has changed: %+v, %v", e, err)
			}
		}
		if err := s.Compact(t.Context(), "run_going", shrunk); !errors.Is(err, lathe.ErrConflict) {
			t.Errorf("a run that has not ended: %v", err)
		}
		if err := s.Compact(t.Context(), "run_none", shrunk); !errors.Is(err, lathe.ErrNotFound) {
			t.Errorf("an unknown run: %v", err)
		}
	})
}

func endedIDs(t *testing.T, s store.Compactor, after *store.RunSummary, before time.Time, limit int) string {
	t.Helper()
	rows, err := s.Ended(t.Context(), after, before, limit)
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]string, len(rows))
	for i := range rows {
		ids[i] = rows[i].RunID
	}
	return strings.Join(ids, " ")
}
