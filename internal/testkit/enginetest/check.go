package enginetest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
)

// A Violation is a broken promise in a history, with the check that found it.
type Violation struct {
	Check string // C1 to C9
	RunID string
	Text  string
}

// String returns the violation in one line.
func (v Violation) String() string { return strings.TrimSpace(v.Check + " " + v.RunID + ": " + v.Text) }

// Check returns the violations of these promises in the history:
//
//	C1 every run that was acknowledged has ended, or waits for an approver or a client
//	C2 the events of a run are dense from 1, can be folded, end once, and match the index
//	C3 no call of a tool that writes is made twice, and others only under the same key
//	C4 each call has one answer, and no result without an execution
//	C5 only what writes, and was begun, is answered `interrupted`
//	C6 each watcher received each event once, in order, over all its connections
//	C7 every executed call was allowed by the policy or approved, with the arguments that were executed
//	C8 no process appends to a run after another process has acquired it
//	C9 no more is spent than the limits allow and what was under way when a process ended
func (h *History) Check() []Violation {
	c := &checker{h: h, bad: slices.Clone(h.found)}
	for i := range h.Runs {
		r := &h.Runs[i]
		c.run = r.ID
		c.c1(r)
		c.c2(r)
		c.c3(r)
		c.c4(r)
		c.c5(r)
		c.c7(r)
		c.c8(r)
		c.c9(r)
	}
	for i := range h.Tails {
		c.run = h.Tails[i].RunID
		c.c6(&h.Tails[i])
	}
	return c.bad
}

type checker struct {
	h   *History
	run string
	bad []Violation
}

func (c *checker) fail(check, format string, args ...any) {
	c.bad = append(c.bad, Violation{Check: check, RunID: c.run, Text: fmt.Sprintf(format, args...)})
}

// of returns the data of the events of one type.
func of[T event.Data](events []event.Event) []T {
	var out []T
	for i := range events {
		if d, ok := events[i].Data.(T); ok {
			out = append(out, d)
		}
	}
	return out
}

// end returns the first end of the run, or nil.
func (r *RunLog) end() *event.RunFinished {
	ends := of[*event.RunFinished](r.Events)
	if len(ends) == 0 {
		return nil
	}
	return ends[0]
}

// c1: a run that was acknowledged has ended or waits for input.
func (c *checker) c1(r *RunLog) {
	if !r.Acked {
		return
	}
	if len(r.Events) == 0 {
		c.fail("C1", "it was acknowledged, and is not there")
		return
	}
	switch last := r.Events[len(r.Events)-1].Data.(type) {
	case *event.RunFinished:
	case *event.RunPaused:
		if last.Reason != lathe.ReasonAwaitingApproval && last.Reason != lathe.ReasonAwaitingToolResults {
			c.fail("C1", "it waits for no input: %s", last.Reason)
		}
	default:
		c.fail("C1", "it is not done: its last event is %s", last.EventType())
	}
}

// c2: the log is dense, can be folded, has at most one end, and agrees with the index.
func (c *checker) c2(r *RunLog) {
	for i := range r.Events {
		e := &r.Events[i]
		if e.ID != int64(i)+1 || e.RunID != r.ID {
			c.fail("C2", "event %d of %s stands at %d", e.ID, e.RunID, i+1)
			return
		}
	}
	state, err := loop.Fold(r.Events)
	if err != nil {
		c.fail("C2", "%v", err)
		return
	}
	if n := len(of[*event.RunFinished](r.Events)); n > 1 {
		c.fail("C2", "it has %d ends", n)
	}
	if len(r.Events) == 0 {
		return
	}
	if r.Row == nil {
		c.fail("C2", "the index does not have it")
		return
	}
	status := "running"
	switch {
	case state.Finished != nil:
		status = state.Finished.Status
	case state.Paused != "":
		status = "parked"
	}
	if r.Row.LastID != state.LastID || r.Row.Status != status {
		c.fail("C2", "the index says %s after event %d, the log %s after %d", r.Row.Status, r.Row.LastID, status, state.LastID)
	}
}

// deeds returns the executions of a run's calls, by call id.
func (c *checker) deeds(r *RunLog) map[string][]Deed {
	out := map[string][]Deed{}
	for _, d := range c.h.Deeds {
		if d.RunID == r.ID {
			out[d.CallID] = append(out[d.CallID], d)
		}
	}
	return out
}

