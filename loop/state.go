package loop

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// A State is the state of a run. It is computed only from the events of the run: the same events give the same state in every process. The
// zero value is a run without events. [Input.Resume] continues a run from its State.
//
// Three invariants hold after each event. If Open is empty, Messages can be sent to a model: each call in it is followed by its result, in
// call order, whatever the order of the events. A call is in Open from the message of the model until its result. A call with Begun may
// have reached its tool; it is not called again unless its tool only reads. For example, these events
//
//	ModelCallFinished(call a, call b), ToolCallPlanned(a), ToolCallPlanned(b), ToolCallResult(b)
//
// give Messages that end with the message of the model and the result of b, and Open = [a], with Begun. If the process stops there, the
// resumed run gives call a the result `interrupted` if its tool writes, and inserts this result before that of b.
type State struct {
	Run    lathe.RunInfo // the RunInfo that the run was started with
	LastID int64         // ID of the last event
	Target string        // value of Input.Target
	// Retention contains the retention settings that the run was started with; nil: none.
	Retention *event.RunRetention

	// Messages is the history: the messages that the run started from, those of the model, the results in call order, and the loop's own
	// requests for an answer.
	Messages []lathe.Message
	Start    int // the number of Messages that the run started from
	// Continues is the id of the run that this run continues; "": none. TakenOver is the number of messages that it took over from that
	// run: the last ones of the first Start messages.
	Continues string
	TakenOver int
	Replays   string // the id of the run whose conversation this run repeats; "": none
	Executor  string // the name of the engine that executes the run step by step; "": none

	Turn    int // number of the last model call, from 1; 0: none
	Attempt int // number of the current attempt of an unfinished model call; 0: none
	Usage   lathe.Usage
	Cost    float64           // in US dollars, as in [event.Result]
	Trace   []event.TurnTrace // one for each turn
	Planned int               // number of planned calls
	// Loaded are the names of the tools whose definitions the run loaded, in load order.
	Loaded []string

	// Open are the calls of the last turn that have no result yet, in call order.
	Open []OpenCall
	// Paused is the reason why the run is parked; "": it is not.
	Paused lathe.Reason
	// Finished is the data of the RunFinished event; nil: the run has not ended.
	Finished *event.RunFinished
	// Reasoning is the reasoning of the last message of the model, if that message contained nothing else. Messages does not contain such a
	// message.
	Reasoning string
	// ErrorMessage is the error text of the server if the last attempt of a model call failed; "" if it succeeded.
	ErrorMessage string

	reason   lathe.FinishReason // finish reason of the last model call
	answered bool               // the last model call succeeded and its message is in Messages
	tail     int                // the index in Messages at which the results of the last turn begin
	order    []string           // the ids of the calls of the last turn
	input    json.RawMessage
}

// An OpenCall is a tool call without a result.
type OpenCall struct {
	lathe.ToolCall
	Seq     int    // number of the call within the run, from 0, if Planned
	Planned bool   // the log has a ToolCallPlanned for it
	Tool    string // the tool name in the events of the call, if Planned
	// Asked reports that an approval was requested and is not resolved.
	Asked     bool
	Digest    string    // the digest of the requested approval
	ExpiresAt time.Time // the time at which the requested approval expires
	Rule      string    // the policy rule that requires the approval
	// Shown are the arguments in the request for approval; nil if the log does not contain them.
	Shown json.RawMessage
	// Begun reports that the tool may have been called: the call needs no further approval.
	Begun bool
	// Refused is the code of the result if the approval was denied or has expired; "" if it was given or not requested.
	Refused lathe.Code

	ran bool // the tool has returned, but the result is not stored
}

