package agent_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/agent"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/lathetest"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store/sqlite"
)

// Two calls of one turn wait. The first decision resumes the run, which executes that call and is parked again.
func TestEachDecisionResumes(t *testing.T) {
	t.Parallel()
	calls := 0
	model := lathetest.NewModel(lathetest.Step{Calls: []lathe.ToolCall{
		{ID: "a", Name: "refund", Arguments: `{"order":"A-1"}`}, {ID: "b", Name: "refund", Arguments: `{"order":"B-2"}`}}}, lathetest.Text("Done."))
	a := newAgent(t, model, &agent.Options{Tools: []lathe.Tool{refund(&calls)}})
	res, err := a.Run(t.Context(), lathe.User("Refund both."))
	if !errors.Is(err, agent.ErrWaiting) || len(res.Pending) != 2 {
		t.Fatalf("%+v, %v", res, err)
	}
	waiting, err := a.Waiting(t.Context())
	if err != nil || len(waiting) != 2 {
		t.Fatalf("%+v, %v", waiting, err)
	}
	if err := a.Approve(t.Context(), waiting[0].Digest, "ann"); err != nil {
		t.Fatal(err)
	}
	if res, err := a.Wait(t.Context(), res.RunID); !errors.Is(err, agent.ErrWaiting) || calls != 1 || len(res.Pending) != 1 {
		t.Fatalf("%+v, %v, %d calls", res, err, calls)
	}
	if err := a.Approve(t.Context(), waiting[1].Digest, "ann"); err != nil {
		t.Fatal(err)
	}
	if res, err := a.Wait(t.Context(), res.RunID); err != nil || res.Answer != "Done." || calls != 2 {
		t.Errorf("%+v, %v, %d calls", res, err, calls)
	}
}

// Prepare finds the principal of a run in its context, also in a run that another process has started.
func TestPrepareHasThePrincipal(t *testing.T) {
	t.Parallel()
	runs, err := sqlite.Open(filepath.Join(t.TempDir(), "runs.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer runs.Close()
	calls := 0
	var principals []string
	open := func(model lathe.Model) *agent.Agent {
		return newAgent(t, model, &agent.Options{Store: runs, Tools: []lathe.Tool{refund(&calls)}, Prepare: func(ctx context.Context, _ *lathe.Request) error {
			owner, _ := event.RunOwnerFrom(ctx)
			principals = append(principals, owner.Principal)
			return nil
		}})
	}
	first := open(lathetest.NewModel(lathetest.Call("refund", `{"order":"A-1"}`)))
	res, err := first.With(loop.Input{Run: lathe.RunInfo{Principal: "ann"}}).Run(t.Context(), lathe.User("Refund A-1."))
	if !errors.Is(err, agent.ErrWaiting) {
		t.Fatal(err)
	}
	first.Close(t.Context())

	second := open(lathetest.NewModel(lathetest.Text("Done.")))
	if _, err := second.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	waiting, err := second.Waiting(t.Context())
	if err != nil || len(waiting) != 1 {
		t.Fatalf("%+v, %v", waiting, err)
	}
	if err := second.Approve(t.Context(), waiting[0].Digest, "bob"); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Wait(t.Context(), res.RunID); err != nil || len(principals) != 2 || principals[1] != "ann" {
		t.Errorf("%v, %v", principals, err)
	}
}
