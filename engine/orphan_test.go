package engine_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

// oneProcess is a store that is not shared.
type oneProcess struct{ store.RunIndex }

// halfway writes the log of a run with three open calls: one was begun, one waits for an approver, and one was not
// reached. The run began at the given time.
func halfway(t *testing.T, s store.Store, id string, at time.Time, input string) {
	t.Helper()
	var calls []lathe.Part
	for _, c := range []string{"c1", "c2", "c3"} {
		calls = append(calls, lathe.ToolCall{ID: c, Name: "count", Arguments: "{}"})
	}
	start := &event.RunStarted{Messages: []lathe.Message{lathe.User("hi")}, Principal: "ann"}
	if input != "" {
		start.Input = []byte(input)
	}
	for i, d := range []event.Data{
		start,
		&event.ModelCallStarted{Attempt: 1},
		&event.ModelCallFinished{Attempt: 1, Status: "success", FinishReason: lathe.FinishToolCalls, Usage: lathe.Usage{TotalTokens: 7},
			Message: &lathe.Message{Role: lathe.RoleAssistant, Parts: calls}},
		&event.ToolCallPlanned{ToolCallID: "c1", Tool: "count", Seq: 0},
		&event.ToolCallPlanned{ToolCallID: "c2", Tool: "count", Seq: 1},
		&event.ApprovalRequested{ToolCallID: "c2", Tool: "count", Seq: 1, ExpiresAt: at.Add(time.Hour)},
	} {
		if _, err := s.Append(t.Context(), id, int64(i), event.Event{ID: int64(i + 1), RunID: id, Turn: min(i, 1), Time: at, Data: d}); err != nil {
			t.Fatal(err)
		}
	}
}

// wantAbandoned checks the end of such a run: each call is answered once, and so is the run.
func wantAbandoned(t *testing.T, s store.Store, id string) {
	t.Helper()
	var answered []string
	ends := 0
	var events []event.Event
	for e, err := range s.Read(t.Context(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
		switch d := e.Data.(type) {
		case *event.ToolCallResult:
			answered = append(answered, d.ToolCallID+" "+string(d.ErrorType))
			if d.Message == "" || d.Result == "" {
				t.Errorf("no event of %s is published", d.ToolCallID)
			}
		case *event.RunFinished:
			if ends++; d.Reason != lathe.ReasonInterrupted || d.ToolCalls != 3 || d.Usage.TotalTokens != 7 || d.ErrorCode != "interrupted" {
				t.Errorf("%+v", d)
			}
		default: // it was there before
		}
	}
	if want := []string{"c1 interrupted", "c2 cancelled", "c3 cancelled"}; !slices.Equal(answered, want) || ends != 1 {
		t.Errorf("%s: %q, %d ends, want %q and one", id, answered, ends, want)
	}
	if state, err := loop.Fold(events); err != nil || len(state.Open) != 0 || state.Finished == nil || len(state.Abandon()) != 0 {
		t.Errorf("%s: %v", id, err)
	}
}

// A run that cannot be resumed is ended by the process that finds it.
func TestRecoverEndsWhatCannotGoOn(t *testing.T) {
	t.Parallel()
	kept := oneProcess{store.NewMemory(nil)}
	halfway(t, kept, "run_1", time.Now(), "")
	if _, err := kept.Append(t.Context(), "run_2", 0, event.Event{ID: 1, RunID: "run_2", Data: &event.RunStarted{}}); err != nil { // nothing but begun
		t.Fatal(err)
	}
	supervisor := newSupervisor(t, newEngine(t, &engine.Options{Store: kept}), 0)
	for range 2 { // the second time there is nothing to do
		n, err := supervisor.Recover(t.Context(), kept, func(*store.RunSummary) (*loop.Loop, error) { return nil, context.Canceled })
		if n != 0 || err != nil {
			t.Errorf("%d go on, %v", n, err)
		}
	}
	wantAbandoned(t, kept, "run_1")
	if got := status(t, kept, "run_2"); got != lathe.ReasonInterrupted.Status() {
		t.Errorf("run_2 is %s", got)
	}
}

// On a shared store a run that cannot be resumed is ended once no node owns it, and not before.
func TestServeEndsWhatCannotGoOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept, c := store.NewMemory(nil), &counter{}
		halfway(t, kept, "run_1", time.Now().Add(-time.Hour), "")
		halfway(t, kept, "run_2", time.Now().Add(time.Hour), "") // by a clock that is wrong: it waits until that has passed
		l := newLoop(t, model{pieces: 1, wait: 5 * time.Minute}, c)
		first := newHost(t, kept, l)
		slow := input()
		slow.Run.RunID = "run_3"
		if _, err := first.supervisor.Start(t.Context(), l, slow, nil); err != nil {
			t.Fatal(err)
		}
		second := newHost(t, kept, l)
		time.Sleep(2 * time.Minute)
		wantAbandoned(t, kept, "run_1")
		if got := status(t, kept, "run_3"); got != "running" {
			t.Errorf("a run under way is %s", got)
		}
		first.block() // it is stopped, and wakes too late
		time.Sleep(2 * time.Minute)
		if reason, n := ends(t, kept, "run_3"); n != 1 || reason != lathe.ReasonInterrupted {
			t.Errorf("%d ends, %s", n, reason)
		}
		first.free()
		time.Sleep(time.Hour)
		wantAbandoned(t, kept, "run_2")
		if reason, n := ends(t, kept, "run_3"); n != 1 || reason != lathe.ReasonInterrupted {
			t.Errorf("%d ends, %s", n, reason)
		}
		first.leave()
		second.leave()
	})
}
