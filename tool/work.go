package tool

import (
	"context"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// Work executes the tool calls of one run. It must be used by one goroutine at a time.
type Work struct {
	r        *Runner
	info     *lathe.RunInfo
	settings lathe.Settings
	limits   lathe.Limits
	tools    view

	ids      ids
	next     int  // seq of the next call
	resumed  bool // an earlier process has executed calls of the run
	repeat   repeats
	failures failures
	secrets  runSecrets
	used     usedTools
	usage    lathe.Usage // usage of the run's model calls, as last reported by the loop
	cost     float64
	unknown  int                                         // number of consecutive calls of unknown tools
	halt     lathe.Code                                  // not "": the run is over, and every further call ends with this code
	suspend  func(*lathe.ToolCall, *lathe.ToolSpec) bool // nil: never
}

// A Call is a call of a model for the runner.
type Call struct {
	lathe.ToolCall
	// Written is the name that the model wrote, if [Work.Adopt] has changed it.
	Written string
	// Refuse, if set, is the code with which the call ends: it is planned but not executed.
	Refuse lathe.Code
	// Parked, if set, is the state with which an earlier Execute parked the call.
	Parked *Parked
	// Begun reports that an earlier process may have called the tool, with an unknown outcome. A tool that may be called again is called
	// with the same idempotency key. For an [OutcomeChecker], CheckOutcome determines the outcome. The call of any other tool ends with
	// `interrupted`. Begun requires Parked.
	Begun bool
	// Answer, if set, is the output of the client that executed the call. It requires Parked.
	Answer *lathe.Output
}

// Parked is the state of a parked call. The caller stores it.
type Parked struct {
	Seq int
	// Digest is the digest of the requested approval; "" if the call is parked only because an earlier one is.
	Digest    string
	ExpiresAt time.Time
}

// An Outcome is the result of the calls of one turn.
type Outcome struct {
	// Messages are the tool messages of the calls, in call order. Pending calls have none.
	Messages []lathe.Message
	Calls    []event.CallTrace // traces of calls with a result and of client calls, in call order
	Pending  []lathe.ToolCall  // client calls and parked calls, in call order
	// Parked reports that an approval is pending. Waiting are the parked calls: the caller passes them to Execute again when the approver
	// can answer. Execute skips calls that have a result by then.
	Parked  bool
	Waiting []Call
	// Suspended reports that [RunOptions].Suspend ended Execute before all calls were started.
	Suspended bool
	// Reason, if set, is the reason why the run must end, and Limit the config key of the exceeded limit.
	Reason lathe.Reason
	Limit  string
	// ChildUsage and ChildCost are the usage and cost of model calls in runs that the calls started.
	ChildUsage lathe.Usage
	ChildCost  float64
}

// Execute executes the calls of one turn in call order. If MaxParallel is above 1, neighbouring calls of tools that only read run
// concurrently. Every call is planned, and every call that is not Pending gets a result. After ctx is done, the remaining calls end with
// `cancelled`.
//
// emit must not be nil. It is called on the goroutine of Execute, with the events in order; the action that an event announces starts after
// emit has returned. After a call is parked, the later calls are parked, too, unless they are refused.
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

// suspends calls Suspend before a call that may have an effect. It does not call it for a call that cannot run because an earlier one is
// parked, nor for one that was parked only for that reason: a resumed run could not distinguish the latter from a call whose tool was
// called.
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

// begin sets the fields of c. The seq of a call is its position in call order.
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

// Called reports whether the model made any call, also in the run before it was resumed or that it continues.
func (w *Work) Called() bool { return w.next > 0 || w.resumed }
