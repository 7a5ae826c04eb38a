package runlog

import (
	"context"
	"net/http"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/gateway/pairs"
	"github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

// A View is the state of a run that its log contains. [Read] sets it: noteCalls and noteWait read each event.
type View struct {
	Summary store.Summary
	State   loop.State
	Client  map[string]bool // proposed calls by id; true: the client executes the call
	Turns   map[string]int  // turn of each proposed call, by id
	// Requests are the last approval request of each call, by id. Decisions are the decisions made, the oldest first.
	Requests  map[string]ApprovalRequest
	Decisions []Decision
	Resolved  map[string]int64 // id of the event of each decision, by call
	// lastResult is the id of the last event with a result from the client.
	lastResult int64
	ran        map[string]bool // calls whose tools were executed, by id
	waitPoints []waitPoint     // points at which the run waited, the oldest first
}

// Read reads the log of a run. may is called with the first event and reports whether the caller may see the run; if it returns false, Read
// returns nil, nil.
func Read(ctx context.Context, log store.RunIndex, id string, may func(*event.RunStarted) bool) (*View, error) {
	v := &View{Client: map[string]bool{}, Turns: map[string]int{}, Requests: map[string]ApprovalRequest{}, Resolved: map[string]int64{}, ran: map[string]bool{}}
	for e, err := range log.Read(ctx, id, 0) {
		if err == nil {
			if d, ok := e.Data.(*event.RunStarted); ok && !may(d) {
				return nil, nil
			}
			v.noteCalls(&e)
			v.noteWait(&e)
			v.Summary.Apply(&e)
			err = v.State.Apply(&e)
		}
		if err != nil {
			return nil, err
		}
	}
	return v, nil
}

// Result returns the result of the run so far, as the log states it.
func (v *View) Result() *event.Result {
	s := &v.State
	res := &event.Result{Reason: s.Paused, History: s.Messages, Usage: s.Usage, Cost: s.Cost, Trace: s.Trace, ToolCalls: s.Planned}
	for _, call := range s.Open {
		if slices.Contains(v.Summary.Run.Pending, call.ID) {
			res.Pending = append(res.Pending, call.ToolCall)
		}
	}
	switch f := s.Finished; {
	case f != nil:
		res.Reason, res.Answer, res.Pending = f.Reason, f.Answer, nil
		if f.Reason == lathe.ReasonClientToolCalls {
			for _, call := range s.Open {
				res.Pending = append(res.Pending, call.ToolCall)
			}
		}
		if f.ErrorCode != "" {
			res.Err = lathe.Code(f.ErrorCode).Errorf("gateway: follow", "the run failed")
		}
		if f.Reason == lathe.ReasonUpstreamError {
			res.Err = &lathe.UpstreamError{Kind: lathe.UpstreamKind(f.ErrorCode)}
		}
	case s.Paused == "": // the run continues, but is no longer followed
		res.Reason, res.Err = lathe.ReasonInterrupted, lathe.CodeInterrupted.Errorf("gateway: follow", "the run goes on")
	}
	return res
}

// Ended returns a problem with the code run_ended if the run has ended, else nil.
func (v *View) Ended() *problem.Problem {
	if f := v.State.Finished; f != nil {
		return problem.New(http.StatusConflict, "run_ended", "The run has ended: %s.", f.Reason)
	}
	return nil
}

// Rests reports whether the run has ended or is suspended.
func (v *View) Rests() bool { return v.State.Finished != nil || v.State.Paused != "" }

// Stepped returns v if the log of the run names a server.Executor that executes it, else nil.
func (v *View) Stepped() *View {
	if v.State.Executor == "" {
		return nil
	}
	return v
}

// MayHaveRun reports whether the tool of a call was, or may have been, called.
func (v *View) MayHaveRun(callID string) bool {
	o := v.OpenCall(callID)
	return v.ran[callID] || o != nil && o.Begun
}

// OpenCall returns the call with that id if it has no result, else nil.
func (v *View) OpenCall(id string) *loop.OpenCall {
	i := slices.IndexFunc(v.State.Open, func(o loop.OpenCall) bool { return o.ID == id })
	if i < 0 {
		return nil
	}
	return &v.State.Open[i]
}

// Since returns the id of the last event of the run that a client with these messages has received, and the number of messages of the run
// at that event.
func (v *View) Since(messages []lathe.Message) (after int64, base int) {
	if last := len(messages) - 1; last >= 0 && messages[last].Role == lathe.RoleTool {
		return v.lastResult, v.Answered(pairs.Answered(&messages[last]))
	}
	return 0, v.State.Start
}

// Answered returns the number of messages of the history up to and including the results of the message that has the call.
func (v *View) Answered(call string) int {
	messages := v.State.Messages
	for i := v.State.Start; i < len(messages); i++ {
		if slices.ContainsFunc(messages[i].Calls(), func(c lathe.ToolCall) bool { return c.ID == call }) {
			return v.AfterResults(i + 1)
		}
	}
	return v.State.Start
}

// Added returns the messages that the run has added to the conversation. Each call has a result; that of an open call is pendingText.
func (v *View) Added() []lathe.Message {
	own := v.State.Messages[v.State.Start:]
	if len(v.State.Open) == 0 {
		return slices.Clip(own)
	}
	var answers []lathe.Message
	for i := range v.State.Open {
		answers = append(answers, pairs.PendingResult(&v.State.Open[i].ToolCall))
	}
	whole, ok := pairs.Join(nil, own, answers)
	if !ok {
		return nil
	}
	return whole
}

// KeptOf returns the messages of a turn that are stored: all while the turn is not over, and those that the retention selects afterwards.
func KeptOf(messages []lathe.Message, keeps *event.RunRetention, over bool) []lathe.Message {
	if keeps == nil || !over {
		return messages
	}
	return loop.SessionHistory(messages, loop.RetentionOf(keeps))
}
