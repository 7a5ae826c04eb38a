package audit

import (
	"cmp"
	"encoding/json"
)

// Fields are the fields that all kinds of lines have: of the run, the call and the decision.
type Fields struct {
	RunID, RequestID, SessionID string
	EventID                     int64
	Type                        string // type of the event; "Call" for a call that is about to be made
	ToolCallID, Tool            string
	Decision, Rule, By          string
	Status, Code                string
}

// fieldsJSON decodes the members of an event that [Line.Fields] returns.
type fieldsJSON struct {
	ID        int64  `json:"event_id"`
	RunID     string `json:"run_id"`
	RequestID string `json:"request_id"`
	SessionID string `json:"session_id"`
	Type      string `json:"type"`
	Data      struct {
		ToolCallID     string `json:"tool_call_id"`
		Tool           string `json:"tool"`
		ToolName       string `json:"tool_name"`
		Decision       string `json:"decision"`
		PolicyDecision string `json:"policy_decision"`
		Rule           string `json:"rule"`
		PolicyRule     string `json:"policy_rule"`
		By             string `json:"by"`
		Status         string `json:"status"`
		Reason         string `json:"reason"`
		ErrorType      string `json:"error_type"`
		ErrorCode      string `json:"error_code"`
		ReasonCode     string `json:"reason_code"`
		Error          string `json:"error"`
	} `json:"data"`
}

// Fields returns the common fields of the line; for a line about the log itself they are empty.
func (l *Line) Fields() (Fields, error) {
	if c := l.Call; c != nil {
		return Fields{RunID: c.RunID, RequestID: c.RequestID, SessionID: c.SessionID, Type: "Call", ToolCallID: c.ToolCallID, Tool: c.Tool,
			Decision: c.Decision, Rule: c.Rule}, nil
	}
	if c := l.Changed; c != nil {
		return Fields{Type: c.Change, Tool: c.Tool, By: c.By}, nil
	}
	if r := l.Removed; r != nil {
		return Fields{RunID: r.RunID, SessionID: r.SessionID, Type: "Removed", By: r.By}, nil
	}
	if l.Event == nil {
		return Fields{}, nil
	}
	var e fieldsJSON
	if err := json.Unmarshal(l.Event, &e); err != nil {
		return Fields{}, err
	}
	d := &e.Data
	f := Fields{RunID: e.RunID, RequestID: e.RequestID, SessionID: e.SessionID, EventID: e.ID, Type: e.Type, ToolCallID: d.ToolCallID,
		Tool: cmp.Or(d.Tool, d.ToolName), Decision: cmp.Or(d.Decision, d.PolicyDecision), Rule: cmp.Or(d.Rule, d.PolicyRule), By: d.By,
		Status: cmp.Or(d.Status, d.Reason), Code: cmp.Or(d.ErrorType, d.ErrorCode, d.ReasonCode, d.Error)}
	if e.Type == "RunFinished" {
		f.Code = cmp.Or(d.ErrorCode, d.Reason)
	}
	return f, nil
}
