package storetest

import (
	"context"
	"errors"
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
	run(t, open, []testOf[store.RunIndex]{
		{"lists runs page by page", listsRuns},
		{"shows the state of a run", indexShowsState},
		{"lists model calls", listsModelCalls},
		{"refuses a strange cursor", refusesCursors},
		{"lists no text", listsNoText},
		{"lists the runs and calls of a time", listsTimes},
		{"searches page by page", searches},
		{"continues a search that was stopped", continuesSearches},
		{"finds runs by what they did", finds},
	})
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// TestModelCallsOfPrincipals tests the pages of the model calls of principals, some of which have few runs. s must hold the runs
// run_1 to run_N, where N is many + 10: each started as many nanoseconds after 1970 as its number says, and made one model call
// then. Those up to run_many are of the principal "many", the others of "few". Odd ones have failed, even ones have completed.
func TestModelCallsOfPrincipals(t *testing.T, s store.RunIndex, many int) {
	t.Helper()
	for _, c := range []struct {
		filter         store.RunFilter
		from, to, step int // the numbers of the runs, descending
	}{
		{store.RunFilter{Principal: "many"}, many, 1, 1},
		{store.RunFilter{Principal: "few"}, many + 10, many + 1, 1},
		{store.RunFilter{Principal: "many", Status: "failed", Since: time.Unix(0, 5), Until: time.Unix(0, 1000)}, 999, 5, 2},
		{store.RunFilter{Principal: "few", Status: "failed", Since: time.Unix(0, int64(many)+3), Until: time.Unix(0, int64(many)+8)}, many + 7, many + 3, 2},
		{store.RunFilter{Principal: "none"}, 0, 1, 1},
		{store.RunFilter{Principal: "many", RunID: "run_7"}, 7, 7, 1},
	} {
		c.filter.Limit = 700
		next := c.from
		for {
			rows, after, err := s.ModelCalls(t.Context(), &c.filter)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rows {
				if want := fmt.Sprint("run_", next); r.RunID != want {
					t.Fatalf("%+v: %s, want %s", c.filter, r.RunID, want)
				}
				next -= c.step
			}
			c.filter.After = after
			if after == "" {
				break
			}
		}
		if next >= c.to {
			t.Errorf("%+v: the rows end before run_%d", c.filter, next)
		}
	}
}

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
	cursor := ""
	for page := range 4 {
		rows, next, err := s.Runs(t.Context(), &store.RunFilter{Limit: 3, After: cursor})
		if err != nil || len(rows) > 3 || page == 3 && next != "" {
			t.Fatalf("%d rows, page %d, %v", len(rows), page, err)
		}
		for _, r := range rows {
			seen = append(seen, r.RunID)
		}
		if next == "" {
			break
		}
		cursor = next
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
		{&event.ToolCallPlanned{ToolCallID: "c1", Tool: "look", Seq: 0}, func(r *store.RunSummary) { r.ToolCalls, r.Tools = 1, []string{"look"} }},
		{&event.ToolCallPlanned{ToolCallID: "c2", Tool: "write", Seq: 1}, func(r *store.RunSummary) { r.ToolCalls, r.Tools = 2, []string{"look", "write"} }},
		{&event.ToolCallPlanned{ToolCallID: "c3", Tool: "look", Seq: 2}, func(r *store.RunSummary) { r.ToolCalls = 3 }},
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
		{&event.RunFinished{Reason: lathe.ReasonUpstreamError, Status: "failed", ErrorCode: "timeout"}, func(r *store.RunSummary) {
			r.Status, r.Reason, r.ErrorCode, r.Ended = "failed", lathe.ReasonUpstreamError, "timeout", r.Updated
		}},
	}
	var want store.RunSummary
	for i, step := range steps {
		mustAppend(t, s, "run_1", int64(i), at("run_1", int64(i)+1, i, step.data))
		want.LastID, want.Updated = int64(i)+1, epoch.Add(time.Duration(i)*time.Second)
		if step.want != nil {
			step.want(&want)
			want.LastID, want.Updated = int64(i)+1, epoch.Add(time.Duration(i)*time.Second)
		}
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
		mustAppend(t, s, id, 4, at(id, 5, 4, &event.ModelCallFinished{Attempt: 2, Provider: "p", Model: "m-1", Status: "success", Usage: usage, ProviderCost: &cost, LatencyMS: 8, FirstTokenMS: 6, ToolCalls: 2}))
		mustAppend(t, s, id, 5, at(id, 6, 5, &event.ToolCallExecuted{ToolCallID: "a", ToolName: "look", Success: true, LatencyMS: 3}))
		mustAppend(t, s, id, 6, at(id, 7, 6, &event.ToolCallExecuted{ToolCallID: "b", ToolName: "write", LatencyMS: 4}))
	}
	rows, next, err := s.ModelCalls(t.Context(), &store.RunFilter{Limit: 3})
	if err != nil || len(rows) != 3 || next == "" {
		t.Fatalf("%d rows, next %q, %v", len(rows), next, err)
	}
	want := store.CallSummary{RunID: "run_2", EventID: 5, RequestID: "req", SessionID: "s_2", Principal: "ann", Time: epoch.Add(4 * time.Second), Turn: 1, Attempt: 2, PromptHash: "h3", PromptHashV2: "h4",
		Provider: "p", Model: "m-1", Status: "success", Usage: usage, Cost: &cost, LatencyMS: 8, FirstTokenMS: 6, ToolCalls: 2, ToolLatencyMS: 7,
		Tools: []store.ToolTiming{{Tool: "look", Success: true, LatencyMS: 3}, {Tool: "write", LatencyMS: 4}}}
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

func listsTimes(t *testing.T, s store.RunIndex) {
	for i := range 6 {
		id := fmt.Sprintf("run_%d", i)
		mustAppend(t, s, id, 0, at(id, 1, i, &event.RunStarted{Model: "m", Principal: fmt.Sprintf("p%d", i%2)}),
			at(id, 2, 10+i, &event.ModelCallFinished{Attempt: 1, Status: "success"}))
	}
	second := func(n int) time.Time { return epoch.Add(time.Duration(n) * time.Second) }
	for _, tt := range []struct {
		f    store.RunFilter
		want string
	}{
		{store.RunFilter{Since: second(2)}, "5 4 3 2"},
		{store.RunFilter{Until: second(2)}, "1 0"},
		{store.RunFilter{Since: second(2), Until: second(4)}, "3 2"},
		{store.RunFilter{Since: second(2), Principal: "p1"}, "5 3"},
		{store.RunFilter{Since: second(6)}, ""},
	} {
		var runs, calls []string
		f := tt.f
		f.Limit = 1 // page by page: the bounds hold with a cursor, too
		for r, err := range f.All(t.Context(), s) {
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, strings.TrimPrefix(r.RunID, "run_"))
		}
		f = tt.f
		if !f.Since.IsZero() {
			f.Since = f.Since.Add(10 * time.Second)
		}
		if !f.Until.IsZero() {
			f.Until = f.Until.Add(10 * time.Second)
		}
		rows, _, err := s.ModelCalls(t.Context(), &f)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			calls = append(calls, strings.TrimPrefix(r.RunID, "run_"))
		}
		if got := strings.Join(runs, " "); got != tt.want {
			t.Errorf("%+v: runs %q, want %q", tt.f, got, tt.want)
		}
		if got := strings.Join(calls, " "); got != tt.want {
			t.Errorf("%+v: calls of %q, want %q", f, got, tt.want)
		}
	}
}

