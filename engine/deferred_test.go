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
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/store"
)

func never(event.Data) bool { return false }

// planned is a MustPersist function: events must be stored from the first tool call on.
func planned(d event.Data) bool { _, ok := d.(*event.ToolCallPlanned); return ok }

// A deferred run without an event that must persist is stored whole, after its end was published; its client does not wait
// for a slow store.
func TestDeferredRunIsStoredAfterItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept := &memory{slow: time.Second}
		w := &watcher{store: kept}
		e := newEngine(t, &engine.Options{Store: kept, Sinks: []event.Sink{w}})
		began := time.Now()
		res, err := e.Run(t.Context(), newLoop(t, model{pieces: 1}, &counter{}), input(), &engine.RunOptions{Durability: engine.Deferred, MustPersist: never})
		if err != nil || res.Answer != "x" || time.Since(began) != 0 {
			t.Fatalf("got %+v, %v after %v", res, err, time.Since(began))
		}
		if slices.Max(w.stored) != 0 {
			t.Errorf("stored while the events were published: %v", w.stored)
		}
		hurry, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := e.Flush(hurry, ""); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("settled with %v before it was stored", err)
		}
		id := w.events[0].RunID
		if err := e.Flush(t.Context(), "run_other"); err != nil || kept.len(id) > 0 {
			t.Errorf("waited for another run: %v", err)
		}
		if err := e.Flush(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		published := slices.DeleteFunc(w.events, func(e event.Event) bool { return event.IsDelta(e.Data) })
		if !slices.Equal(kept.log[id], published) {
			t.Errorf("stored %d events, published %d", len(kept.log[id]), len(published))
		}
	})
}

// What must be stored is stored before anything follows from it, with all that was before.
func TestDeferredRunStoresWhatMustPersist(t *testing.T) {
	t.Parallel()
	kept := &memory{}
	w := &watcher{store: kept}
	e := newEngine(t, &engine.Options{Store: kept, Sinks: []event.Sink{w}})
	if _, err := e.Run(t.Context(), newLoop(t, model{}, &counter{}), input(), &engine.RunOptions{Durability: engine.Deferred, MustPersist: planned}); err != nil {
		t.Fatal(err)
	}
	stored := false
	for i, ev := range w.events {
		stored = stored || planned(ev.Data)
		if want := int(ev.ID); stored && w.stored[i] != want || !stored && w.stored[i] != 0 {
			t.Errorf("%s: published with %d stored", ev.Data.EventType(), w.stored[i])
		}
	}
	if !stored {
		t.Error("nothing was planned")
	}
}

