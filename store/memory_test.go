package store_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/testkit/storetest"
	"github.com/lathe-run/lathe/store"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	storetest.Test(t, func() store.Store { return store.NewMemory(nil) })
}

func TestMemoryRetention(t *testing.T) {
	t.Parallel()
	storetest.TestRetention(t, func() store.Retainer { return store.NewMemory(nil) })
}

func TestMemoryCompaction(t *testing.T) {
	t.Parallel()
	storetest.TestCompaction(t, func() store.Compactor { return store.NewMemory(nil) })
}

func TestMemoryRequests(t *testing.T) {
	t.Parallel()
	storetest.TestRequests(t, func() storetest.RequestRetainer { return store.NewMemory(nil) })
	storetest.TestSecrets(t, func() store.SecretKeeper { return store.NewMemory(nil) })
	storetest.TestLedger(t, func() store.Ledger { return store.NewMemory(nil) })
	storetest.TestValues(t, func() store.ValueKeeper { return store.NewMemory(nil) })
}

func finish(runID string, id int64, reason lathe.Reason) event.Event {
	return event.Event{ID: id, RunID: runID, Data: &event.RunFinished{Reason: reason}}
}

func started(runID string) event.Event {
	return event.Event{ID: 1, RunID: runID, Data: &event.RunStarted{}}
}

func has(t *testing.T, s store.Store, runID string) bool {
	t.Helper()
	for _, err := range s.Read(t.Context(), runID, 0) {
		if err == nil {
			return true
		}
		if !errors.Is(err, lathe.ErrNotFound) {
			t.Fatal(err)
		}
	}
	return false
}

func TestMemoryForgetsFinishedRunsFirst(t *testing.T) {
	t.Parallel()
	s := store.NewMemory(&store.MemoryOptions{MaxRuns: 3})
	add := func(runID string, events ...event.Event) error {
		_, err := s.Append(t.Context(), runID, events[0].ID-1, events...)
		return err
	}
	for _, run := range []string{"going", "parked", "done"} {
		if err := add(run, started(run)); err != nil {
			t.Fatal(err)
		}
	}
	if err := add("late", started("late")); lathe.CodeOf(err) != lathe.CodeUnavailable || !strings.Contains(err.Error(), "max_runs") {
		t.Errorf("a run too many: got %v, want unavailable that names max_runs", err)
	}
	if err := add("parked", finish("parked", 2, lathe.ReasonAwaitingApproval)); err != nil {
		t.Fatal(err)
	}
	if err := add("late", started("late")); lathe.CodeOf(err) != lathe.CodeUnavailable {
		t.Errorf("a parked run was forgotten: got %v, want unavailable", err)
	}
	if err := add("done", finish("done", 2, lathe.ReasonAnswered)); err != nil {
		t.Fatal(err)
	}
	if err := add("late", started("late")); err != nil {
		t.Errorf("with a finished run there is room: %v", err)
	}
	for run, want := range map[string]bool{"going": true, "parked": true, "done": false, "late": true} {
		if got := has(t, s, run); got != want {
			t.Errorf("%s is there: got %v, want %v", run, got, want)
		}
	}
	// Deleting a finished run must not leave its place in the order behind.
	if err := add("going", finish("going", 2, lathe.ReasonCancelled)); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), "going"); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		run := fmt.Sprint("next", i)
		err := add(run, started(run))
		if i == 0 && err != nil || i == 1 && lathe.CodeOf(err) != lathe.CodeUnavailable {
			t.Errorf("%s: got %v", run, err)
		}
	}
}

func TestMemoryBoundsTheEventsOfARun(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 3, 4} {
		s := store.NewMemory(&store.MemoryOptions{MaxEvents: 3})
		var events []event.Event
		for id := range n {
			events = append(events, event.Event{ID: int64(id) + 1, RunID: "r", Data: &event.RunResumed{}})
		}
		_, err := s.Append(t.Context(), "r", 0, events...)
		if refused := lathe.CodeOf(err) == lathe.CodeUnavailable; refused != (n > 3) {
			t.Errorf("%d events under a limit of 3: got %v", n, err)
		}
		if has(t, s, "r") != (n <= 3) {
			t.Errorf("%d events: a refused batch left something behind", n)
		}
	}
}

