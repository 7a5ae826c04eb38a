package postgres_test

import (
	"strings"
	"time"

	"github.com/lathe-run/lathe"
)

func started(runID string) lathe.Event {
	return lathe.Event{ID: 1, RunID: runID, RequestID: "req", SessionID: "s1", Time: time.Now(),
		Data: &lathe.RunStarted{Principal: "ann", Messages: []lathe.Message{lathe.User("hi")}, Input: []byte(`{"version":1}`)}}
}

func paused(runID string, id int64) lathe.Event {
	return lathe.Event{ID: id, RunID: runID, RequestID: "req", SessionID: "s1", Time: time.Now(), Data: &lathe.RunPaused{Reason: lathe.ReasonAwaitingApproval, Pending: []string{"c1"}}}
}

func resumed(runID string, id int64) lathe.Event {
	return lathe.Event{ID: id, RunID: runID, RequestID: "req", SessionID: "s1", Time: time.Now(), Data: &lathe.RunResumed{}}
}

func finished(runID string, id int64) lathe.Event {
	return lathe.Event{ID: id, RunID: runID, RequestID: "req", SessionID: "s1", Time: time.Now(), Data: &lathe.RunFinished{Reason: lathe.ReasonAnswered, Status: "completed"}}
}

func result(runID string, id int64, n int) lathe.Event {
	return lathe.Event{ID: id, RunID: runID, RequestID: "req", SessionID: "s1", Turn: 1, Time: time.Now(),
		Data: &lathe.ToolCallResult{ToolCallID: "c1", Tool: "clock", Status: "success", Result: strings.Repeat("r", n)}}
}
