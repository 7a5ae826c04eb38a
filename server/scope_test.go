package server_test

import (
	"context"
	"testing"

	"github.com/lathe-run/lathe/store"
)

// approve approves the call that a run waits for, and further calls within the scope.
func (h *runFixture) approve(r *run, scope string) {
	h.t.Helper()
	if status, body := h.answer(r, "approve", `"scope":"`+scope+`"`); status != 200 && status != 202 {
		h.t.Fatalf("%d %s", status, body)
	}
}

// After an approver has allowed a tool for a run or a session, a process that resumes the run or executes another run of
// the session does not ask again; runs of other principals do.
func TestScopesHoldInEveryProcess(t *testing.T) {
	t.Parallel()
	kept := store.NewMemory(nil)
	first, second, third := &runFixture{}, &runFixture{}, &runFixture{}
	first.join(t, kept)
	first.model.step = make(chan struct{})
	r := first.begin("write {\"n\":1}\n\nwrite {\"n\":2}", `"session":"s1"`)
	first.model.step <- struct{}{}
	first.approve(first.rest(r.ID), "run")
	first.watchUntil(r.ID, 0, func(e *told) bool { return e.Type == "ToolCallResult" }) // its next turn waits for its step
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if left := first.crew.Drain(ctx); left != 1 {
		t.Fatalf("%d runs were left", left)
	}

	second.join(t, kept)
	second.watchUntil(r.ID, 0, func(e *told) bool { return e.Type == "RunFinished" || e.Type == "RunPaused" && e.Num > 9 })
	if done := second.show(r.ID); done.Status != "completed" || first.log.wrote.Load() != 1 || second.log.wrote.Load() != 1 {
		t.Errorf("%+v, written %d and %d times", done, first.log.wrote.Load(), second.log.wrote.Load())
	}
	other := second.rest(second.begin("write {\"n\":3}", `"session":"s1"`).ID)
	if other.Status != "parked" {
		t.Errorf("another run was not asked about: %+v", other)
	}
	second.approve(other, "session")
	second.watchUntil(other.ID, 0, func(e *told) bool { return e.Type == "RunFinished" })

	third.join(t, kept)
	if same := third.rest(third.begin("write {\"n\":4}", `"session":"s1"`).ID); same.Status != "completed" {
		t.Errorf("a run of the session was asked about: %+v", same)
	}
	if another := third.rest(third.begin("write {\"n\":5}", `"session":"s2"`).ID); another.Status != "parked" {
		t.Errorf("a run of another session was not asked about: %+v", another)
	}
}
