package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/store"
)

// TestIndex runs the tests for [store.RunIndex]. open is as of [Test].
func TestIndex(t *testing.T, open func() store.RunIndex) {
	t.Helper()
	for _, tt := range []struct {
		name string
		fn   func(*testing.T, store.RunIndex)
	}{
		{"lists runs page by page", listsRuns},
		{"shows the state of a run", indexShowsState},
		{"lists model calls", listsModelCalls},
		{"refuses a strange cursor", refusesCursors},
		{"lists no text", listsNoText},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.fn(t, open())
		})
	}
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(runID string, id int64, seconds int, d event.Data) event.Event {
	return event.Event{ID: id, RunID: runID, RequestID: "req", SessionID: "s_" + runID[len(runID)-1:], Time: epoch.Add(time.Duration(seconds) * time.Second), Turn: 1, Data: d}
}

func listsRuns(t *testing.T, s store.RunIndex) {
	for i := range 7 {
		id := fmt.Sprintf("run_%d", i)
		mustAppend(t, s, id, 0, at(id, 1, i/2, &event.RunStarted{Model: "m", Principal: fmt.Sprintf("p%d", i%2)})) // some start at one time
	}
	mustAppend(t, s, "run_6", 1, at("run_6", 2, 9, &event.RunFinished{Reason: lathe.ReasonAnswered, Status: "completed"}))
	var seen []string
	for cursor, pages := "", 0; ; pages++ {
		rows, next, err := s.Runs(t.Context(), &store.RunFilter{Limit: 3, After: cursor})
		if err != nil || len(rows) > 3 || pages > 3 {
			t.Fatalf("%d rows, page %d, %v", len(rows), pages, err)
		}
		for _, r := range rows {
			seen = append(seen, r.RunID)
		}
		if cursor = next; next == "" {
			break
		}
	}
	if want := []string{"run_6", "run_5", "run_4", "run_3", "run_2", "run_1", "run_0"}; !slices.Equal(seen, want) {
		t.Errorf("got %v, want %v", seen, want)
	}
	for name, tt := range map[string]struct {
		f    *store.RunFilter
		want int
	}{
		"everything": {nil, 7}, "a run": {&store.RunFilter{RunID: "run_3"}, 1}, "a session": {&store.RunFilter{SessionID: "s_2"}, 1},
		"a principal": {&store.RunFilter{Principal: "p0"}, 4}, "running": {&store.RunFilter{Status: "running"}, 6},
		"completed": {&store.RunFilter{Status: "completed"}, 1}, "both": {&store.RunFilter{Principal: "p1", Status: "completed"}, 0},
	} {
		if rows, _, err := s.Runs(t.Context(), tt.f); err != nil || len(rows) != tt.want {
			t.Errorf("%s: %d rows, %v, want %d", name, len(rows), err, tt.want)
		}
	}
}

func indexShowsState(t *testing.T, s store.RunIndex) {
	usage := lathe.Usage{InputTokens: 10, OutputTokens: 5, TotalTokens: 15}
	cost := 0.25
	steps := []struct {
		data event.Data
		want func(*store.RunSummary)
	}{
		{&event.RunStarted{Model: "m", Provider: "p", Principal: "ann", Target: "main", Input: []byte(`{"version":1}`)}, func(r *store.RunSummary) {
			*r = store.RunSummary{RunID: "run_1", RequestID: "req", SessionID: "s_1", Principal: "ann", Target: "main", Provider: "p", Model: "m", Status: "running",
				Started: epoch, Resumable: true, Turns: 1}
		}},
		{&event.ModelCallStarted{Attempt: 1, PromptHash: "h1", PromptHashV2: "h2"}, nil},
		{&event.ModelCallFinished{Attempt: 1, Status: "success", Usage: usage, ProviderCost: &cost, ToolCalls: 1}, func(r *store.RunSummary) { r.Usage, r.Cost = usage, 0.25 }},
		{&event.ToolCallPlanned{ToolCallID: "c1", Seq: 0}, func(r *store.RunSummary) { r.ToolCalls = 1 }},
		{&event.ApprovalRequested{ToolCallID: "c1", ExpiresAt: epoch.Add(2 * time.Hour)}, nil},
		{&event.ApprovalRequested{ToolCallID: "c2", ExpiresAt: epoch.Add(time.Hour)}, nil},
		{&event.ApprovalRequested{ToolCallID: "c3", ExpiresAt: epoch.Add(time.Minute)}, nil},
		{&event.ApprovalResolved{ToolCallID: "c3", Decision: "denied"}, nil},
		{&event.RunPaused{Reason: lathe.ReasonAwaitingApproval, Pending: []string{"c1", "c2"}}, func(r *store.RunSummary) {
			r.Status, r.Reason, r.Pending, r.WakeAt = "parked", lathe.ReasonAwaitingApproval, []string{"c1", "c2"}, epoch.Add(time.Hour)
		}},
		{&event.RunResumed{Reason: lathe.ReasonAwaitingApproval}, func(r *store.RunSummary) {
			r.Status, r.Reason, r.Pending, r.WakeAt = "running", "", nil, time.Time{}
		}},
		{&event.ToolCallResult{ToolCallID: "c2"}, nil},
		{&event.RunPaused{Reason: lathe.ReasonAwaitingApproval, Pending: []string{"c1"}}, func(r *store.RunSummary) {
			r.Status, r.Reason, r.Pending, r.WakeAt = "parked", lathe.ReasonAwaitingApproval, []string{"c1"}, epoch.Add(2*time.Hour)
		}},
		{&event.RunResumed{Reason: lathe.ReasonAwaitingApproval}, func(r *store.RunSummary) {
			r.Status, r.Reason, r.Pending, r.WakeAt = "running", "", nil, time.Time{}
		}},
		{&event.RunFinished{Reason: lathe.ReasonMaxIterations, Status: "limited"}, func(r *store.RunSummary) { r.Status, r.Reason = "limited", lathe.ReasonMaxIterations }},
	}
	var want store.RunSummary
	for i, step := range steps {
		mustAppend(t, s, "run_1", int64(i), at("run_1", int64(i)+1, i, step.data))
		if step.want != nil {
			step.want(&want)
		}
		want.LastID, want.Updated = int64(i)+1, epoch.Add(time.Duration(i)*time.Second)
		rows, _, err := s.Runs(t.Context(), nil)
		if err != nil || len(rows) != 1 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		if diff := cmp.Diff(want, rows[0]); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", step.data.EventType(), diff)
		}
	}
}

