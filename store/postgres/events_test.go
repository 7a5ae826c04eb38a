package postgres_test

import (
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

func started(runID string) event.Event {
	return event.Event{ID: 1, RunID: runID, RequestID: "req", SessionID: "s1", Time: time.Now(),
		Data: &event.RunStarted{Principal: "ann", Messages: []lathe.Message{lathe.User("hi")}, Input: []byte(`{"version":1}`)}}
}

func paused(runID string, id int64) event.Event {
	return event.Event{ID: id, RunID: runID, RequestID: "req", SessionID: "s1", Time: time.Now(), Data: &event.RunPaused{Reason: lathe.ReasonAwaitingApproval, Pending: []string{"c1"}}}
}

func resumed(runID string, id int64) event.Event {
	return event.Event{ID: id, RunID: runID, RequestID: "req", SessionID: "s1", Time: time.Now(), Data: &event.RunResumed{}}
}

func finished(runID string, id int64) event.Event {
	return event.Event{ID: id, RunID: runID, RequestID: "req", SessionID: "s1", Time: time.Now(), Data: &event.RunFinished{Reason: lathe.ReasonAnswered, Status: "completed"}}
}

func result(runID string, id int64, n int) event.Event {
	return event.Event{ID: id, RunID: runID, RequestID: "req", SessionID: "s1", Turn: 1, Time: time.Now(),
		Data: &event.ToolCallResult{ToolCallID: "c1", Tool: "clock", Status: "success", Result: strings.Repeat("r", n)}}
}
