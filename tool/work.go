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

// A Call is one tool call that [Work.Execute] executes. Only ToolCall is required. Set the other fields for a call that Execute has parked,
// or that must not be executed.
type Call struct {
	lathe.ToolCall
	// Written is the tool name that the model wrote, if [Work.Adopt] replaced it.
	Written string
	// Refuse, if not "", is the code with which the call ends without being executed.
	Refuse lathe.Code
	// Parked is the state that an earlier Execute returned for the call in Outcome.Waiting; nil: a new call.
	Parked *Parked
	// Begun says that an earlier process may have called the tool, with an unknown outcome; it requires Parked. A read-only or idempotent
	// tool is called again, with the same idempotency key. For an [OutcomeChecker], CheckOutcome decides. The call of any other tool ends
	// with interrupted.
	Begun bool
	// Answer is the output of the client that executed the call; it requires Parked. nil: the runner executes the call.
	Answer *lathe.Output
}

// Parked is the state of a call that waits for an approval. The caller must store it and pass it to Execute again in [Call].Parked.
type Parked struct {
	Seq int // position of the call among the calls of the run, from 0
	// Digest is [lathe.ApprovalRequest].Digest; "" if the call only waits because an earlier call does.
	Digest    string
	ExpiresAt time.Time // when the approval request expires
}

// An Outcome is what [Work.Execute] returns for the calls of one turn.
type Outcome struct {
	// Messages are the tool messages with the results, in call order. Calls in Pending have none.
	Messages []lathe.Message
	Calls    []event.CallTrace // calls with a result and client calls, in call order
	Pending  []lathe.ToolCall  // calls without a result: client calls and parked calls, in call order
	// Parked reports that at least one call waits for an approval. Waiting are the parked calls: the caller passes them to Execute again
	// when the approver can answer. Execute skips those that have got a result since.
	Parked  bool
	Waiting []Call
	// Suspended reports that [RunOptions].Suspend returned true for a call: this call and those after it were not started, and are in
	// none of the lists.
	Suspended bool
	// Reason, if not "", is why the run must end. Limit is the config key of the limit that caused it; "": no limit.
	Reason lathe.Reason
	Limit  string
	// ChildUsage and ChildCost are the totals of the runs that the calls started, in tokens and US dollars.
	ChildUsage lathe.Usage
	ChildCost  float64
}

// Result returns the result of the first call that has one, in call order. ok is false if none has.
func (o *Outcome) Result() (r lathe.ToolResult, ok bool) {
	for _, m := range o.Messages {
		for _, p := range m.Parts {
			if r, ok = p.(lathe.ToolResult); ok {
				return r, true
			}
		}
	}
	return r, false
}

// Execute executes the calls of one turn in call order. If MaxParallel is above 1, consecutive calls of read-only tools are executed
// concurrently. Every call is announced by an event, and every call that is not in Outcome.Pending gets a result. Once a call is parked,
// the later ones are parked too, unless they are refused. When ctx is done, the remaining calls end with cancelled.
//
// emit must not be nil. It receives the events in order, on the goroutine of Execute; what an event announces begins after emit has
// returned.
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
			c := call{w: w, emit: emit, order: order{parkBehind: out.Parked}}
			w.begin(ctx, &c, turn, &calls[0])
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
	parkedBehind := c.Parked != nil && c.Parked.Digest == ""
	switch {
	case w.suspend == nil, c.Begun, c.Refuse != "", parkedBehind:
		return false
	case out.Parked, out.Reason != "", w.halt != "", ctx.Err() != nil: // no further call of the turn is executed
		return false
	}
	var spec *lathe.ToolSpec
	if e := w.tools.lookup(c.Name).entry; e != nil {
		spec = e.spec
	}
	return w.suspend(&c.ToolCall, spec)
}

// begin sets the fields of c. The seq of a call is its position in call order.
func (w *Work) begin(ctx context.Context, c *call, turn int, in *Call) {
	c.Call, c.turn = *in, turn
	if in.Parked != nil {
		c.seq = in.Parked.Seq
	} else {
		c.seq = w.next
		w.next++
	}
	if w.tools.registry.startRuns {
		if e := w.tools.lookup(c.Name).entry; e != nil {
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

// Called reports whether the model of this run has made any call, also before the run was resumed.
func (w *Work) Called() bool { return w.next > 0 || w.resumed }
