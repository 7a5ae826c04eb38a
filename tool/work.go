package tool

import (
	"context"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// Work is the part of one run that calls tools. It is used by one goroutine at a time.
type Work struct {
	r        *Runner
	info     *lathe.RunInfo
	settings lathe.Settings
	limits   lathe.Limits
	tools    view

	ids      ids
	next     int  // seq of the next call
	resumed  bool // calls were answered before this process
	repeat   repeats
	failures failures
	secrets  runSecrets
	used     usedTools
	usage    lathe.Usage // of the run's model calls, as of the last report of the loop
	cost     float64
	unknown  int                                         // calls to unknown tools in a row
	halt     lathe.Code                                  // set: the run is over, and every further call is answered with it
	suspend  func(*lathe.ToolCall, *lathe.ToolSpec) bool // nil: never
}

// A Call is a call of a model on its way into the runner.
type Call struct {
	lathe.ToolCall
	// Written is the name as the model wrote it, if [Work.Adopt] has changed it.
	Written string
	// Refuse, when set, is the code with which the call is answered: it is planned and nothing else is done.
	Refuse lathe.Code
	// Parked, when set, says that an earlier Execute planned the call and parked it.
	Parked *Parked
	// Begun says that an earlier process may have called the tool, with an unknown outcome. A tool that may run again is
	// called again, with the same idempotency key. An [OutcomeChecker] is asked for the outcome. The call of another tool is
	// answered `interrupted`. Begun requires Parked.
	Begun bool
	// Answer, when set, is the output that the client returned for the call that it executed. It requires Parked.
	Answer *lathe.Output
}

// Parked is the state of a call that waits for an approval. Its caller stores it.
type Parked struct {
	Seq int
	// Digest is that of the requested approval, "" if the call waits only because a call before it does.
	Digest    string
	ExpiresAt time.Time
}

// An Outcome is the result of the calls of one turn.
type Outcome struct {
	// Messages answer the calls, one tool message each, in call order; those that are Pending have none.
	Messages []lathe.Message
	Calls    []event.CallTrace // of answered calls and of those of the client, in call order
	Pending  []lathe.ToolCall  // those of the client and those that are parked, in call order
	// Parked says that an approval is pending. Waiting are the parked calls: the caller passes them to Execute again when the
	// approver can answer. Execute skips those that were answered meanwhile.
	Parked  bool
	Waiting []Call
	// Suspended says that [RunOptions].Suspend ended Execute before all calls were begun.
	Suspended bool
	// Reason, when set, is why the run must end, and Limit the config key of the limit behind it.
	Reason lathe.Reason
	Limit  string
	// ChildUsage and ChildCost are what runs that the calls started have spent on model calls.
	ChildUsage lathe.Usage
	ChildCost  float64
}

// Execute executes the calls of one turn, in call order; with MaxParallel above 1,
// neighbouring calls to tools that only read run concurrently. Every call is planned, and every call that is not Pending is
// answered. Once ctx is done, calls that have not run are answered `cancelled`.
//
// emit, which must not be nil, is called on the goroutine of Execute, with the events in order, and returns before what
// they announce is done. Once a call is parked, the calls after it are parked too, unless they are refused.
func (w *Work) Execute(ctx context.Context, turn int, calls []Call, emit func(event.Data)) Outcome {
	var out Outcome
	for len(calls) > 0 {
		if w.ids.answered(&calls[0]) {
			calls = calls[1:]
			continue
		}
		if w.suspends(ctx, &calls[0], &out) {
			out.Suspended = true
			break
		}
		n := w.sideBySide(calls)
		if n > 1 {
			w.runTogether(ctx, turn, calls[:n], emit, &out)
		} else {
			c := call{w: w, emit: emit}
			w.begin(ctx, &c, turn, &calls[0], out.Parked)
			runCall(ctx, &c)
			w.finishCall(&c, &out)
		}
		calls = calls[n:]
	}
	return out
}

// suspends asks Suspend before a call that may have an effect. A call that a parked call keeps from running, and one that was
// planned before and waited only for that, is not asked about: a resumed run could not tell the latter from a call whose tool
// was called.
func (w *Work) suspends(ctx context.Context, c *Call, out *Outcome) bool {
	if w.suspend == nil || c.Begun || c.Refuse != "" || c.Parked != nil && c.Parked.Digest == "" || out.Parked || out.Reason != "" || w.halt != "" || ctx.Err() != nil {
		return false
	}
	var spec *lathe.ToolSpec
	if e, _, _ := w.tools.lookup(c.Name); e != nil {
		spec = e.spec
	}
	return w.suspend(&c.ToolCall, spec)
}

// begin makes c ready to run. The seq of a call is its place in call order.
func (w *Work) begin(ctx context.Context, c *call, turn int, in *Call, parkBehind bool) {
	c.Call, c.turn, c.parkBehind, c.kept = *in, turn, parkBehind, new(kept)
	if in.Parked != nil {
		c.seq = in.Parked.Seq
	} else {
		c.seq = w.next
		w.next++
	}
	if w.tools.registry.startRuns {
		if e, _, _ := w.tools.lookup(c.Name); e != nil {
			c.scope = w.scopeFor(e)
		}
	}
	if c.Refuse == "" {
		c.Refuse = w.halt
	}
	if c.Refuse == "" && ctx.Err() != nil {
		c.Refuse = lathe.CodeCancelled
	}
}

// Called reports whether the model asked for any call, in the run that is resumed or continued included.
func (w *Work) Called() bool { return w.next > 0 || w.resumed }
