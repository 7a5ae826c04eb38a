package runlog

import (
	"crypto/rand"
	"slices"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/gateway/pairs"
	"github.com/lathe-run/lathe/loop"
)

// Each answer that a client receives has an id of its own, also if one run gives several answers: a run that waits for results of the
// client or for an approval gives its next answer when it resumes. The id is a text without a prefix, to which each wire adds its own
// (resp_, msg_, chatcmpl-):
//
//	RUN               the first answer of the run
//	RUN_EVENT         the answer that begins after that event, at which the run waited
//	RUN_EVENT_ONCE    an answer from an attached run: an equal request before it received another one from the same event on
//
// RUN is the id of the run without its prefix; ids of earlier versions have this form. If a client repeats a request and receives the
// stored answer of a run, the answer has the same id.

// RunPrefix is the prefix of run ids.
const RunPrefix = "run_"

// An AnswerID identifies one answer.
type AnswerID struct {
	Run   string // id of the run with its prefix
	After int64  // id of the event after which the answer begins; 0: it is the first answer of the run
	Once  string // makes the id unique if the request attached to a run that had already answered from this event; else ""
}

func (id AnswerID) String() string {
	s := strings.TrimPrefix(id.Run, RunPrefix)
	if id.After > 0 || id.Once != "" {
		s += "_" + strconv.FormatInt(id.After, 10)
	}
	if id.Once != "" {
		s += "_" + id.Once
	}
	return s
}

// ParseAnswerID parses an id from which the prefix of its wire has been removed. A text that [AnswerID.String] does not write is returned
// as the id of a run that does not exist.
func ParseAnswerID(s string) AnswerID {
	run, rest, _ := strings.Cut(s, "_")
	event, once, _ := strings.Cut(rest, "_")
	after, _ := strconv.ParseInt(event, 10, 64)
	if id := (AnswerID{Run: RunPrefix + run, After: after, Once: once}); id.String() == s && after >= 0 {
		return id
	}
	return AnswerID{Run: RunPrefix + s}
}

// Has reports whether the run may have given the answer: an answer begins at the start of the run or at an event at which it waited.
func (v *View) Has(id AnswerID) bool {
	return id.After == 0 || slices.ContainsFunc(v.waitPoints, func(r waitPoint) bool { return r.event == id.After })
}

// NewOnce returns a random text for AnswerID.Once.
func NewOnce() string { return strings.ToLower(rand.Text()[:10]) }

// A waitPoint is a point at which a run waited.
type waitPoint struct {
	event    int64 // id of the run_paused event
	messages int   // number of messages of the history up to that of the last turn, without the results of its calls
	reason   lathe.Reason
	pending  []string     // ids of the calls that waited
	res      event.Result // usage, cost and trace up to this point
	// answered is set if a request sent results of calls or a decision: this answer ended here, and that request received the next one.
	// After a decision from elsewhere, such as the console, the run continues within the answer.
	answered bool
}

// noteWait records the points at which the run waits, and whether a request ended the wait.
func (v *View) noteWait(e *event.Event) {
	s := &v.State
	last := len(v.waitPoints) - 1
	switch d := e.Data.(type) {
	case *event.RunPaused:
		if d.Reason.Status() != "parked" || len(d.Pending) == 0 { // the process of the run stopped
			return
		}
		v.waitPoints = append(v.waitPoints, waitPoint{event: e.ID, messages: v.beforeResults(), reason: d.Reason, pending: d.Pending,
			res: event.Result{Usage: s.Usage, Cost: s.Cost, Trace: slices.Clone(s.Trace), ToolCalls: s.Planned}})
	case *event.ToolCallResult:
		if last >= 0 && d.Client {
			v.waitPoints[last].answered = true
		}
	case *event.ApprovalResolved:
		if last >= 0 && d.InRequest {
			v.waitPoints[last].answered = true
		}
	default: // the run does not wait
	}
}

// beforeResults returns the number of messages of the run without the tool results at their end.
func (v *View) beforeResults() int {
	n := len(v.State.Messages)
	for n > v.State.Start && v.State.Messages[n-1].Role == lathe.RoleTool {
		n--
	}
	return n
}

// AfterResults returns the index of the first message from i on that is no tool result.
func (v *View) AfterResults(i int) int {
	for i < len(v.State.Messages) && v.State.Messages[i].Role == lathe.RoleTool {
		i++
	}
	return i
}

// WaitBefore returns the id of the event at which the run last waited within its first n messages, or 0 if it did not wait there.
func (v *View) WaitBefore(n int) (event int64) {
	for _, r := range v.waitPoints {
		if r.messages <= n {
			event = r.event
		}
	}
	return event
}

