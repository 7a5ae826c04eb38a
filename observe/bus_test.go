package observe_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"

	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/observe"
)

func stored(runID string, id int64) event.Event {
	return event.Event{ID: id, RunID: runID, Data: &event.ToolCallPlanned{Seq: int(id)}}
}

func delta(runID string, n int64, d *event.TextDelta) event.Event {
	return event.Event{N: n, RunID: runID, Data: d}
}

// drain reads until the subscription ends or nothing waits.
func drain(s *observe.Subscription) (got []event.Event, end error) {
	done, cancel := context.WithCancel(context.Background())
	cancel() // an event that waits is returned all the same
	for {
		e, err := s.Next(done)
		if err != nil {
			return got, err
		}
		got = append(got, e)
	}
}

func TestBusHandsOnOneRun(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	bus := observe.NewBus(nil)
	bus.Emit(ctx, stored("run_a", 1))
	one, all := bus.Subscribe("run_a"), bus.Subscribe("")
	defer all.Close()
	bus.Emit(ctx, stored("run_a", 2))
	bus.Emit(ctx, delta("run_a", 1, &event.TextDelta{Text: "first"}))
	bus.Emit(ctx, stored("run_b", 1))
	bus.Emit(ctx, event.Event{ID: 3, RunID: "run_a", Data: &event.RunFinished{}})
	bus.Emit(ctx, stored("run_a", 4))

	got, end := drain(one)
	if len(got) != 3 || got[0].ID != 2 || got[1].Data.(*event.TextDelta).Text != "first" || got[2].ID != 3 || !errors.Is(end, io.EOF) {
		t.Errorf("one run: got %v, %v, want 2, the delta and 3, then EOF", got, end)
	}
	got, end = drain(all)
	if len(got) != 5 || !errors.Is(end, context.Canceled) {
		t.Errorf("all runs: got %d events, %v, want 5 and no end", len(got), end)
	}
	one.Close()
	one.Close()
	if _, err := one.Next(ctx); !errors.Is(err, io.EOF) {
		t.Errorf("closed: got %v, want EOF", err)
	}
}

func TestBusWakesItsReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bus := observe.NewBus(nil)
		s := bus.Subscribe("run_a")
		ids := make(chan int64)
		go func() {
			defer close(ids)
			for {
				e, err := s.Next(t.Context())
				if err != nil {
					return
				}
				ids <- e.ID
			}
		}()
		for id := range int64(3) {
			synctest.Wait() // the reader waits
			bus.Emit(t.Context(), stored("run_a", id+1))
			if got := <-ids; got != id+1 {
				t.Errorf("got %d, want %d", got, id+1)
			}
		}
		synctest.Wait()
		s.Close()
		if _, open := <-ids; open {
			t.Error("Close did not end the reader")
		}
	})
}

func TestBusDropsDeltasForASlowReader(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dropped := 0
	bus := observe.NewBus(&observe.BusOptions{Buffer: 4, Dropped: func(n int) { dropped += n }})
	s := bus.Subscribe("run_a")
	defer s.Close()
	bus.Emit(ctx, stored("run_a", 1))
	for n := range int64(10) {
		bus.Emit(ctx, delta("run_a", n+1, &event.TextDelta{}))
	}
	bus.Emit(ctx, stored("run_a", 2))
	got, _ := drain(s)
	var ids, ns []int64
	for _, e := range got {
		if e.ID != 0 {
			ids = append(ids, e.ID)
		} else {
			ns = append(ns, e.N)
		}
	}
	if len(ids) != 2 || ids[0] != 1 || ids[1] != 2 {
		t.Errorf("stored events: got %v, want 1 and 2", ids)
	}
	if len(ns)+dropped != 10 || dropped == 0 || ns[len(ns)-1] != 10 {
		t.Errorf("deltas: got %v and %d dropped, want the last ones and 10 in all", ns, dropped)
	}
}

