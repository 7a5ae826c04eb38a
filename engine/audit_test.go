package engine_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
)

// What was not audited is not stored, not shown and not done.
func TestAuditComesFirst(t *testing.T) {
	t.Parallel()
	full := errors.New("disk full")
	for _, failAt := range []string{"", "RunStarted", "ModelCallStarted", "ModelCallFinished", "ToolCallProposed", "ToolCallPlanned", "ToolCallExecuted", "ToolCallResult", "RunFinished"} {
		for _, kept := range []bool{true, false} {
			store := &memory{}
			var audited []event.Event
			c := &counter{}
			w := &watcher{}
			opts := &engine.Options{Sinks: []event.Sink{w}, Audit: func(_ context.Context, run *lathe.RunInfo, e event.Event) error {
				if e.Data.EventType() == failAt {
					return full
				}
				if run.Principal != "ann" || run.RunID != e.RunID || e.ID != int64(len(audited))+1 {
					t.Errorf("audited %d of %+v, want %d", e.ID, run, len(audited)+1)
				}
				store.mu.Lock()
				defer store.mu.Unlock()
				if n := len(store.log[e.RunID]); kept && n != len(audited) {
					t.Errorf("event %d: %d are stored", e.ID, n)
				}
				audited = append(audited, e)
				return nil
			}}
			if kept {
				opts.Store = store
			}
			in := input()
			in.Run.RunID, in.Run.Principal = "run_1", "ann"
			res, err := newEngine(t, opts).Run(t.Context(), newLoop(t, model{pieces: 2}, c), in, nil)
			if failed := failAt != ""; failed != (res.Reason == lathe.ReasonInternal) || failed != errors.Is(err, full) {
				t.Errorf("%s: %q, %v", failAt, res.Reason, err)
			}
			late := []string{"", "ToolCallExecuted", "ToolCallResult", "RunFinished"}
			if called := slices.Contains(late, failAt); c.count() > 0 != called {
				t.Errorf("%s: the tool was called %d times", failAt, c.count())
			}
			published := slices.DeleteFunc(slices.Clone(w.events), func(e event.Event) bool { return e.ID == 0 })
			if len(published) != len(audited) || kept && len(store.log["run_1"]) != len(audited) {
				t.Errorf("%s: %d audited, %d stored, %d published", failAt, len(audited), len(store.log["run_1"]), len(published))
			}
		}
	}
}

func TestAuditThatPanicsEndsTheRun(t *testing.T) {
	t.Parallel()
	c := &counter{}
	e := newEngine(t, &engine.Options{Audit: func(_ context.Context, _ *lathe.RunInfo, e event.Event) error {
		if e.Data.EventType() == "ToolCallPlanned" {
			panic("secret")
		}
		return nil
	}})
	res, err := e.Run(t.Context(), newLoop(t, model{}, c), input(), nil)
	if res.Reason != lathe.ReasonInternal || err == nil || c.count() != 0 {
		t.Errorf("%q, %v, %d calls", res.Reason, err, c.count())
	}
}