// A Span is the part of a run that is one answer.
type Span struct {
	*View
	ID    AnswerID
	Start int        // index of the first message of the answer; results of calls of the answer before belong to neither
	end   *waitPoint // where the answer ended and the next one begins; nil: no answer follows so far
}

// Span returns the part of the run that is the answer with an id.
func (v *View) Span(id AnswerID) *Span {
	sp := &Span{View: v, ID: id, Start: v.State.Start}
	for i := range v.waitPoints {
		r := &v.waitPoints[i]
		if r.event <= id.After {
			sp.Start = v.AfterResults(r.messages)
		} else if r.answered {
			sp.end = r
			break
		}
	}
	return sp
}

// Waits reports whether the answer is the last one and its run waits.
func (sp *Span) Waits() bool { return sp.end == nil && sp.State.Paused != "" }

// Open reports whether the answer ended with calls of the client that have no results within this answer.
func (sp *Span) Open() bool {
	if sp.end == nil {
		return sp.State.Finished != nil && len(sp.State.Open) > 0
	}
	return slices.ContainsFunc(sp.end.pending, func(id string) bool { return sp.Client[id] })
}

// pends reports whether the call waited at the end of the answer, if another answer follows.
func (sp *Span) pends(call string) bool {
	return sp.end != nil && slices.Contains(sp.end.pending, call)
}

// lastTurn returns the number of messages up to the last turn of the answer, without the results of its calls.
func (sp *Span) lastTurn() int {
	if sp.end != nil {
		return sp.end.messages
	}
	return sp.beforeResults()
}

// History returns the conversation up to the end of the answer. It includes the results of the calls of the last turn, also those received
// later, except for results of the client's calls if another answer follows. The result of a call that waits is pendingText.
func (sp *Span) History() []lathe.Message {
	if sp.end == nil && sp.State.Paused == "" {
		return sp.State.Messages
	}
	beginsNext := func(call string) bool { return sp.Client[call] && sp.pends(call) } // the following answer begins with its result
	out := sp.withoutResults(beginsNext)
	for _, o := range sp.State.Open {
		waitsHere := sp.end == nil || sp.pends(o.ID) && !sp.Client[o.ID]
		if waitsHere {
			out = append(out, pairs.PendingResult(&o.ToolCall))
		}
	}
	if sorted, ok := pairs.Join(nil, out, nil); ok {
		return sorted
	}
	return out // calls of the client have no results
}

// withoutResults returns the messages up to the last turn of the answer, with the results of its calls except those that drop selects.
func (sp *Span) withoutResults(drop func(call string) bool) []lathe.Message {
	messages, n := sp.State.Messages, sp.lastTurn()
	out := slices.Clip(messages[:n])
	for _, m := range messages[n:sp.AfterResults(n)] {
		if !drop(pairs.Answered(&m)) {
			out = append(out, m)
		}
	}
	return out
}

// own returns the messages of the answer. It returns none if the run waited twice in one turn and this answer lies between the two waits.
func (sp *Span) own() []lathe.Message {
	if sp.Start > sp.lastTurn() {
		return nil
	}
	return sp.History()[sp.Start:]
}

// Result returns the result of the answer.
func (sp *Span) Result() *event.Result {
	if sp.end == nil {
		return sp.View.Result()
	}
	res := sp.end.res
	res.Reason = sp.end.reason
	res.History = sp.withoutResults(sp.pends) // results of pending calls were received later
	if n := sp.lastTurn(); n > 0 {
		for _, call := range sp.State.Messages[n-1].Calls() {
			if sp.pends(call.ID) {
				res.Pending = append(res.Pending, call)
			}
		}
	}
	return &res
}

// Last reports whether no answer follows this one so far.
func (sp *Span) Last() bool { return sp.end == nil }

// Take returns the messages of the answer that no earlier Take has returned. taken has, for each run, the number of its messages that were
// returned so far, and is updated. Two ids may refer to the same messages if no request sent what the run waited for. over is set if the
// turn of the answer has ended.
func (sp *Span) Take(taken map[string]int, over bool) []lathe.Message {
	sp.Start = max(sp.Start, taken[sp.ID.Run])
	taken[sp.ID.Run] = sp.AfterResults(sp.lastTurn())
	own := sp.own()
	if !sp.Waits() {
		own = KeptOf(loop.KeptHistory(own, sp.State.Retention), sp.State.Retention, over)
	}
	return own
}
