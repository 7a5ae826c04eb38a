package main

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/testkit/pgtest"
	"github.com/lathe-run/lathe/store"
)

// Runs that go from a file to a database and back come out as they were, with the answers that wait.
func TestCopyThroughADatabase(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	open := func(name string) app.Store {
		s, err := openStore(name, readWrite)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return s
	}
	first, second := open("sqlite:"+filepath.Join(dir, "a.db")), open("sqlite:"+filepath.Join(dir, "b.db"))
	between := open(pgtest.URL(t))

	cost := 0.1
	for _, id := range []string{"run_01", "run_02"} {
		events := []event.Event{
			{ID: 1, RunID: id, Data: &event.RunStarted{Model: "sim/demo", Messages: []lathe.Message{lathe.User("ü \u2028 \x00")}}},
			{ID: 2, RunID: id, Data: &event.ModelCallFinished{ProviderCost: &cost}},
		}
		if _, err := first.Append(ctx, id, 0, events...); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.PutSignal(ctx, store.Signal{RunID: "run_02", Kind: store.SignalApproval, Key: "call_1", Body: json.RawMessage(`{"approved":true}`)}); err != nil {
		t.Fatal(err)
	}
	for _, way := range [][2]app.Store{{first, between}, {between, second}, {first, second}} {
		c := copying{from: way[0], to: way[1]}
		if err := c.all(ctx); err != nil {
			t.Fatal(err)
		}
		if c.copied+c.had != 2 || c.waiting != 2 {
			t.Errorf("copied %d, had %d, waiting %d; want 2 runs that wait", c.copied, c.had, c.waiting)
		}
	}
	for _, id := range []string{"run_01", "run_02"} {
		var logs [2][]string
		var signals [2][]store.Signal
		for i, s := range []app.Store{first, second} {
			for e, err := range s.Read(ctx, id, 0) {
				if err != nil {
					t.Fatal(err)
				}
				b, err := e.MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				logs[i] = append(logs[i], string(b))
			}
			var err error
			if signals[i], err = s.Signals(ctx, id); err != nil {
				t.Fatal(err)
			}
			for k := range signals[i] {
				if signals[i][k].Time.IsZero() {
					t.Error("a signal has no time")
				}
				signals[i][k].Time = signals[0][k].Time // each store has its own
			}
		}
		if diff := cmp.Diff(logs[0], logs[1]); diff != "" || len(logs[0]) != 2 {
			t.Errorf("%s (-first +second):\n%s", id, diff)
		}
		if diff := cmp.Diff(signals[0], signals[1]); diff != "" || id == "run_02" && len(signals[0]) != 1 {
			t.Errorf("%s (-first +second):\n%s", id, diff)
		}
	}
}
