// Package storetest has the tests that every implementation of [store.Store] must pass, one function for each interface
// that a store may implement (package store says which is needed when):
//
//	Test            store.Store         always
//	TestIndex       store.RunIndex      runs are listed
//	TestSignals     store.SignalStore   external input is stored (with RunIndex)
//	TestRetention   store.Retainer      runs are removed by session, principal, age and size
//	TestCompaction  store.Compactor     content is removed while the run stays listed
//	TestShared      store.Shared        several processes use the store
//	TestRequests    store.RequestStore  client retries (with Retainer)
//	TestSecrets     store.SecretKeeper  keys that processes share
//	TestQueue       remote.Queue        tools are called on workers
//
// A store implements Store and any of the others; a test for an interface that it does not implement is left out.
package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/store"
)

// testOf is one test of a suite for stores of a type.
type testOf[S any] struct {
	name string
	fn   func(*testing.T, S)
}

// run runs the tests in parallel, each with a store of its own.
func run[S any](t *testing.T, open func() S, tests []testOf[S]) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.fn(t, open())
		})
	}
}

// cancelled returns a context that is done.
func cancelled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// Test runs the tests for [store.Store]. open returns an empty store of its own for each test; it may use t.Cleanup
// of the t that it closes over to close the store.
func Test(t *testing.T, open func() store.Store) {
	t.Helper()
	run(t, open, []testOf[store.Store]{
		{"appends and reads", appendsAndReads},
		{"keeps every event type whole", keepsEveryType},
		{"keeps copies", keepsCopies},
		{"answers conflict when the log has moved on", conflict},
		{"appends all or none", allOrNone},
		{"refuses what does not fit", refusesMisfits},
		{"keeps runs apart", keepsRunsApart},
		{"misses what is not there", misses},
		{"deletes", deletes},
		{"reads a consistent snapshot", snapshot},
		{"stops reading early", stopsEarly},
		{"respects the context", respectsContext},
		{"lets one of many writers win", oneWriterWins},
	})
}

func appendsAndReads(t *testing.T, s store.Store) {
	ctx := t.Context()
	for i, n := range []int{1, 3, 0, 2} {
		last := []int64{0, 1, 4, 4}[i]
		end, err := s.Append(ctx, "run_a", last, events("run_a", last, n)...)
		if want := last + int64(n); err != nil || end != want {
			t.Fatalf("append of %d after %d: got %d, %v, want %d", n, last, end, err, want)
		}
	}
	for after := int64(0); after <= 6; after++ {
		got := read(t, s, "run_a", after)
		if len(got) != int(6-after) {
			t.Fatalf("after %d: got %d events, want %d", after, len(got), 6-after)
		}
		for i, e := range got {
			if e.ID != after+int64(i)+1 {
				t.Errorf("after %d: event %d has id %d", after, i, e.ID)
			}
		}
	}
}

func keepsEveryType(t *testing.T, s store.Store) {
	var want []event.Event
	for _, d := range everyType() {
		want = append(want, stamped("run_a", int64(len(want))+1, d))
	}
	mustAppend(t, s, "run_a", 0, want...)
	got := read(t, s, "run_a", 0)
	if len(got) != len(want) {
		t.Fatalf("got %d events, want %d", len(got), len(want))
	}
	for i := range want {
		if g, w := encode(t, got[i]), encode(t, want[i]); !bytes.Equal(g, w) {
			t.Errorf("%s came back changed:\n got %s\nwant %s", want[i].Data.EventType(), g, w)
		}
		if f, ok := got[i].Data.(*event.RunFinished); ok && f.Result != nil {
			t.Error("RunFinished.Result is for the process that ran it, but was kept")
		}
	}
	stored := map[string]bool{}
	for _, e := range got {
		stored[e.Data.EventType()] = true
	}
	for _, name := range event.Types() {
		if d := fromJSON(t, name); !event.IsDelta(d) && !stored[name] {
			t.Errorf("the suite does not store a %s", name)
		}
	}
}

// keepsCopies changes all that hangs on the events it wrote, and on those it read: the log must not notice.
func keepsCopies(t *testing.T, s store.Store) {
	var in []event.Event
	for _, d := range everyType() {
		in = append(in, stamped("run_a", int64(len(in))+1, d))
	}
	var want [][]byte
	for _, e := range in {
		want = append(want, encode(t, e))
	}
	mustAppend(t, s, "run_a", 0, in...)
	for i := range in {
		scribble(&in[i])
	}
	for _, who := range []string{"the writer", "a reader"} {
		got := read(t, s, "run_a", 0)
		for i := range got {
			if g := encode(t, got[i]); !bytes.Equal(g, want[i]) {
				t.Errorf("%s changed its %s, and the log with it:\n got %s\nwant %s", who, in[i].Data.EventType(), g, want[i])
			}
			scribble(&got[i])
		}
	}
}