// appendSearched appends n runs, run_00 and so on. Three start at each time, and each has called one of the tools
// tool_0 to tool_4.
func appendSearched(t *testing.T, s store.RunIndex, n int) {
	t.Helper()
	for i := range n {
		id := fmt.Sprintf("run_%02d", i)
		mustAppend(t, s, id, 0, at(id, 1, i/3, &event.RunStarted{Model: "m"}),
			at(id, 2, i, &event.ToolCallPlanned{ToolCallID: "c", Tool: fmt.Sprintf("tool_%d", i%5)}))
	}
}

func searches(t *testing.T, s store.RunIndex) {
	const all = 23
	appendSearched(t, s, all)
	matched := 0
	uses := func(_ context.Context, r *store.RunSummary) (bool, error) {
		matched++
		return slices.Contains(r.Tools, "tool_3"), nil
	}
	var found []string
	short := 0 // number of pages that are not full and not the last
	f := store.RunFilter{Limit: 2}
	for page := 0; ; page++ {
		before := matched
		rows, next, err := store.Search(t.Context(), s, &f, 4, uses)
		if err != nil || len(rows) > 2 || matched-before > 4 || page > all {
			t.Fatalf("%d rows of %d, %v", len(rows), matched-before, err)
		}
		for _, r := range rows {
			found = append(found, r.RunID)
		}
		if next == "" {
			break
		}
		if len(rows) < 2 {
			short++
		}
		if page == 0 { // a run that begins meanwhile moves no page
			mustAppend(t, s, "run_99", 0, at("run_99", 1, 99, &event.RunStarted{Model: "m"}), at("run_99", 2, 99, &event.ToolCallPlanned{ToolCallID: "c", Tool: "tool_3"}))
		}
		f.After = next
	}
	if want := []string{"run_18", "run_13", "run_08", "run_03"}; !slices.Equal(found, want) || matched != all || short == 0 {
		t.Errorf("%v after %d rows and %d short pages, want %v after %d", found, matched, short, want, all)
	}
}

