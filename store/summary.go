package store

import (
	"slices"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// A Summary computes what a [RunIndex] lists for one run and its model calls, from the events of the run alone. The zero value is that of a
// run without events.
type Summary struct {
	Run   RunSummary
	Calls []CallSummary // the model calls in the order of their end

	started event.ModelCallStarted
	replay  bool                 // the run repeats recorded results, so its tool calls call nothing
	asked   map[string]time.Time // expiry of unanswered requests for approval, by call id
}

// Apply updates the summary with the next event of the run. The caller must apply all events of the run in order, beginning with the first.
func (s *Summary) Apply(e *event.Event) {
	r := &s.Run
	r.LastID, r.Updated, r.Turns = e.ID, e.Time, max(r.Turns, e.Turn)
	switch d := e.Data.(type) {
	case *event.RunStarted:
		r.RunID, r.RequestID, r.SessionID, r.Started = e.RunID, e.RequestID, e.SessionID, e.Time
		r.ParentRunID = d.ParentRunID
		r.Principal, r.Target, r.Provider, r.Model, r.Status = d.Principal, d.Target, d.Provider, d.Model, "running"
		r.Resumable, r.Executor = len(d.Input) > 0, d.Executor
		r.Retention = retentionState(d.Retention)
		s.replay = d.Replays != "" && !r.Resumable // a replay that calls tools is resumable
	case *event.ModelCallStarted:
		s.started = *d
	case *event.ModelCallFinished:
		s.called(e, d)
	case *event.ToolCallPlanned:
		r.ToolCalls = max(r.ToolCalls, d.Seq+1)
		if len(r.Tools) < maxRowTools && d.Tool != "" && !slices.Contains(r.Tools, d.Tool) {
			r.Tools = append(slices.Clip(r.Tools), d.Tool) // rows that were returned earlier must not change
		}
	case *event.ToolCallExecuted:
		s.executed(d)
	case *event.ApprovalRequested:
		if s.asked == nil {
			s.asked = map[string]time.Time{}
		}
		s.asked[d.ToolCallID] = d.ExpiresAt
	case *event.ApprovalResolved:
		delete(s.asked, d.ToolCallID)
	case *event.ToolCallResult:
		delete(s.asked, d.ToolCallID)
	case *event.RunPaused:
		r.Status, r.Reason, r.Pending, r.WakeAt = "parked", d.Reason, slices.Clone(d.Pending), s.earliest()
		if d.Reason == lathe.ReasonInterrupted {
			r.WakeAt = time.Time{} // no timer: the run waits for an operator
		}
	case *event.RunResumed:
		r.Status, r.Reason, r.Pending, r.WakeAt = "running", "", nil, time.Time{}
	case *event.RunFinished:
		r.Status, r.Reason, r.ErrorCode, r.Ended, r.WakeAt = d.Status, d.Reason, d.ErrorCode, e.Time, time.Time{}
	default: // not shown in a list
	}
}

func retentionState(r *event.RunRetention) string {
	switch {
	case r == nil:
		return ""
	case r.Applied:
		return "applied"
	default:
		return "due"
	}
}

// earliest returns the earliest expiry of the unanswered requests for approval.
func (s *Summary) earliest() (at time.Time) {
	for _, expires := range s.asked {
		if at.IsZero() || expires.Before(at) {
			at = expires
		}
	}
	return at
}

func (s *Summary) called(e *event.Event, d *event.ModelCallFinished) {
	s.Run.Usage.Add(d.Usage)
	cost := d.Dollars()
	if cost != nil {
		s.Run.Cost += *cost
	}
	s.Calls = append(s.Calls, CallSummary{RunID: s.Run.RunID, EventID: e.ID, RequestID: e.RequestID, SessionID: s.Run.SessionID, Principal: s.Run.Principal,
		Time: e.Time, Turn: e.Turn, Attempt: d.Attempt, PromptHash: s.started.PromptHash, PromptHashV2: s.started.PromptHashV2,
		Provider: d.Provider, Model: d.Model, Status: d.Status, ErrorCode: d.ErrorCode, Usage: d.Usage, Cost: clone(cost),
		LatencyMS: d.LatencyMS, FirstTokenMS: d.FirstTokenMS, ToolCalls: d.ToolCalls})
}

// executed adds a tool call to the row of the model call that asked for it.
func (s *Summary) executed(d *event.ToolCallExecuted) {
	if len(s.Calls) == 0 {
		return
	}
	c := &s.Calls[len(s.Calls)-1]
	c.ToolLatencyMS += d.LatencyMS
	if len(c.Tools) < maxRowTools && d.ToolName != "" && !s.replay {
		c.Tools = append(slices.Clip(c.Tools), ToolTiming{Tool: d.ToolName, Success: d.Success, LatencyMS: d.LatencyMS})
	}
}
