package engine_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/store"
)

func never(lathe.EventData) bool { return false }

// planned is due where a tool is about to be called.
func planned(d lathe.EventData) bool { _, ok := d.(*lathe.ToolCallPlanned); return ok }

// A run of which nothing is due is stored whole, after its end was told; its client does not wait for a slow store.
func TestLazyRunIsStoredAfterItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept := &memory{slow: time.Second}
		w := &watcher{store: kept}
		e := engine.New(&engine.Options{Store: kept, Sinks: []lathe.Sink{w}})
		began := time.Now()
		res, err := e.RunLazily(t.Context(), newLoop(t, model{pieces: 1}, &counter{}), input(), never)
		if err != nil || res.Answer != "x" || time.Since(began) != 0 {
			t.Fatalf("got %+v, %v after %v", res, err, time.Since(began))
		}
		if slices.Max(w.stored) != 0 {
			t.Errorf("stored while the events were told: %v", w.stored)
		}
		hurry, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := e.Settle(hurry, ""); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("settled with %v before it was stored", err)
		}
		id := w.events[0].RunID
		if err := e.Settle(t.Context(), "run_other"); err != nil || kept.len(id) > 0 {
			t.Errorf("waited for another run: %v", err)
		}
		if err := e.Settle(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		told := slices.DeleteFunc(w.events, func(e lathe.Event) bool { return lathe.IsDelta(e.Data) })
		if !slices.Equal(kept.log[id], told) {
			t.Errorf("stored %d events, told %d", len(kept.log[id]), len(told))
		}
	})
}

// What is due is on record before anything follows from it, with all that was before.
func TestLazyRunStoresWhatIsDue(t *testing.T) {
	t.Parallel()
	kept := &memory{}
	w := &watcher{store: kept}
	e := engine.New(&engine.Options{Store: kept, Sinks: []lathe.Sink{w}})
	if _, err := e.RunLazily(t.Context(), newLoop(t, model{}, &counter{}), input(), planned); err != nil {
		t.Fatal(err)
	}
	due := false
	for i, ev := range w.events {
		due = due || planned(ev.Data)
		if want := int(ev.ID); due && w.stored[i] != want || !due && w.stored[i] != 0 {
			t.Errorf("%s: told with %d stored", ev.Data.EventType(), w.stored[i])
		}
	}
	if !due {
		t.Error("nothing was planned")
	}
}

// Where what is due cannot be stored, the run ends before its tool is called.
func TestLazyRunEndsWithItsStore(t *testing.T) {
	t.Parallel()
	for _, shared := range []bool{false, true} {
		full := errors.New("disk full")
		var kept lathe.Store = &memory{failAt: "ToolCallPlanned", err: full}
		if shared {
			kept = &failing{Memory: store.NewMemory(nil), err: &lathe.Error{Code: lathe.CodeUnavailable, Err: full}}
		}
		c := &counter{}
		in := input()
		in.Park = true
		res, err := engine.New(&engine.Options{Store: kept}).RunLazily(t.Context(), newLoop(t, model{}, c), in, planned)
		if res.Reason != lathe.ReasonInternal || !errors.Is(err, full) || c.count() != 0 {
			t.Errorf("shared %v: got %+v, %v, and %d calls", shared, res, err, c.count())
		}
	}
}

// failing is a shared store that takes nothing.
type failing struct {
	*store.Memory
	err error
}

func (f *failing) AppendAs(context.Context, lathe.Claim, int64, ...lathe.Event) (int64, error) {
	return 0, f.err
}

// A store that fails afterwards, or panics, has no part in what the client is told.
func TestLazyRunOutlivesItsStore(t *testing.T) {
	t.Parallel()
	for _, err := range []error{errors.New("disk full"), nil} {
		e := engine.New(&engine.Options{Store: &memory{failAt: "RunFinished", err: err}})
		res, err := e.RunLazily(t.Context(), newLoop(t, model{pieces: 1}, &counter{}), input(), never)
		if err != nil || res.Answer != "x" {
			t.Errorf("got %+v, %v", res, err)
		}
		if err := e.Settle(t.Context(), ""); err != nil {
			t.Error(err)
		}
	}
}