func conflict(t *testing.T, s store.Store) {
	ctx := t.Context()
	mustAppend(t, s, "run_a", 0, events("run_a", 0, 3)...)
	for _, last := range []int64{0, 2, 4} {
		end, err := s.Append(ctx, "run_a", last, events("run_a", last, 1)...)
		wantConflict(t, fmt.Sprintf("append after %d", last), err)
		if end != 3 {
			t.Errorf("append after %d: got end %d, want the log's 3", last, end)
		}
	}
	_, err := s.Append(ctx, "run_b", 1, events("run_b", 1, 1)...)
	wantConflict(t, "append after 1 to a new run", err)
	_, err = s.Append(ctx, "run_a", 2)
	wantConflict(t, "append of nothing after 2", err)
	if got := read(t, s, "run_a", 0); len(got) != 3 {
		t.Errorf("refused appends left %d events, want 3", len(got))
	}
}

func wantConflict(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, lathe.ErrConflict) || lathe.CodeOf(err) != lathe.CodeConflict {
		t.Errorf("%s: got %v (code %s), want %v", what, err, lathe.CodeOf(err), lathe.ErrConflict)
	}
}

func allOrNone(t *testing.T, s store.Store) {
	mustAppend(t, s, "run_a", 0, events("run_a", 0, 1)...)
	batch := events("run_a", 1, 3)
	batch[2].ID = 9
	if _, err := s.Append(t.Context(), "run_a", 1, batch...); err == nil {
		t.Error("a batch with a gap was appended")
	}
	if got := read(t, s, "run_a", 0); len(got) != 1 {
		t.Errorf("a refused batch left %d events, want 1", len(got))
	}
	mustAppend(t, s, "run_a", 1, events("run_a", 1, 3)...)
}

func refusesMisfits(t *testing.T, s store.Store) {
	delta := stamped("run_a", 1, &event.TextDelta{Bytes: 1, Text: "a"})
	foreign := stamped("run_b", 1, &event.RunResumed{})
	twice := []event.Event{stamped("run_a", 1, &event.RunResumed{}), stamped("run_a", 1, &event.RunResumed{})}
	for _, tt := range []struct {
		name   string
		run    string
		last   int64
		events []event.Event
	}{
		{"a delta", "run_a", 0, []event.Event{delta}},
		{"no data", "run_a", 0, []event.Event{{ID: 1, RunID: "run_a"}}},
		{"another run's event", "run_a", 0, []event.Event{foreign}},
		{"an id twice", "run_a", 0, twice},
		{"id 0", "run_a", 0, events("run_a", -1, 1)},
		{"a gap", "run_a", 0, events("run_a", 1, 1)},
		{"a negative last id", "run_a", -1, events("run_a", -1, 1)},
		{"a run without an id", "", 0, events("", 0, 1)},
	} {
		_, err := s.Append(t.Context(), tt.run, tt.last, tt.events...)
		if lathe.CodeOf(err) != lathe.CodeInvalidRequest {
			t.Errorf("%s: got %v (code %s), want %s", tt.name, err, lathe.CodeOf(err), lathe.CodeInvalidRequest)
		}
	}
	if _, err := collect(s.Read(t.Context(), "run_a", 0)); !errors.Is(err, lathe.ErrNotFound) {
		t.Errorf("refused events made a log: %v", err)
	}
}

func keepsRunsApart(t *testing.T, s store.Store) {
	mustAppend(t, s, "run_a", 0, events("run_a", 0, 2)...)
	mustAppend(t, s, "run_b", 0, events("run_b", 0, 3)...)
	mustAppend(t, s, "run_a", 2, events("run_a", 2, 2)...)
	for run, want := range map[string]int{"run_a": 4, "run_b": 3} {
		got := read(t, s, run, 0)
		if len(got) != want {
			t.Errorf("%s has %d events, want %d", run, len(got), want)
		}
		for _, e := range got {
			if e.RunID != run {
				t.Errorf("%s has an event of %s", run, e.RunID)
			}
		}
	}
}

func misses(t *testing.T, s store.Store) {
	mustAppend(t, s, "run_a", 0, events("run_a", 0, 2)...)
	if _, err := s.Append(t.Context(), "run_empty", 0); err != nil {
		t.Errorf("append of nothing to a new run: %v", err)
	}
	for _, tt := range []struct {
		run   string
		after int64
	}{{"run_none", 0}, {"run_none", 1}, {"run_empty", 0}, {"run_a", 3}, {"run_a", -1}} {
		got, err := collect(s.Read(t.Context(), tt.run, tt.after))
		if len(got) != 0 || !errors.Is(err, lathe.ErrNotFound) || lathe.CodeOf(err) != lathe.CodeNotFound {
			t.Errorf("read of %s after %d: got %d events, %v (code %s), want %v", tt.run, tt.after, len(got), err, lathe.CodeOf(err), lathe.ErrNotFound)
		}
	}
}