// Dropped is called without the lock of the bus: a deadlock would end the test at its time limit.
func TestBusMayBeUsedByDropped(t *testing.T) {
	t.Parallel()
	var bus *observe.Bus
	calls := 0
	bus = observe.NewBus(&observe.BusOptions{Buffer: 1, Dropped: func(int) {
		calls++
		bus.Subscribe("run_b").Close()
	}})
	defer bus.Subscribe("run_a").Close()
	for n := range int64(2) {
		bus.Emit(t.Context(), delta("run_a", n+1, &event.TextDelta{}))
	}
	if calls != 1 {
		t.Errorf("Dropped was called %d times, want 1", calls)
	}
}

func TestBusCutsAReaderThatWouldMissStoredEvents(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dropped := 0
	bus := observe.NewBus(&observe.BusOptions{Buffer: 3, Dropped: func(n int) { dropped += n }})
	s := bus.Subscribe("run_a")
	defer s.Close()
	for id := range int64(3) {
		bus.Emit(ctx, stored("run_a", id+1))
	}
	bus.Emit(ctx, delta("run_a", 1, &event.TextDelta{}))
	if dropped != 1 {
		t.Errorf("a delta that found no room: %d dropped, want 1", dropped)
	}
	bus.Emit(ctx, stored("run_a", 4))
	bus.Emit(ctx, stored("run_a", 5))
	got, end := drain(s)
	if len(got) != 3 || got[2].ID != 3 || !errors.Is(end, observe.ErrLagged) {
		t.Errorf("got %v, %v, want 1 to 3, then ErrLagged", got, end)
	}
	if dropped != 2 {
		t.Errorf("%d dropped, want 2: what comes after the cut is not the bus's loss", dropped)
	}
}

// Not parallel: it counts allocations.
func TestBusWithoutWatchersDoesNotAllocate(t *testing.T) {
	testdata.CountsAllocations(t)
	bus := observe.NewBus(nil)
	e := delta("run_a", 1, &event.TextDelta{})
	if n := testing.AllocsPerRun(100, func() { bus.Emit(context.Background(), e) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// A subscription to a run that is kept begins with the text of the current model call, and continues with the deltas after it.
func TestSubscriptionBeginsWithKeptDeltas(t *testing.T) {
	t.Parallel()
	b := observe.NewBus(nil)
	drop := b.Keep("run_1")
	emit := func(n int64, data event.Data) {
		b.Emit(t.Context(), event.Event{RunID: "run_1", After: 2, N: n, Data: data})
	}
	read := func(want ...string) {
		t.Helper()
		s := b.Subscribe("run_1")
		defer s.Close()
		emit(6, &event.TextDelta{Text: "on"})
		want = append(want, "on")
		for i, text := range want {
			e, err := s.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			switch d := e.Data.(type) {
			case *event.TextDelta:
				got = d.Text
			case *event.ReasoningDelta:
				got = d.Text
			case *event.ToolCallDelta:
				got = d.ToolCallID + d.Text
			default:
			}
			if got != text || len(want) > 1 && e.N != int64(i)+1 {
				t.Errorf("event %d is %q with n %d, want %q", i, got, e.N, text)
			}
		}
	}
	b.Emit(t.Context(), event.Event{RunID: "run_1", ID: 2, Data: &event.ModelCallStarted{}})
	emit(1, &event.ReasoningDelta{Text: "hm"})
	emit(2, &event.TextDelta{Text: "It "})
	emit(3, &event.TextDelta{Text: "is"})
	emit(4, &event.ToolCallDelta{ToolCallID: "a", Text: "{"})
	emit(5, &event.ToolCallDelta{ToolCallID: "a", Text: "}"})
	read("hm", "It is", "a{}")
	b.Emit(t.Context(), event.Event{RunID: "run_1", ID: 3, Data: &event.ModelCallStarted{}})
	emit(2, &event.TextDelta{Text: "without the first"})
	read()
	b.Emit(t.Context(), event.Event{RunID: "run_1", ID: 4, Data: &event.ModelCallStarted{}})
	for i := range int64(600) { // no two consecutive ones belong together
		emit(i+1, &event.ToolCallDelta{Index: int(i % 2), Text: "x"})
	}
	read()
	drop()
	emit(1, &event.TextDelta{Text: "not kept"})
	read()
}