func BenchmarkMemory(b *testing.B) {
	s := store.NewMemory(nil)
	msg := lathe.Assistant("hello")
	b.ReportAllocs()
	for i := range b.N {
		run := fmt.Sprint(i)
		events := []event.Event{
			{ID: 1, RunID: run, Data: &event.RunStarted{Messages: []lathe.Message{lathe.User("hi")}}},
			{ID: 2, RunID: run, Data: &event.ModelCallStarted{}},
			{ID: 3, RunID: run, Data: &event.ModelCallFinished{Message: &msg}},
			{ID: 4, RunID: run, Data: &event.RunFinished{Reason: lathe.ReasonAnswered}},
		}
		for k, e := range events {
			if _, err := s.Append(b.Context(), run, int64(k), e); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func TestMemoryIndex(t *testing.T) {
	t.Parallel()
	storetest.TestIndex(t, func() store.RunIndex { return store.NewMemory(nil) })
}

func TestMemorySignals(t *testing.T) {
	t.Parallel()
	storetest.TestSignals(t, func() storetest.SignalIndex { return store.NewMemory(nil) })
}

func TestMemoryShared(t *testing.T) {
	t.Parallel()
	storetest.TestShared(t, func() (store.Shared, func(time.Duration)) {
		var passed atomic.Int64
		s := store.NewMemory(&store.MemoryOptions{Now: func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }})
		return s, func(d time.Duration) { passed.Add(int64(d)) }
	})
}

func TestMemoryBoundsTheBytesOfAllRuns(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	text := func(runID string, n int) event.Event {
		return event.Event{ID: 1, RunID: runID, Data: &event.RunStarted{Messages: []lathe.Message{lathe.User(strings.Repeat("x", n))}}}
	}
	s := store.NewMemory(&store.MemoryOptions{MaxBytes: 12_000})
	for _, run := range []string{"first", "second"} {
		if _, err := s.Append(ctx, run, 0, text(run, 4_000), finish(run, 2, lathe.ReasonAnswered)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Append(ctx, "third", 0, text("third", 4_000)); err != nil {
		t.Fatal(err)
	}
	if has(t, s, "first") || !has(t, s, "second") || !has(t, s, "third") {
		t.Error("the run that finished first was not the one that made room")
	}
	message := lathe.Assistant(strings.Repeat("x", 9_000))
	if _, err := s.Append(ctx, "third", 1, event.Event{ID: 2, RunID: "third", Data: &event.ModelCallFinished{Message: &message}}); err != nil {
		t.Errorf("a run that has begun: %v, want its events kept", err)
	}
	_, err := s.Append(ctx, "fourth", 0, started("fourth"))
	if lathe.CodeOf(err) != lathe.CodeUnavailable || !strings.Contains(err.Error(), "max_bytes") {
		t.Errorf("a run too many: %v, want unavailable that names max_bytes", err)
	}
	if !has(t, s, "second") {
		t.Error("a finished run was forgotten where that made no room")
	}
	if err := s.Delete(ctx, "third"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(ctx, "fourth", 0, started("fourth")); err != nil {
		t.Errorf("after the big run was deleted: %v", err)
	}
}

// What lists say of a run is the same, made of its events or of copies of them.
func TestCopyHasWhatListsShow(t *testing.T) {
	t.Parallel()
	cost := 0.5
	var whole, copied store.Summary
	for i, d := range []event.Data{
		&event.RunStarted{Model: "m", Provider: "p", Principal: "ann", Target: "t", Input: []byte(`{"version":1}`)},
		&event.ModelCallStarted{Attempt: 1, PromptHash: "h1", PromptHashV2: "h2"},
		&event.ModelCallFinished{Attempt: 1, Provider: "p", Model: "m1", Status: "success", Usage: lathe.Usage{InputTokens: 3}, ProviderCost: &cost, LatencyMS: 9, ToolCalls: 2, Message: &lathe.Message{}},
		&event.ToolCallProposed{ToolCallID: "c1"},
		&event.ToolCallPlanned{ToolCallID: "c1", Seq: 1},
		&event.ToolCallParseError{Error: "x"},
		&event.ApprovalRequested{ToolCallID: "c1", ExpiresAt: time.Unix(100, 0)},
		&event.ApprovalRequested{ToolCallID: "c2", ExpiresAt: time.Unix(50, 0)},
		&event.ApprovalResolved{ToolCallID: "c2", Decision: "denied"},
		&event.ToolCallExecuted{ToolCallID: "c2", LatencyMS: 4},
		&event.ToolCallResult{ToolCallID: "c2"},
		&event.RunPaused{Reason: lathe.ReasonAwaitingApproval, Pending: []string{"c1"}},
		&event.RunResumed{Reason: lathe.ReasonAwaitingApproval},
		&event.RunFinished{Reason: lathe.ReasonAnswered, Status: "completed"},
	} {
		e := event.Event{ID: int64(i + 1), RunID: "r", RequestID: "q", SessionID: "s", Turn: i / 3, Time: time.Unix(int64(i), 5), Data: d}
		b := store.Copy(e)
		whole.Apply(&e)
		copied.Apply(&b)
		if diff := cmp.Diff(whole.Run, copied.Run) + cmp.Diff(whole.Calls, copied.Calls); diff != "" {
			t.Errorf("after %s (-whole +copied):\n%s", d.EventType(), diff)
		}
	}
}

func TestMemoryKeepsTheLastThatFinished(t *testing.T) {
	t.Parallel()
	s := store.NewMemory(&store.MemoryOptions{MaxFinished: 2})
	for _, run := range []string{"a", "b", "c"} {
		if _, err := s.Append(t.Context(), run, 0, started(run)); err != nil {
			t.Fatal(err)
		}
	}
	for i, run := range []string{"b", "a", "c"} {
		if _, err := s.Append(t.Context(), run, 1, finish(run, 2, lathe.ReasonAnswered)); err != nil {
			t.Fatal(err)
		}
		if !has(t, s, run) || has(t, s, "b") != (i < 2) || !has(t, s, "a") {
			t.Errorf("after %s: a %v, b %v, c %v", run, has(t, s, "a"), has(t, s, "b"), has(t, s, "c"))
		}
	}
}