func deletes(t *testing.T, s store.Store) {
	ctx := t.Context()
	mustAppend(t, s, "run_a", 0, events("run_a", 0, 2)...)
	mustAppend(t, s, "run_b", 0, events("run_b", 0, 1)...)
	for range 2 {
		if err := s.Delete(ctx, "run_a"); err != nil {
			t.Fatalf("delete: %v", err)
		}
	}
	if _, err := collect(s.Read(ctx, "run_a", 0)); !errors.Is(err, lathe.ErrNotFound) {
		t.Errorf("read of a deleted run: got %v, want %v", err, lathe.ErrNotFound)
	}
	if got := read(t, s, "run_b", 0); len(got) != 1 {
		t.Errorf("the other run has %d events, want 1", len(got))
	}
	mustAppend(t, s, "run_a", 0, events("run_a", 0, 1)...)
	if got := read(t, s, "run_a", 0); len(got) != 1 {
		t.Errorf("the run begun again has %d events, want 1", len(got))
	}
}

// snapshot appends and deletes while a read goes on: the read sees the log of its start, whole.
func snapshot(t *testing.T, s store.Store) {
	ctx := t.Context()
	mustAppend(t, s, "run_a", 0, events("run_a", 0, 50)...)
	n := 0
	for e, err := range s.Read(ctx, "run_a", 0) {
		if err != nil {
			t.Fatalf("read: %v", err)
		}
		n++
		if e.ID != int64(n) {
			t.Fatalf("event %d has id %d", n, e.ID)
		}
		switch n {
		case 10:
			mustAppend(t, s, "run_a", 50, events("run_a", 50, 5)...)
		case 20:
			if err := s.Delete(ctx, "run_a"); err != nil {
				t.Fatalf("delete: %v", err)
			}
		}
	}
	if n != 50 {
		t.Errorf("the read saw %d events, want the 50 of its start", n)
	}
}

func stopsEarly(t *testing.T, s store.Store) {
	mustAppend(t, s, "run_a", 0, events("run_a", 0, 5)...)
	n := 0
	for _, err := range s.Read(t.Context(), "run_a", 0) {
		if err != nil {
			t.Fatalf("read: %v", err)
		}
		n++
		if n == 2 {
			break
		}
	}
	mustAppend(t, s, "run_a", 5, events("run_a", 5, 1)...)
	seq := s.Read(t.Context(), "run_a", 0)
	for range 2 {
		if got, err := collect(seq); err != nil || len(got) != 6 {
			t.Errorf("a sequence read again: got %d events, %v, want 6", len(got), err)
		}
	}
}

func respectsContext(t *testing.T, s store.Store) {
	mustAppend(t, s, "run_a", 0, events("run_a", 0, 50)...)
	done := cancelled(t)
	late, cancelLate := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancelLate()
	for _, tt := range []struct {
		name string
		ctx  context.Context
		is   error
		code lathe.Code
	}{{"cancelled", done, context.Canceled, lathe.CodeCancelled}, {"late", late, context.DeadlineExceeded, lathe.CodeTimeout}} {
		check := func(what string, err error) {
			t.Helper()
			if !errors.Is(err, tt.is) || lathe.CodeOf(err) != tt.code {
				t.Errorf("%s %s: got %v (code %s), want %v", tt.name, what, err, lathe.CodeOf(err), tt.is)
			}
		}
		_, err := s.Append(tt.ctx, "run_a", 50, events("run_a", 50, 1)...)
		check("append", err)
		check("delete", s.Delete(tt.ctx, "run_a"))
		got, err := collect(s.Read(tt.ctx, "run_a", 0))
		check("read", err)
		if len(got) != 0 {
			t.Errorf("%s read: got %d events, want none", tt.name, len(got))
		}
	}
	if got := read(t, s, "run_a", 0); len(got) != 50 {
		t.Errorf("refused calls left %d events, want 50", len(got))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n, err := 0, error(nil)
	for _, e := range s.Read(ctx, "run_a", 0) {
		if err = e; err != nil {
			break
		}
		n++
		cancel()
	}
	if n == 50 || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled while reading: got %d events, %v, want an error before the end", n, err)
	}
}

func oneWriterWins(t *testing.T, s store.Store) {
	const writers, rounds = 4, 20
	var wg sync.WaitGroup
	won := make([]int, writers)
	for w := range writers {
		wg.Go(func() {
			for last := int64(0); last < rounds; {
				end, err := s.Append(t.Context(), "run_a", last, events("run_a", last, 1)...)
				if err == nil {
					won[w]++
				} else if !errors.Is(err, lathe.ErrConflict) {
					t.Errorf("append after %d: %v", last, err)
					return
				}
				if end <= last {
					t.Errorf("append after %d: the log ends at %d", last, end)
					return
				}
				last = end
			}
		})
	}
	wg.Wait()
	got := read(t, s, "run_a", 0)
	sum := 0
	for _, n := range won {
		sum += n
	}
	if sum != len(got) || len(got) < rounds {
		t.Errorf("%d appends succeeded and %d events are there, want as many, at least %d", sum, len(got), rounds)
	}
	for i, e := range got {
		if e.ID != int64(i)+1 {
			t.Errorf("event %d has id %d", i, e.ID)
		}
	}
}

func fromJSON(t *testing.T, name string) event.Data {
	t.Helper()
	var e event.Event
	if err := json.Unmarshal(fmt.Appendf(nil, `{"type":%q,"data":{},"time":"2026-01-01T00:00:00Z"}`, name), &e); err != nil {
		t.Fatal(err)
	}
	return e.Data
}