func listsModelCalls(t *testing.T, s store.RunIndex) {
	usage := lathe.Usage{InputTokens: 10, OutputTokens: 5, TotalTokens: 15}
	cost := 0.25
	for _, id := range []string{"run_1", "run_2"} {
		mustAppend(t, s, id, 0,
			at(id, 1, 0, &event.RunStarted{Model: "m", Principal: "ann"}),
			at(id, 2, 1, &event.ModelCallStarted{Attempt: 1, PromptHash: "h1", PromptHashV2: "h2"}),
			at(id, 3, 2, &event.ModelCallFinished{Attempt: 1, Provider: "p", Model: "m-1", Status: "error", ErrorCode: "timeout", LatencyMS: 9}),
			at(id, 4, 3, &event.ModelCallStarted{Attempt: 2, PromptHash: "h3", PromptHashV2: "h4"}))
		mustAppend(t, s, id, 4, at(id, 5, 4, &event.ModelCallFinished{Attempt: 2, Provider: "p", Model: "m-1", Status: "success", Usage: usage, ProviderCost: &cost, LatencyMS: 8, ToolCalls: 2}))
		mustAppend(t, s, id, 5, at(id, 6, 5, &event.ToolCallExecuted{ToolCallID: "a", LatencyMS: 3}))
		mustAppend(t, s, id, 6, at(id, 7, 6, &event.ToolCallExecuted{ToolCallID: "b", LatencyMS: 4}))
	}
	rows, next, err := s.ModelCalls(t.Context(), &store.RunFilter{Limit: 3})
	if err != nil || len(rows) != 3 || next == "" {
		t.Fatalf("%d rows, next %q, %v", len(rows), next, err)
	}
	want := store.CallSummary{RunID: "run_2", EventID: 5, SessionID: "s_2", Principal: "ann", Time: epoch.Add(4 * time.Second), Turn: 1, Attempt: 2, PromptHash: "h3", PromptHashV2: "h4",
		Provider: "p", Model: "m-1", Status: "success", Usage: usage, Cost: &cost, LatencyMS: 8, ToolCalls: 2, ToolLatencyMS: 7}
	if diff := cmp.Diff(want, rows[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	rest, next, err := s.ModelCalls(t.Context(), &store.RunFilter{Limit: 3, After: next})
	if err != nil || len(rest) != 1 || next != "" || rest[0].RunID != "run_1" || rest[0].ErrorCode != "timeout" {
		t.Errorf("%+v, next %q, %v", rest, next, err)
	}
	if rows, _, err = s.ModelCalls(t.Context(), &store.RunFilter{RunID: "run_1"}); err != nil || len(rows) != 2 {
		t.Errorf("of one run: %d rows, %v", len(rows), err)
	}
}

func refusesCursors(t *testing.T, s store.RunIndex) {
	for _, cursor := range []string{"x", "1.2", "..", "!.!.run", "1..run"} {
		if _, _, err := s.Runs(t.Context(), &store.RunFilter{After: cursor}); lathe.CodeOf(err) != lathe.CodeInvalidRequest {
			t.Errorf("%q: %v", cursor, err)
		}
	}
}

func listsNoText(t *testing.T, s store.RunIndex) {
	const secret = "canary-51c0"
	msg := lathe.Assistant(secret)
	mustAppend(t, s, "run_1", 0,
		at("run_1", 1, 0, &event.RunStarted{Messages: []lathe.Message{lathe.User(secret)}}),
		at("run_1", 2, 1, &event.ModelCallFinished{Status: "success", Message: &msg}),
		at("run_1", 3, 2, &event.ToolCallResult{ToolCallID: "c", Result: secret}),
		at("run_1", 4, 3, &event.RunFinished{Reason: lathe.ReasonAnswered, Status: "completed", Answer: secret}))
	runs, _, err := s.Runs(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	calls, _, err := s.ModelCalls(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if all := fmt.Sprintf("%+v %+v", runs, calls); len(runs) != 1 || len(calls) != 1 || strings.Contains(all, secret) {
		t.Errorf("the lists hold text, or not the run: %s", all)
	}
}