// c3: a call that writes was executed at most once, and all executions of a call had the same key.
func (c *checker) c3(r *RunLog) {
	for id, all := range c.deeds(r) {
		if c.h.Tools[all[0].Tool].Effect == lathe.Writes && len(all) > 1 {
			c.fail("C3", "%s of %s was made %d times", id, all[0].Tool, len(all))
		}
		for _, d := range all[1:] {
			if d.Key != all[0].Key {
				c.fail("C3", "%s of %s was made under 2 keys", id, d.Tool)
			}
		}
	}
}

// c4: each call was planned and answered once, and a successful result comes from an execution or from an approver.
func (c *checker) c4(r *RunLog) {
	planned, results := map[string]int{}, map[string]int{}
	deeds := c.deeds(r)
	byHand := map[string]bool{}
	for _, d := range of[*event.ApprovalResolved](r.Events) {
		byHand[d.ToolCallID] = d.Decision == "answered"
	}
	for _, d := range of[*event.ToolCallPlanned](r.Events) {
		planned[d.ToolCallID]++
	}
	for _, d := range of[*event.ToolCallResult](r.Events) {
		results[d.ToolCallID]++
		_, isKnown := c.h.Tools[d.Tool]
		wasExecuted := byHand[d.ToolCallID] || len(deeds[d.ToolCallID]) > 0
		if d.Status == "ok" && isKnown && !wasExecuted {
			c.fail("C4", "%s of %s has a result and was not executed", d.ToolCallID, d.Tool)
		}
		if planned[d.ToolCallID] == 0 {
			c.fail("C4", "%s is answered and was not planned", d.ToolCallID)
		}
	}
	for _, d := range of[*event.ToolCallExecuted](r.Events) {
		if len(deeds[d.ToolCallID]) == 0 && d.Success {
			c.fail("C4", "%s of %s is recorded as executed and was not", d.ToolCallID, d.ToolName)
		}
	}
	for id, n := range planned {
		isMissing := results[id] == 0 && r.end() != nil
		if n > 1 || results[id] > 1 || isMissing {
			c.fail("C4", "%s is planned %d times and answered %d times", id, n, results[id])
		}
	}
}

// c5: a call that is answered `interrupted` had begun, and may not be executed again.
func (c *checker) c5(r *RunLog) {
	state := &loop.State{}
	for i := range r.Events {
		e := &r.Events[i]
		if d, ok := e.Data.(*event.ToolCallResult); ok && d.ErrorType == lathe.CodeInterrupted {
			t, known := c.h.Tools[d.Tool]
			if known && t.Effect != lathe.Writes && t.Effect != lathe.EffectUndeclared {
				c.fail("C5", "%s of %s, which may run again, is answered interrupted", d.ToolCallID, d.Tool)
			}
			at := slices.IndexFunc(state.Open, func(o loop.OpenCall) bool { return o.ID == d.ToolCallID })
			if at < 0 || !state.Open[at].Begun {
				c.fail("C5", "%s of %s was not begun, and is answered interrupted", d.ToolCallID, d.Tool)
			}
		}
		if state.Apply(e) != nil {
			return // C2 reports it
		}
	}
}

// c6: a watcher received each stored event once and in order.
func (c *checker) c6(t *Tail) {
	at := slices.IndexFunc(c.h.Runs, func(r RunLog) bool { return r.ID == t.RunID })
	if at < 0 {
		c.fail("C6", "a watcher of a run that is not there")
		return
	}
	run := &c.h.Runs[at]
	for i, id := range t.IDs {
		if id != int64(i)+1 {
			c.fail("C6", "a watcher received event %d where %d is next", id, i+1)
			return
		}
		if i >= len(run.Events) {
			c.fail("C6", "a watcher received event %d, which is not stored", id)
			return
		}
		if i >= len(t.Lines) { // the watcher has only ids
			continue
		}
		line, err := run.Events[i].MarshalJSON()
		if err != nil || string(line) != t.Lines[i] {
			c.fail("C6", "a watcher received for event %d what is not stored", id)
		}
	}
	if t.Whole && len(t.IDs) != len(run.Events) {
		c.fail("C6", "a watcher received %d of %d events", len(t.IDs), len(run.Events))
	}
}