// continuesSearches stops a search at the third run: the next page begins with that run.
func continuesSearches(t *testing.T, s store.RunIndex) {
	appendSearched(t, s, 23)
	matched := 0
	stop := func(context.Context, *store.RunSummary) (bool, error) {
		if matched == 2 {
			return false, store.ErrSearchStopped
		}
		matched++
		return true, nil
	}
	rows, next, err := store.Search(t.Context(), s, nil, 100, stop)
	if err != nil || len(rows) != 2 || rows[1].RunID != "run_21" || next == "" {
		t.Fatalf("%+v, %q, %v", rows, next, err)
	}
	matched = 0
	rows, _, err = store.Search(t.Context(), s, &store.RunFilter{After: next}, 100, stop)
	if err != nil || len(rows) != 2 || rows[0].RunID != "run_20" {
		t.Fatalf("%+v, %v", rows, err)
	}
	broken := errors.New("broken")
	if _, _, err := store.Search(t.Context(), s, nil, 100, func(context.Context, *store.RunSummary) (bool, error) { return false, broken }); !errors.Is(err, broken) {
		t.Errorf("%v, want the error of match", err)
	}
	if _, _, err := store.Search(t.Context(), s, &store.RunFilter{After: "x"}, 100, stop); lathe.CodeOf(err) != lathe.CodeInvalidRequest {
		t.Errorf("a strange cursor: %v", err)
	}
}

func finds(t *testing.T, s store.RunIndex) {
	msg := lathe.Assistant("The ÄRGER is over")
	mustAppend(t, s, "run_1", 0, at("run_1", 1, 1, &event.RunStarted{Model: "m", Target: "main", Principal: "ann", Messages: []lathe.Message{lathe.User("Bring 17 apples")}}),
		at("run_1", 2, 2, &event.ToolCallPlanned{ToolCallID: "c", Tool: "look"}), at("run_1", 3, 3, &event.ToolCallResult{ToolCallID: "c", Result: "{\"sum\":4711}"}),
		at("run_1", 4, 4, &event.ModelCallFinished{Status: "success", Message: &msg}), at("run_1", 5, 5, &event.RunFinished{Reason: lathe.ReasonAnswered, Status: "completed", Answer: "Done"}))
	mustAppend(t, s, "run_2", 0, at("run_2", 1, 2, &event.RunStarted{Model: "m2", Principal: "bob", Messages: []lathe.Message{lathe.User("Bring 18 apples")}}),
		at("run_2", 2, 3, &event.RunFinished{Reason: lathe.ReasonUpstreamError, Status: "failed", ErrorCode: "timeout"}))
	for _, tt := range []struct {
		f    store.RunFilter
		q    store.RunQuery
		want string
	}{
		{want: "run_2 run_1"}, {q: store.RunQuery{Tool: "look"}, want: "run_1"}, {q: store.RunQuery{Tool: "loo"}}, {q: store.RunQuery{Model: "m2"}, want: "run_2"},
		{q: store.RunQuery{Model: "main"}, want: "run_1"}, {q: store.RunQuery{Reason: lathe.ReasonUpstreamError}, want: "run_2"}, {q: store.RunQuery{ErrorCode: "timeout"}, want: "run_2"},
		{q: store.RunQuery{Text: "APPLES"}, want: "run_2 run_1"}, {q: store.RunQuery{Text: "ärger"}, want: "run_1"}, {q: store.RunQuery{Text: "4711"}, want: "run_1"},
		{q: store.RunQuery{Text: "done"}, want: "run_1"}, {q: store.RunQuery{Text: "tool_call_id"}}, {f: store.RunFilter{Principal: "bob"}, q: store.RunQuery{Text: "17"}},
		{q: store.RunQuery{Text: "apples", Tool: "look"}, want: "run_1"},
	} {
		rows, next, truncated, err := store.Find(t.Context(), s, &tt.f, &tt.q)
		var got []string
		for _, r := range rows {
			got = append(got, r.RunID)
		}
		if strings.Join(got, " ") != tt.want || next != "" || truncated || err != nil {
			t.Errorf("%+v %+v: %v, next %q, truncated %v, %v, want %s", tt.f, tt.q, got, next, truncated, err, tt.want)
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
