package loop_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// A failer is what checkRun needs of a test; rapid has one of its own.
type failer interface {
	Helper()
	Errorf(format string, args ...any)
}

var _ failer = (*testing.T)(nil)

// checkRun holds a run to what is true of every run, however it ended.
func checkRun(t failer, res *event.Result, events []event.Event) {
	t.Helper()
	checkHistory(t, res)
	checkFrame(t, res, events)
	checkAttempts(t, events)
	checkCallEvents(t, res, events)
	if status := res.Reason.Status(); (status == "failed" || status == "cancelled") && res.Err == nil {
		t.Errorf("reason %q has no error", res.Reason)
	}
}

// checkHistory: each call is answered exactly once, in order, before anything else is said.
func checkHistory(t failer, res *event.Result) {
	t.Helper()
	pending := map[string]bool{}
	for _, c := range res.Pending {
		pending[c.ID] = true
	}
	var open []string // calls of the last assistant message that wait for their answer
	seen := map[string]bool{}
	for i := range res.History {
		m := &res.History[i]
		switch m.Role {
		case lathe.RoleAssistant:
			if len(open) > 0 {
				t.Errorf("history: message %d comes before the answers to %v: %s", i, open, shape(res.History))
			}
			open = nil
			within := map[string]bool{}
			for _, p := range m.Parts {
				if c, ok := p.(lathe.ToolCall); ok {
					if c.ID == "" || within[c.ID] {
						t.Errorf("history: message %d has a call with id %q", i, c.ID)
					}
					within[c.ID] = true
					if last := i == lastAssistant(res.History); !last || !pending[c.ID] {
						open = append(open, c.ID)
					}
					seen[c.ID] = true
				}
			}
			if len(m.Parts) == 0 {
				t.Errorf("history: message %d is empty", i)
			}
		case lathe.RoleTool:
			r, ok := m.Parts[0].(lathe.ToolResult)
			if !ok || len(m.Parts) != 1 {
				t.Errorf("history: message %d of role tool is not one result", i)
				continue
			}
			if len(open) == 0 || open[0] != r.CallID {
				t.Errorf("history: message %d answers %q, open are %v: %s", i, r.CallID, open, shape(res.History))
				continue
			}
			if r.IsError != (r.Code != "") || r.Content == "" {
				t.Errorf("history: message %d: is error %v, code %q, content %q", i, r.IsError, r.Code, r.Content)
			}
			open = open[1:]
		default:
			if len(open) > 0 {
				t.Errorf("history: message %d comes before the answers to %v: %s", i, open, shape(res.History))
			}
			open = nil
		}
	}
	if n := len(res.History); n > 0 && res.History[n-1].Synthetic {
		t.Errorf("history ends with a request that nobody answers: %s", shape(res.History))
	}
	if len(open) > 0 {
		t.Errorf("history: %v are not answered (reason %s): %s", open, res.Reason, shape(res.History))
	}
	for id := range pending {
		if !seen[id] {
			t.Errorf("pending call %q is not in the history", id)
		}
	}
	switch res.Reason {
	case lathe.ReasonClientToolCalls, lathe.ReasonAwaitingApproval, lathe.ReasonAwaitingToolResults:
		if len(res.Pending) == 0 {
			t.Errorf("reason %q with nothing pending", res.Reason)
		}
	default:
		if len(res.Pending) > 0 {
			t.Errorf("reason %q with %d calls pending", res.Reason, len(res.Pending))
		}
	}
}

func lastAssistant(history []lathe.Message) int {
	for i := len(history) - 1; i >= 0; i-- {
		if history[i].Role == lathe.RoleAssistant {
			return i
		}
	}
	return -1
}

// checkFrame: exactly one RunStarted, first, and one RunFinished, last, that agrees with the result.
func checkFrame(t failer, res *event.Result, events []event.Event) {
	t.Helper()
	for i, e := range events {
		switch d := e.Data.(type) {
		case *event.RunStarted:
			if i != 0 {
				t.Errorf("event %d is RunStarted", i)
			}
		case *event.RunFinished:
			if i != len(events)-1 {
				t.Errorf("event %d of %d is RunFinished", i, len(events))
			}
			if d.Reason != res.Reason || d.Status != d.Reason.Status() || d.Answer != res.Answer || d.Usage != res.Usage || d.ToolCalls != res.ToolCalls || d.Turns != len(res.Trace) {
				t.Errorf("RunFinished %+v does not agree with the result %+v", d, res)
			}
		}
		if i > 0 && e.Turn < events[i-1].Turn {
			t.Errorf("event %d: turn %d after %d", i, e.Turn, events[i-1].Turn)
		}
	}
	if _, ok := events[0].Data.(*event.RunStarted); !ok {
		t.Errorf("the first event is %s", events[0].Data.EventType())
	}
	paused := len(all[*event.RunPaused](events)) > 0
	if parked := res.Reason.Status() == "parked"; parked != paused {
		t.Errorf("reason %q, RunPaused emitted: %v", res.Reason, paused)
	}
}

