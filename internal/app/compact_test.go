package app

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/store"
)

// TestCompactorWaitsForWindows: content is removed when no retry and no result of a handed-over call can refer to it any
// more, and only of runs that were started with retention settings.
func TestCompactorWaitsForWindows(t *testing.T) {
	t.Parallel()
	s := store.NewMemory(nil)
	end := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	keep := &event.RunRetention{Mode: "metrics_only", MaxOutputBytes: 64}
	add := func(id string, keep *event.RunRetention, ended time.Time, last event.Data) {
		t.Helper()
		var events []event.Event
		for i, d := range []event.Data{&event.RunStarted{Retention: keep, Messages: []lathe.Message{lathe.User("x")}},
			&event.ToolCallResult{ToolCallID: "c", Status: "ok", Result: strings.Repeat("y", 1000)}, last} {
			if d != nil {
				events = append(events, event.Event{ID: int64(i + 1), RunID: id, RequestID: "r", Time: ended, Data: d})
			}
		}
		if _, err := s.Append(t.Context(), id, 0, events...); err != nil {
			t.Fatal(err)
		}
	}
	done := &event.RunFinished{Reason: lathe.ReasonAnswered, Status: "completed"}
	handed := &event.RunFinished{Reason: lathe.ReasonClientToolCalls, Status: "completed"}
	add("a_handed", keep, end, handed)
	add("b_done", keep, end.Add(time.Second), done)
	add("c_old", nil, end, done)
	add("d_going", keep, end, nil)
	for i := range compactPage { // the compactor reads several pages
		add(fmt.Sprintf("e_%03d", i), nil, end.Add(2*time.Second), done)
	}
	add("f_done", keep, end.Add(3*time.Second), done)
	c := &compactor{store: s, retryWindow: 10 * time.Minute, log: slog.New(slog.DiscardHandler)}
	retryWindow := c.retryWindow + compactGrace
	for _, tt := range []struct {
		after time.Duration
		want  string
	}{
		{retryWindow, ""},
		{retryWindow + 2*time.Second, "b_done"},
		{retryWindow + time.Minute, "b_done f_done"},
		{handOverWindow + time.Second, "a_handed b_done f_done"},
		{1000 * time.Hour, "a_handed b_done f_done"},
	} {
		before := strings.Fields(compactedRuns(t, s))
		total, err := c.once(t.Context(), end.Add(tt.after))
		if err != nil {
			t.Fatal(err)
		}
		got := compactedRuns(t, s)
		if got != tt.want || total.Runs != len(strings.Fields(got))-len(before) {
			t.Errorf("%v after the end %q are compacted, want %q; %d were counted", tt.after, got, tt.want, total.Runs)
		}
	}
}

func compactedRuns(t *testing.T, s store.RunIndex) string {
	t.Helper()
	rows, _, err := s.Runs(t.Context(), &store.RunFilter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for i := range rows {
		if rows[i].Retention == "applied" {
			ids = append(ids, rows[i].RunID)
		}
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
}