// If an event that must be stored cannot be stored, the run ends before its tool is called.
func TestDeferredRunEndsWithItsStore(t *testing.T) {
	t.Parallel()
	for _, shared := range []bool{false, true} {
		full := errors.New("disk full")
		var kept store.Store = &memory{failAt: "ToolCallPlanned", err: full}
		if shared {
			kept = &failing{Memory: store.NewMemory(nil), err: &lathe.Error{Code: lathe.CodeUnavailable, Err: full}}
		}
		c := &counter{}
		in := input()
		in.Park = true
		res, err := newEngine(t, &engine.Options{Store: kept}).Run(t.Context(), newLoop(t, model{}, c), in, &engine.RunOptions{Durability: engine.Deferred, MustPersist: planned})
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

func (f *failing) AppendAs(context.Context, store.Claim, int64, ...event.Event) (int64, error) {
	return 0, f.err
}

// A store that fails or panics after a deferred run has ended does not change the result that the client gets.
func TestDeferredRunOutlivesItsStore(t *testing.T) {
	t.Parallel()
	for _, err := range []error{errors.New("disk full"), nil} {
		e := newEngine(t, &engine.Options{Store: &memory{failAt: "RunFinished", err: err}})
		res, err := e.Run(t.Context(), newLoop(t, model{pieces: 1}, &counter{}), input(), &engine.RunOptions{Durability: engine.Deferred, MustPersist: never})
		if err != nil || res.Answer != "x" {
			t.Errorf("got %+v, %v", res, err)
		}
		if err := e.Flush(t.Context(), ""); err != nil {
			t.Error(err)
		}
	}
}

// The claim of a deferred run begins with the first event that must be stored, and ends with the run; a run without such an event has no claim.
func TestDeferredRunIsClaimedOnceItIsStored(t *testing.T) {
	t.Parallel()
	for _, stored := range []func(event.Data) bool{never, planned} {
		kept := store.NewMemory(nil)
		e := newEngine(t, &engine.Options{Store: kept, Node: "a"})
		in := input()
		in.Run.RunID = "run_1"
		if _, err := e.Run(t.Context(), newLoop(t, model{}, &counter{}), in, &engine.RunOptions{Durability: engine.Deferred, MustPersist: stored}); err != nil {
			t.Fatal(err)
		}
		if err := e.Flush(t.Context(), ""); err != nil {
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

// With FlushBeforeEnd, as for a store in memory, the engine stores a deferred run before it publishes the run's end.
func TestDeferredRunIsStoredAtOnce(t *testing.T) {
	t.Parallel()
	kept := &memory{}
	w := &watcher{store: kept}
	e := newEngine(t, &engine.Options{Store: kept, Sinks: []event.Sink{w}, FlushBeforeEnd: true})
	if _, err := e.Run(t.Context(), newLoop(t, model{}, &counter{}), input(), &engine.RunOptions{Durability: engine.Deferred, MustPersist: never}); err != nil {
		t.Fatal(err)
	}
	last := len(w.events) - 1
	if w.stored[last] != int(w.events[last].ID) || w.stored[last-1] != 0 {
		t.Errorf("stored %v", w.stored)
	}
}

// Flush stores a deferred run that is under way, with its published events; the run then continues as any other.
func TestFlushStoresRunsUnderWay(t *testing.T) {
	t.Parallel()
	for _, shared := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			mem := store.NewMemory(nil)
			var kept store.RunIndex = mem
			if !shared {
				kept = struct{ store.RunIndex }{mem}
			}
			e := newEngine(t, &engine.Options{Store: kept})
			in := input()
			in.Run.RunID = "run_1"
			done := make(chan *event.Result)
			go func() {
				res, _ := e.Run(t.Context(), newLoop(t, model{wait: time.Minute}, &counter{}), in, &engine.RunOptions{Durability: engine.Deferred, MustPersist: never})
				done <- res
			}()
			time.Sleep(90 * time.Second) // within the second turn
			if rows, _, err := kept.Runs(t.Context(), &store.RunFilter{}); err != nil || len(rows) > 0 {
				t.Errorf("stored unasked: %v, %v", rows, err)
			}
			if err := e.Flush(t.Context(), "run_1"); err != nil {
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

// A deferred run holds no claim at its end. The engine releases none, so the caller does not wait for a database that hangs.
func TestDeferredRunReleasesNothing(t *testing.T) {
	t.Parallel()
	kept := &clinging{Memory: store.NewMemory(nil)}
	e := newEngine(t, &engine.Options{Store: kept})
	if _, err := e.Run(t.Context(), newLoop(t, model{}, &counter{}), input(), &engine.RunOptions{Durability: engine.Deferred, MustPersist: never}); err != nil {
		t.Fatal(err)
	}
	if err := e.Flush(t.Context(), ""); err != nil || kept.n.Load() != 0 {
		t.Errorf("%d claims were released, %v", kept.n.Load(), err)
	}
}

// clinging counts the claims that are released.
type clinging struct {
	*store.Memory
	n atomic.Int64
}

func (c *clinging) Release(ctx context.Context, claim store.Claim, seen int64) error {
	c.n.Add(1)
	return c.Memory.Release(ctx, claim, seen)
}
