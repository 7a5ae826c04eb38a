package replay

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// A stretch is the part of a run between two resumes.
type stretch struct {
	decisions map[string]*event.ApprovalResolved // by call id
	answers   map[string]lathe.Output            // results of the client's calls
	// crashed: the previous stretch was interrupted.
	crashed bool
	after   int64 // id of the last event before the stretch
}

// stretches returns all stretches of the record.
func (r *Record) stretches() []stretch {
	out := []stretch{{decisions: map[string]*event.ApprovalResolved{}}}
	for i, e := range r.Events {
		s := &out[len(out)-1]
		switch d := e.Data.(type) {
		case *event.RunResumed:
			_, waited := r.Events[i-1].Data.(*event.RunPaused)
			out = append(out, stretch{decisions: map[string]*event.ApprovalResolved{}, answers: map[string]lathe.Output{}, crashed: !waited, after: e.ID - 1})
		case *event.ApprovalResolved:
			s.decisions[d.ToolCallID] = d
		case *event.ToolCallResult:
			if d.Client && s.answers != nil {
				s.answers[d.ToolCallID] = clientAnswer(d)
			}
		default: // events of the model and of tools
		}
	}
	return out
}

// clientAnswer returns the output that the client sent for its call.
func clientAnswer(d *event.ToolCallResult) lathe.Output {
	if d.Status == "ok" {
		return lathe.Output{Data: dataOf(d.Result), Blobs: d.Blobs}
	}
	return lathe.Output{IsError: true, Code: d.ErrorType, Data: errorData(d.Result), Blobs: d.Blobs}
}

// people is an approver that repeats the recorded decisions, each in the stretch in which it was made.
type people struct {
	outcomes map[string]outcome

	mu  sync.Mutex
	now *stretch // the current one
}

var _ lathe.Approver = (*people)(nil)

// begin sets the stretch whose decisions are repeated.
func (p *people) begin(s *stretch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = s
}

// Approve implements [lathe.Approver].
func (p *people) Approve(_ context.Context, req *lathe.ApprovalRequest) (lathe.Approval, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := p.now.decisions[req.Call.ID]
	if d == nil {
		return lathe.Approval{}, lathe.ErrPending
	}
	return approval(d, p.outcomes[req.Call.ID]), nil
}

// approval returns a recorded decision about a call with this outcome.
func approval(d *event.ApprovalResolved, o outcome) lathe.Approval {
	a := lathe.Approval{Approved: true, By: d.By, ReasonCode: d.ReasonCode}
	switch d.Decision {
	case "approved":
	case "edited":
		a.Arguments = slices.Clone(d.Arguments)
	case "answered":
		if o.result != nil {
			a.Result = dataOf(o.result.Result)
		}
	default:
		a.Approved = false
	}
	return a
}

// A clock returns the time of the next recorded event.
type clock struct {
	mu    sync.Mutex
	times []time.Time
}

func (r *Record) clock() *clock {
	c := &clock{}
	for i := range r.Events {
		c.times = append(c.times, r.Events[i].Time)
	}
	return c
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.times[0]
}

// Emit implements [event.Sink].
func (c *clock) Emit(_ context.Context, e event.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.ID != 0 && len(c.times) > 1 {
		c.times = c.times[1:]
	}
}
