package engine_test

import (
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/internal/runinput"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

// A run that was accepted for steps is not resumed, cancelled or ended by a supervisor on the same store, whatever its state; a run
// of a supervisor is not executed in steps. What is refused leaves no event.
func TestStepsAndSupervisorsAreApart(t *testing.T) {
	t.Parallel()
	kept := store.NewMemory(nil)
	s := &steps{kept: kept, loop: stepLoop(t, &counter{})}
	s.accept(t)
	e := newEngine(t, &engine.Options{Store: kept})
	supervisor := newSupervisor(t, e, 0)
	loopFor := func(*store.RunSummary) (*loop.Loop, error) { return s.loop(), nil }
	for out := (*engine.Step)(nil); out == nil || out.Next != nil; out = s.step(t, engine.StepOptions{}) {
		before := kinds(t, kept)
		if n, err := supervisor.Recover(t.Context(), kept, loopFor); n != 0 || err != nil {
			t.Errorf("Recover resumed %d runs, %v", n, err)
		}
		if claims, err := kept.Claim(t.Context(), "other", 1, 10); len(claims) != 0 || err != nil {
			t.Errorf("a node claims %+v, %v", claims, err)
		}
		if err := supervisor.Resume(t.Context(), s.loop(), "run_1", nil); lathe.CodeOf(err) != lathe.CodeInvalidRequest {
			t.Errorf("the supervisor resumes it: %v", err)
		}
		if res, err := e.Resume(t.Context(), s.loop(), "run_1", nil); res != nil || lathe.CodeOf(err) != lathe.CodeInvalidRequest {
			t.Errorf("the engine resumes it: %+v, %v", res, err)
		}
		if res, err := e.Cancel(t.Context(), s.loop(), "run_1"); res != nil || lathe.CodeOf(err) != lathe.CodeInvalidRequest {
			t.Errorf("the engine cancels it: %+v, %v", res, err)
		}
		if after := kinds(t, kept); after != before {
			t.Fatalf("its log was changed:\n%s", after)
		}
	}

	in := parkable("run_2")
	runinput.Of(in).Suspend = func(*lathe.ToolCall, *lathe.ToolSpec) bool { return true }
	if _, err := e.Run(t.Context(), s.loop(), in, nil); err != nil {
		t.Fatal(err)
	}
	before := lastID(t, e, "run_2")
	if out, err := e.Step(t.Context(), s.loop(), "run_2", nil); out != nil || lathe.CodeOf(err) != lathe.CodeInvalidRequest {
		t.Errorf("a step of a run that was not accepted: %+v, %v", out, err)
	}
	if after := lastID(t, e, "run_2"); after != before {
		t.Errorf("its log has %d events, and had %d", after, before)
	}
}

func lastID(t *testing.T, e *engine.Engine, id string) int64 {
	t.Helper()
	s, err := e.State(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return s.LastID
}

// The executor that the caller names is in the log and in the row of the run; without one it is `steps`.
func TestAcceptNamesTheExecutor(t *testing.T) {
	t.Parallel()
	kept := store.NewMemory(nil)
	e := newEngine(t, &engine.Options{Store: kept})
	for id, name := range map[string]string{"run_1": "", "run_2": "temporal"} {
		in := parkable(id)
		runinput.Of(in).Executor = name
		if _, err := e.Accept(t.Context(), newLoop(t, model{pieces: 1}), in); err != nil {
			t.Fatal(err)
		}
		if name == "" {
			name = "steps"
		}
		rows, _, err := kept.Runs(t.Context(), &store.RunFilter{RunID: id})
		if err != nil || len(rows) != 1 || rows[0].Executor != name {
			t.Errorf("the row of %s: %+v, %v", id, rows, err)
		}
		if s, err := e.State(t.Context(), id); err != nil || s.Executor != name {
			t.Errorf("the state of %s: %+v, %v", id, s, err)
		}
	}
}