// Fold returns the state after the events of a log. The first must be the first event of the run, and events of the types for which
// [event.IsDelta] is true must not be among them. The error has the code internal if an event cannot follow those before it.
func Fold(events []event.Event) (*State, error) {
	s := &State{}
	for i := range events {
		if err := s.Apply(&events[i]); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Apply adds the next stored event of the run to the state. If e cannot follow the events before it, Apply returns an error of code
// internal and does not change s. The state shares memory with e.
func (s *State) Apply(e *event.Event) error {
	if err := s.check(e); err != nil {
		return lathe.CodeInternal.Wrap("loop: fold", err)
	}
	s.LastID, s.Turn = e.ID, e.Turn
	switch d := e.Data.(type) {
	case *event.RunStarted:
		s.start(e, d)
	case *event.ModelCallStarted:
		s.modelAsked(d)
	case *event.ModelCallFinished:
		s.modelCalled(d)
	case *event.ToolCallPlanned:
		s.Planned = max(s.Planned, d.Seq+1)
		s.change(d.ToolCallID, func(c *OpenCall) { c.Seq, c.Planned, c.Begun, c.Tool = d.Seq, true, true, d.Tool })
	case *event.ApprovalRequested:
		s.change(d.ToolCallID, func(c *OpenCall) {
			c.Asked, c.Begun, c.Digest, c.ExpiresAt, c.Rule, c.Shown = true, false, d.ArgsDigest, d.ExpiresAt, d.Rule, d.Arguments
		})
	case *event.ApprovalResolved:
		s.change(d.ToolCallID, func(c *OpenCall) { c.resolve(d.Decision) })
	case *event.ToolCallResult:
		s.answer(d)
	case *event.RunPaused:
		s.Paused = d.Reason
		for i := range s.Open {
			if slices.Contains(d.Pending, s.Open[i].ID) {
				s.Open[i].Begun = false // it is pending, so its tool was not called
			}
		}
	case *event.RunResumed:
		s.Paused = ""
		for i := range s.Open { // a planned call that needs no approval is executed without a further event
			o := &s.Open[i]
			o.Begun = o.Begun || o.Planned && !o.Asked && o.Refused == ""
		}
	case *event.RunFinished:
		s.finish(d)
	case *event.ToolCallExecuted:
		s.change(d.ToolCallID, func(o *OpenCall) { o.ran = !d.Cached })
		if d.ChildUsage != nil {
			s.Usage.Add(*d.ChildUsage)
			s.Cost += d.ChildCost
		}
	case *event.ToolsLoaded:
		s.Loaded = append(s.Loaded, d.Tools...)
	case *event.ToolCallProposed, *event.ToolCallParseError: // later events contain the same data
	case *event.TextDelta, *event.ReasoningDelta, *event.CommentaryDelta, *event.ToolCallDelta, *event.ToolCallProgress: // check returns an error for them
	}
	return nil
}

func (s *State) check(e *event.Event) error {
	start, first := e.Data.(*event.RunStarted)
	switch {
	case e.Data == nil:
		return fmt.Errorf("event %d says nothing", e.ID)
	case event.IsDelta(e.Data):
		return fmt.Errorf("a %s is not kept in a log", e.Data.EventType())
	case e.ID != s.LastID+1:
		return fmt.Errorf("event %d follows event %d", e.ID, s.LastID)
	case s.Finished != nil:
		return fmt.Errorf("event %d follows the end of the run", e.ID)
	case first != (s.LastID == 0):
		return fmt.Errorf("event %d is a %s", e.ID, e.Data.EventType())
	case e.Turn < s.Turn:
		return fmt.Errorf("event %d is of turn %d, after turn %d", e.ID, e.Turn, s.Turn)
	case s.LastID > 0 && e.RunID != s.Run.RunID:
		return fmt.Errorf("event %d is of another run", e.ID)
	case first:
		_, err := readStart(start.Input)
		return err
	}
	return nil
}

func (s *State) start(e *event.Event, d *event.RunStarted) {
	in, _ := readStart(d.Input) // check has parsed it already
	s.Run = lathe.RunInfo{
		RunID: e.RunID, RequestID: e.RequestID, SessionID: e.SessionID, Principal: d.Principal, Profile: d.Profile, Depth: in.Depth, Labels: d.Labels,
		ParentRunID: d.ParentRunID, ParentCallID: d.ParentToolCallID,
	}
	s.Target, s.Retention, s.input = d.Target, d.Retention, d.Input
	s.Messages, s.Start = slices.Clone(d.Messages), len(d.Messages)
	s.Continues, s.TakenOver = d.Continues, min(max(d.TakenOver, 0), len(d.Messages))
	s.Replays, s.Executor = d.Replays, d.Executor
}

// resolve records the decision about a requested approval.
func (c *OpenCall) resolve(decision string) {
	c.Asked, c.Digest = false, ""
	switch decision {
	case "approved", "edited":
		c.Begun = true
	case "answered": // an answer in place of the tool, whose result follows; if the result is missing, the approval is requested again
	case "expired":
		c.Refused = lathe.CodeApprovalExpired
	default:
		c.Refused = lathe.CodeApprovalDenied
	}
}

func (s *State) modelAsked(d *event.ModelCallStarted) {
	if d.Asked != "" {
		s.Messages = append(s.Messages, synthetic(d.Asked))
	}
	s.Attempt, s.answered = d.Attempt, false
	t := s.trace(d.Model)
	t.Messages, t.Tools, t.Agent = d.Messages, d.Tools, d.Agent
}

func (s *State) finish(d *event.RunFinished) {
	s.Finished = d
	if n := len(s.Messages); n > s.Start && s.Messages[n-1].Synthetic {
		s.Messages = s.Messages[:n-1] // the loop's own request was not answered
	}
}

func (s *State) modelCalled(d *event.ModelCallFinished) {
	s.Usage.Add(d.Usage)
	if cost := d.Dollars(); cost != nil {
		s.Cost += *cost
	}
	s.ErrorMessage = d.ErrorMessage
	if d.Status != "success" {
		return
	}
	s.Attempt, s.reason = 0, d.FinishReason
	t := s.trace(d.Model)
	t.Model, t.Finish, t.Dropped, t.IgnoredToolCalls = d.Model, d.FinishReason, d.Dropped, t.IgnoredToolCalls+d.IgnoredToolCalls
	t.Usage.Add(d.Usage)
	s.answered = d.Message != nil && inHistory(d.Message)
	s.Reasoning = ""
	if d.Message != nil && !s.answered {
		s.Reasoning = reasoningOf(d.Message)
	}
	if !s.answered {
		return
	}
	s.Messages = append(s.Messages, *d.Message)
	s.tail, s.order, s.Open = len(s.Messages), nil, nil
	for _, p := range d.Message.Parts {
		if c, ok := p.(lathe.ToolCall); ok {
			s.order = append(s.order, c.ID)
			s.Open = append(s.Open, OpenCall{ToolCall: c})
		}
	}
}

// inHistory reports whether a message of the model is added to the history: it has calls, or something to show.
func inHistory(m *lathe.Message) bool {
	_, blank := answerOf(m)
	return !blank || len(m.Calls()) > 0
}

// trace returns the trace of the current turn, and appends one if none exists.
func (s *State) trace(model string) *event.TurnTrace {
	if n := len(s.Trace); n == 0 || s.Trace[n-1].Turn != s.Turn {
		s.Trace = append(s.Trace, event.TurnTrace{Turn: s.Turn, Model: model})
	}
	return &s.Trace[len(s.Trace)-1]
}

func (s *State) change(id string, f func(*OpenCall)) {
	if i := s.open(id); i >= 0 {
		f(&s.Open[i])
	}
}

func (s *State) open(id string) int {
	return slices.IndexFunc(s.Open, func(c OpenCall) bool { return c.ID == id })
}

// answer removes the call from Open and adds its result to the history, in call order.
func (s *State) answer(d *event.ToolCallResult) {
	i := s.open(d.ToolCallID)
	if i < 0 {
		return
	}
	open := s.Open[i]
	s.Open = slices.Delete(s.Open, i, i+1)
	s.Messages = append(s.Messages, lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{
		CallID: d.ToolCallID, Name: open.Name, Content: d.Result, Blobs: d.Blobs, IsError: d.Status != "ok", Code: d.ErrorType}}})
	sortAnswers(s.order, s.Messages[s.tail:])
	t := s.trace("")
	t.Calls = append(t.Calls, event.CallTrace{ID: d.ToolCallID, Tool: d.Tool, Seq: d.Seq, ArgsBytes: len(open.Arguments),
		OK: d.Status == "ok", Code: d.ErrorType, Executed: open.ran, Repaired: d.Repaired, LatencyMS: d.LatencyMS})
}

// sortAnswers sorts tool messages by the order of their calls.
func sortAnswers(order []string, answers []lathe.Message) {
	place := func(m lathe.Message) int { return slices.Index(order, m.Parts[0].(lathe.ToolResult).CallID) }
	slices.SortStableFunc(answers, func(a, b lathe.Message) int { return place(a) - place(b) })
}