// resultAt reports whether a call's result is the last event, commentary aside.
func resultAt(events []event.Event) bool {
	for _, e := range slices.Backward(events) {
		if _, ok := e.Data.(*event.CommentaryDelta); !ok {
			_, ok := e.Data.(*event.ToolCallResult)
			return ok
		}
	}
	return false
}

// checkAttempts: attempts pair, count from 1 within a turn, and deltas fall within one.
func checkAttempts(t failer, events []event.Event) {
	t.Helper()
	within, attempt, turn := false, 0, 0
	for i, e := range events {
		switch d := e.Data.(type) {
		case *event.ModelCallStarted:
			if e.Turn != turn {
				turn, attempt = e.Turn, 0
			}
			attempt++
			if within || d.Attempt != attempt {
				t.Errorf("event %d: attempt %d starts, within another: %v, want attempt %d", i, d.Attempt, within, attempt)
			}
			within = true
		case *event.ModelCallFinished:
			if !within || d.Attempt != attempt || (d.Status == "error") != (d.ErrorCode != "") {
				t.Errorf("event %d: %+v ends attempt %d, within: %v", i, d, attempt, within)
			}
			within = false
		default:
			if _, canned := e.Data.(*event.CommentaryDelta); canned && resultAt(events[:i]) {
				continue // of the noop executor, after the results of a turn
			}
			if event.IsDelta(e.Data) && !within {
				t.Errorf("event %d: %s outside of a model call", i, e.Data.EventType())
			}
		}
	}
	if within {
		t.Errorf("attempt %d has no end", attempt)
	}
}

// checkCallEvents: per call Proposed, Planned, (ApprovalRequested, ApprovalResolved), Executed if
// its code ran, Result, each once; seq dense from 0; calls of the history are those of the events.
func checkCallEvents(t failer, res *event.Result, events []event.Event) {
	t.Helper()
	order := map[int]string{}
	ids := map[int]string{}
	text := func(i, seq int, what, id string) {
		if known, ok := ids[seq]; ok && known != id {
			t.Errorf("event %d: call %d has id %q, before it had %q", i, seq, id, known)
		}
		ids[seq] = id
		order[seq] += what
	}
	next := 0
	for i, e := range events {
		switch d := e.Data.(type) {
		case *event.ToolCallProposed:
			text(i, d.Seq, "P", d.ToolCallID)
		case *event.ToolCallPlanned:
			if d.Seq != next {
				t.Errorf("event %d: seq %d, want %d", i, d.Seq, next)
			}
			next++
			text(i, d.Seq, "L", d.ToolCallID)
		case *event.ApprovalRequested:
			text(i, d.Seq, "q", d.ToolCallID)
		case *event.ApprovalResolved:
			text(i, d.Seq, "a", d.ToolCallID)
		case *event.ToolCallExecuted:
			text(i, d.Seq, "X", d.ToolCallID)
		case *event.ToolCallResult:
			if (d.Status == "error") != (d.ErrorType != "") {
				t.Errorf("event %d: %+v", i, d)
			}
			text(i, d.Seq, "R", d.ToolCallID)
		}
	}
	if next != res.ToolCalls {
		t.Errorf("%d calls planned, %d in the result", next, res.ToolCalls)
	}
	legal := []string{"PLR", "PLXR", "PLqaR", "PLqaXR", "LR"} // the last: a call that could not be read
	handed := []string{"PL", "PLq", "PLqa"}
	for seq, got := range order {
		pending := slices.ContainsFunc(res.Pending, func(c lathe.ToolCall) bool { return c.ID == ids[seq] })
		if !slices.Contains(legal, got) && !(pending && slices.Contains(handed, got)) {
			t.Errorf("call %d (%s): events %s, pending %v (%s)", seq, ids[seq], got, pending, strings.Join(legal, " "))
		}
	}
}