// The claim of a run begins with what is due, and ends with the run; a run of which nothing is due has none.
func TestLazyRunIsClaimedOnceItIsStored(t *testing.T) {
	t.Parallel()
	for _, due := range []func(lathe.EventData) bool{never, planned} {
		kept := store.NewMemory(nil)
		e := engine.New(&engine.Options{Store: kept, Node: "a"})
		in := input()
		in.Run.RunID = "run_1"
		if _, err := e.RunLazily(t.Context(), newLoop(t, model{}, &counter{}), in, due); err != nil {
			t.Fatal(err)
		}
		if err := e.Settle(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		if reason, _ := ends(t, kept, "run_1"); reason != lathe.ReasonAnswered {
			t.Errorf("got %q", reason)
		}
		if claims, err := kept.Claim(t.Context(), "b", time.Minute, 10); err != nil || len(claims) > 0 {
			t.Errorf("there is something to claim: %v, %v", claims, err)
		}
	}
}

// A store in memory takes the run before its end is told.
func TestLazyRunIsStoredAtOnce(t *testing.T) {
	t.Parallel()
	kept := &memory{}
	w := &watcher{store: kept}
	e := engine.New(&engine.Options{Store: kept, Sinks: []lathe.Sink{w}, StoreAtOnce: true})
	if _, err := e.RunLazily(t.Context(), newLoop(t, model{}, &counter{}), input(), never); err != nil {
		t.Fatal(err)
	}
	last := len(w.events) - 1
	if w.stored[last] != int(w.events[last].ID) || w.stored[last-1] != 0 {
		t.Errorf("stored %v", w.stored)
	}
}

// Whoever asks for a run that goes on finds it, with all that was told of it; it goes on as any other.
func TestSettleStoresWhatGoesOn(t *testing.T) {
	t.Parallel()
	for _, shared := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			mem := store.NewMemory(nil)
			var kept lathe.RunIndex = mem
			if !shared {
				kept = struct{ lathe.RunIndex }{mem}
			}
			e := engine.New(&engine.Options{Store: kept})
			in := input()
			in.Run.RunID = "run_1"
			done := make(chan *lathe.Result)
			go func() {
				res, _ := e.RunLazily(t.Context(), newLoop(t, model{wait: time.Minute}, &counter{}), in, never)
				done <- res
			}()
			time.Sleep(90 * time.Second) // within the second turn
			if rows, _, err := kept.Runs(t.Context(), &lathe.RunFilter{}); err != nil || len(rows) > 0 {
				t.Errorf("stored unasked: %v, %v", rows, err)
			}
			if err := e.Settle(t.Context(), "run_1"); err != nil {
				t.Fatal(err)
			}
			if got := status(t, kept, "run_1"); got != "running" {
				t.Errorf("shared %v: %q", shared, got)
			}
			if res := <-done; res.Reason != lathe.ReasonAnswered {
				t.Errorf("%+v", res)
			}
			if reason, n := ends(t, kept, "run_1"); reason != lathe.ReasonAnswered || n != 1 {
				t.Errorf("shared %v: ended %q, %d times", shared, reason, n)
			}
		})
	}
}

// A run that was never stored has no claim to give back: nobody waits for a database that hangs.
func TestLazyRunGivesNothingBack(t *testing.T) {
	t.Parallel()
	kept := &clinging{Memory: store.NewMemory(nil)}
	e := engine.New(&engine.Options{Store: kept})
	if _, err := e.RunLazily(t.Context(), newLoop(t, model{}, &counter{}), input(), never); err != nil {
		t.Fatal(err)
	}
	if err := e.Settle(t.Context(), ""); err != nil || kept.n.Load() != 0 {
		t.Errorf("%d claims were given back, %v", kept.n.Load(), err)
	}
}

// clinging counts the claims that are given back.
type clinging struct {
	*store.Memory
	n atomic.Int64
}

func (c *clinging) Release(ctx context.Context, claim lathe.Claim, seen int64) error {
	c.n.Add(1)
	return c.Memory.Release(ctx, claim, seen)
}
