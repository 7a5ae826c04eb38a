package server

import (
	"crypto/rand"
	"slices"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/gateway/pairs"
)

// Each answer that a client receives has an id of its own, also when one run gives several: it waits for the results of the
// client or for an approval, and its next answer begins where it resumes. The id is a text without a prefix, to which each wire
// adds its own (resp_, msg_, chatcmpl-):
//
//	RUN               the first answer of the run
//	RUN_EVENT         the answer that begins after that event, at which the run waited
//	RUN_EVENT_ONCE    an answer from an attached run: an equal request before it received another one from the same event on
//
// RUN is the id of the run without its prefix; an id of an earlier version has this form. A request that receives the stored
// answer of a run again, because its first client did not, receives it under the same id.

const (
	responsePrefix = "resp_"
	runPrefix      = "run_"
)

// An answerID identifies one answer.
type answerID struct {
	run   string // with its prefix
	after int64  // the event that the answer begins after; 0: it is the first of the run
	once  string // in addition, of an answer from a run that the request attached to
}

func (id answerID) String() string {
	s := strings.TrimPrefix(id.run, runPrefix)
	if id.after > 0 || id.once != "" {
		s += "_" + strconv.FormatInt(id.after, 10)
	}
	if id.once != "" {
		s += "_" + id.once
	}
	return s
}

// parseAnswerID returns the answer of an id without the prefix of its wire. A text that is not what [answerID.String] writes is the id of a
// run that does not exist.
func parseAnswerID(s string) answerID {
	run, rest, _ := strings.Cut(s, "_")
	event, once, _ := strings.Cut(rest, "_")
	after, _ := strconv.ParseInt(event, 10, 64)
	if id := (answerID{run: runPrefix + run, after: after, once: once}); id.String() == s && after >= 0 {
		return id
	}
	return answerID{run: runPrefix + s}
}

// has reports whether the run may have given the answer: an answer begins where the run waited.
func (v *runView) has(id answerID) bool {
	return id.after == 0 || slices.ContainsFunc(v.waitPoints, func(r waitPoint) bool { return r.event == id.after })
}

// newOnce returns a text that makes the id of one answer different from all others.
func newOnce() string { return strings.ToLower(rand.Text()[:10]) }

// A waitPoint is a point at which a run waited.
type waitPoint struct {
	event    int64 // of the pause
	messages int   // of the history up to the message of the last turn, without the results of its calls
	reason   lathe.Reason
	pending  []string // the calls that waited
	res      event.Result
	// answered is set if a request brought results of calls or a decision: an answer ended here, and that request got the next one.
	// After a decision that came from elsewhere, such as the console, the run continues within the answer.
	answered bool
}

// noteWait records where the run waits, and what came then.
func (v *runView) noteWait(e *event.Event) {
	s := &v.state
	last := len(v.waitPoints) - 1
	switch d := e.Data.(type) {
	case *event.RunPaused:
		if d.Reason.Status() != "parked" || len(d.Pending) == 0 { // its process stopped
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

// An answerSpan is the part of a run that is one answer.
type answerSpan struct {
	*runView
	id    answerID
	start int        // of the messages of the run, the first one of the answer; results of calls of the answer before are of neither
	end   *waitPoint // where the answer ended and the next one begins; nil: it is the last one so far
}

// span returns the part of the run that is the answer.
func (v *runView) span(id answerID) *answerSpan {
	sp := &answerSpan{runView: v, id: id, start: v.state.Start}
	for i := range v.waitPoints {
		r := &v.waitPoints[i]
		if r.event <= id.after {
			sp.start = v.afterResults(r.messages)
		} else if r.answered {
			sp.end = r
			break
		}
	}
	return sp
}

// beforeResults returns the number of messages of the run without the results that they end with.
func (v *runView) beforeResults() int {
	n := len(v.state.Messages)
	for n > v.state.Start && v.state.Messages[n-1].Role == lathe.RoleTool {
		n--
	}
	return n
}

// afterResults returns the index after the results that begin at i.
func (v *runView) afterResults(i int) int {
	for i < len(v.state.Messages) && v.state.Messages[i].Role == lathe.RoleTool {
		i++
	}
	return i
}

// waitBefore returns the event of the last waitPoint whose turn is within the first n messages of the run; 0 if the run did not wait before.
func (v *runView) waitBefore(n int) (event int64) {
	for i := range v.waitPoints {
		if r := &v.waitPoints[i]; r.messages <= n {
			event = r.event
		}
	}
	return event
}

// waits reports whether the answer is the last one and its run waits.
func (sp *answerSpan) waits() bool { return sp.end == nil && sp.state.Paused != "" }

// open reports whether the answer ended with calls of the client that the run, as far as this answer goes, has no results of.
func (sp *answerSpan) open() bool {
	return sp.end != nil && slices.ContainsFunc(sp.end.pending, func(id string) bool { return sp.client[id] }) ||
		sp.end == nil && sp.state.Finished != nil && len(sp.state.Open) > 0
}

// lastTurn returns the number of messages up to the last turn of the answer, without the results of its calls.
func (sp *answerSpan) lastTurn() int {
	if sp.end != nil {
		return sp.end.messages
	}
	return sp.beforeResults()
}

// history returns the conversation up to the end of the answer. The calls of its last turn have the results that the run has, also later
// ones, except for those of the client's calls if another answer follows. Calls that wait have pendingText.
func (sp *answerSpan) history() []lathe.Message {
	messages, n := sp.state.Messages, sp.lastTurn()
	if sp.end == nil && sp.state.Paused == "" {
		return messages
	}
	// next reports whether the answer that follows begins with the result of the call.
	next := func(id string) bool {
		return sp.end != nil && sp.client[id] && slices.Contains(sp.end.pending, id)
	}
	out := slices.Clip(messages[:n])
	for _, m := range messages[n:sp.afterResults(n)] {
		if !next(pairs.Answered(&m)) {
			out = append(out, m)
		}
	}
	for i := range sp.state.Open {
		if o := &sp.state.Open[i]; sp.end == nil || !sp.client[o.ID] && slices.Contains(sp.end.pending, o.ID) {
			out = append(out, pairs.PendingResult(&o.ToolCall))
		}
	}
	if sorted, ok := pairs.Join(nil, out, nil); ok { // no call of the client
		return sorted
	}
	return out
}

// own returns the messages of the answer: none if the run waited twice in one turn, and the answer is what it did between.
func (sp *answerSpan) own() []lathe.Message {
	if sp.start > sp.lastTurn() {
		return nil
	}
	return sp.history()[sp.start:]
}

// result returns what the answer came to.
func (sp *answerSpan) result() *event.Result {
	if sp.end == nil {
		return sp.runView.result()
	}
	res := sp.end.res
	res.Reason = sp.end.reason
	messages := sp.state.Messages
	res.History = slices.Clip(messages[:sp.end.messages])
	for _, m := range messages[sp.end.messages:sp.afterResults(sp.end.messages)] {
		if !slices.Contains(sp.end.pending, pairs.Answered(&m)) { // those came later
			res.History = append(res.History, m)
		}
	}
	if sp.end.messages > 0 {
		for _, call := range messages[sp.end.messages-1].Calls() {
			if slices.Contains(sp.end.pending, call.ID) {
				res.Pending = append(res.Pending, call)
			}
		}
	}
	return &res
}