// c7: each execution had arguments that the model asked for, if the policy allows the call, or that an approver allowed.
func (c *checker) c7(r *RunLog) {
	asked, allowed := map[string]json.RawMessage{}, map[string][]json.RawMessage{}
	for i := range r.Events {
		switch d := r.Events[i].Data.(type) {
		case *event.ModelCallFinished:
			for _, call := range callsOf(d.Message) {
				if !c.h.Tools[call.Name].Asks {
					allowed[call.ID] = append(allowed[call.ID], json.RawMessage(call.Arguments))
				}
			}
		case *event.ApprovalRequested:
			asked[d.ToolCallID] = d.Arguments
		case *event.ApprovalResolved:
			switch d.Decision {
			case "approved":
				allowed[d.ToolCallID] = append(allowed[d.ToolCallID], asked[d.ToolCallID])
			case "edited":
				allowed[d.ToolCallID] = append(allowed[d.ToolCallID], d.Arguments)
			}
		default: // it allows nothing
		}
	}
	for id, all := range c.deeds(r) {
		for _, d := range all {
			if !slices.ContainsFunc(allowed[id], func(args json.RawMessage) bool { return sameJSON(args, d.Args) }) {
				c.fail("C7", "%s of %s was executed with arguments that no approver has allowed", id, d.Tool)
			}
		}
	}
}

func callsOf(m *lathe.Message) (calls []lathe.ToolCall) {
	if m == nil {
		return nil
	}
	for _, p := range m.Parts {
		if call, ok := p.(lathe.ToolCall); ok {
			calls = append(calls, call)
		}
	}
	return calls
}

func sameJSON(a, b []byte) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return bytes.Equal(a, b)
	}
	left, lerr := json.Marshal(x)
	right, rerr := json.Marshal(y)
	return lerr == nil && rerr == nil && bytes.Equal(left, right)
}

// c8: each append was made under the newest claim, and only an event that acquires the run changes its writer.
func (c *checker) c8(r *RunLog) {
	writer := ""
	appends := slices.DeleteFunc(slices.Clone(c.h.Appends), func(a Append) bool { return a.RunID != r.ID })
	slices.SortStableFunc(appends, func(a, b Append) int { return cmp.Compare(a.From, b.From) }) // as they stand in the log
	for _, a := range appends {
		if a.Epoch < a.Newest {
			c.fail("C8", "%s appends event %d under claim %d, after claim %d", a.Process, a.From, a.Epoch, a.Newest)
		}
		// A run without progress is parked by the process that owns it, without being resumed.
		acquires := a.First == "RunResumed" || a.First == "RunPaused"
		if writer != "" && a.Process != writer && !acquires {
			c.fail("C8", "%s appends event %d (%s) to a run that %s owns", a.Process, a.From, a.First, writer)
		}
		writer = a.Process
	}
}

// c9: the model and the tools were called no more often than the limits and the number of resumptions allow.
func (c *checker) c9(r *RunLog) {
	l := r.Limits.WithDefaults()
	begun, resumed := len(of[*event.ModelCallStarted](r.Events)), len(of[*event.RunResumed](r.Events))
	finished := of[*event.ModelCallFinished](r.Events)
	if r.Asked > begun {
		c.fail("C9", "the model was asked %d times, and that was begun %d times", r.Asked, begun)
	}
	if begun > len(finished)+resumed+1 {
		c.fail("C9", "%d model calls were begun, %d finished, in a run that was resumed %d times", begun, len(finished), resumed)
	}
	turns := 0
	for _, d := range finished {
		if d.Status == "success" {
			turns++
		}
	}
	if turns > l.MaxIterations+1 { // one more asks for an answer
		c.fail("C9", "%d turns, where max_iterations is %d", turns, l.MaxIterations)
	}
	deeds := c.deeds(r)
	if len(deeds) > l.MaxToolCalls {
		c.fail("C9", "%d calls were executed, where max_total_tool_calls is %d", len(deeds), l.MaxToolCalls)
	}
	for id, all := range deeds {
		if len(all) > 1+resumed {
			c.fail("C9", "%s was executed %d times in a run that was resumed %d times", id, len(all), resumed)
		}
	}
}
