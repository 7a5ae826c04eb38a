package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
)

// published counts the events that it receives.
type published struct{ n atomic.Int64 }

func (p *published) Emit(context.Context, event.Event) { p.n.Add(1) }

func TestNewRefusesBadOptions(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]*engine.Options{
		"lease":   {Lease: -time.Second},
		"timeout": {StoreTimeout: -1},
		"sink":    {Sinks: []event.Sink{nil}},
	} {
		if e, err := engine.New(opts); e != nil || lathe.CodeOf(err) != lathe.CodeInvalidConfig {
			t.Errorf("%s: got %v, %v", name, e, err)
		}
	}
	if s, err := engine.NewSupervisor(newEngine(t, nil), &engine.SupervisorOptions{MaxRuns: -1}); s != nil || lathe.CodeOf(err) != lathe.CodeInvalidConfig {
		t.Errorf("a supervisor of -1 runs: %v, %v", s, err)
	}
}

// What arrives for a run reaches one supervisor: a second one of the same engine is refused.
func TestEngineHasOneSupervisor(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	newSupervisor(t, e, 0)
	if s, err := engine.NewSupervisor(e, nil); s != nil || lathe.CodeOf(err) != lathe.CodeConflict {
		t.Errorf("got %v, %v", s, err)
	}
}

func TestRunOptionsThatContradict(t *testing.T) {
	t.Parallel()
	e := newEngine(t, &engine.Options{Store: &memory{}})
	sup := newSupervisor(t, e, 0)
	l := newLoop(t, model{}, &counter{})
	parks := input()
	parks.Park = true
	for name, opts := range map[string]*engine.RunOptions{
		"unknown":     {Durability: 9},
		"must not":    {MustPersist: never},
		"none parked": {Durability: engine.None},
	} {
		res, err := e.Run(t.Context(), l, parks, opts)
		if lathe.CodeOf(err) != lathe.CodeInvalidRequest || res == nil || res.Err != err {
			t.Errorf("%s: got %+v, %v", name, res, err)
		}
		if _, err := sup.Start(t.Context(), l, parks, opts); lathe.CodeOf(err) != lathe.CodeInvalidRequest {
			t.Errorf("%s: started: %v", name, err)
		}
	}
}

// Durability none stores nothing, audits and publishes everything; a supervisor knows all three.
func TestDurability(t *testing.T) {
	t.Parallel()
	for d, stored := range map[engine.Durability]bool{engine.None: false, engine.Deferred: true, engine.Immediate: true} {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			kept, w := &memory{}, &published{}
			e := newEngine(t, &engine.Options{Store: kept, FlushBeforeEnd: true, Sinks: []event.Sink{w}})
			res, err := e.Run(t.Context(), newLoop(t, model{pieces: 1}, &counter{}), input(), &engine.RunOptions{Durability: d})
			if err != nil || res.Reason != lathe.ReasonAnswered {
				t.Fatalf("got %+v, %v", res, err)
			}
			if n := len(kept.log); (n > 0) != stored {
				t.Errorf("%d runs are stored", n)
			}
			if w.n.Load() == 0 {
				t.Error("no event was published")
			}
			sup := newSupervisor(t, e, 0)
			id, err := sup.Start(t.Context(), newLoop(t, model{}, &counter{}), input(), &engine.RunOptions{Durability: d, Sinks: []event.Sink{w}})
			if err != nil {
				t.Fatal(err)
			}
			if res, ok, err := sup.Wait(t.Context(), id); ok && (err != nil || res.Reason != lathe.ReasonAnswered) {
				t.Errorf("got %+v, %v", res, err)
			}
			sup.Drain(t.Context())
		})
	}
}
