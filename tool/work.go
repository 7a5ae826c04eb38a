package tool

import (
	"context"
	"time"

	"github.com/lathe-run/lathe"
)

// Work is the part of one run that calls tools. It is used by one goroutine at a time.
type Work struct {
	r        *Runner
	info     *lathe.RunInfo
	settings lathe.Settings
	limits   lathe.Limits
	tools    *registry
	allow    map[string]bool // nil: all
	client   map[string]*lathe.ToolSpec
	handOver bool     // unknown names are the client's
	surface  *surface // what is advertised, once it was asked for
	withheld []lathe.WithheldTool

	ids  ids
	next int // seq of the next call
	// resumed is set where calls were answered before.
	resumed bool
	repeat  repeats
	ledger  ledger
	found   foundKeys
	used    []lathe.ToolUse
	usage   lathe.Usage // of the run's model calls, as the loop said last
	cost    float64
	// unknown counts calls to unknown tools in a row.
	unknown int
	// halt, when set, answers every further call: the run is over.
	halt lathe.Code
}

// A Call is a call of a model on its way into the runner.
type Call struct {
	lathe.ToolCall
	// Refuse, when set, is the code with which the call is answered: it is planned and nothing else is done.
	Refuse lathe.Code
	// Parked, when set, says that an earlier Execute planned the call and parked it.
	Parked *Parked
	// Begun says that an earlier process may have called the tool, and that nobody knows what came of
	// it. A tool that may run again does, with the same idempotency key. Another is asked where it is
	// a [lathe.Verifier], and else the call is answered `interrupted`. It goes with Parked.
	Begun bool
	// Answer, when set, is what the client that executed the call says came of it. It goes with Parked.
	Answer *lathe.Output
}

// Parked is what has to be kept of a call that waits for an approval.
type Parked struct {
	Seq int
	// Digest is that of the approval that was asked for, "" when the call waits only because one before it does.
	Digest    string
	ExpiresAt time.Time
}

// An Outcome is what became of the calls of one turn.
type Outcome struct {
	// Messages answer the calls, one tool message each, in call order; those that are Pending have none.
	Messages []lathe.Message
	Calls    []lathe.CallTrace // of answered calls and of those of the client, in call order
	Pending  []lathe.ToolCall  // those of the client and those that are parked, in call order
	// Parked says that an approval is pending. Waiting are the parked calls: give them to Execute
	// again when the approver can answer. Those that were answered meanwhile are passed over.
	Parked  bool
	Waiting []Call
	// Reason, when set, is why the run must end, and Limit the config key of the limit behind it.
	Reason lathe.Reason
	Limit  string
	// ChildUsage and ChildCost are what runs that the calls started have spent on model calls.
	ChildUsage lathe.Usage
	ChildCost  float64
}

// call is a call on its way through the stages. It lives on the stack of the goroutine that carries
// it: nothing that outlives the stages, and nothing that is handed to foreign code, may point to it.
type call struct {
	Call
	turn  int
	seq   int
	emit  func(lathe.EventData)
	lane  *lane
	facts *facts
	// before is closed when the call before this one is planned, planned when this one is; nil for
	// a call that runs alone.
	before, planned chan struct{}
	hold            bool // a call before this one is parked

	entry   *entry // nil: unknown, or the client's
	client  bool
	foreign bool   // the caller of the run declared the tool
	tool    string // the registered name, or "unknown"
	args    []byte // as they came; once parsed, the object that the tool gets
	checked bool   // args are known to be an object within the limits on JSON, before they are parsed
	parsed  bool
	verdict lathe.Verdict
	judged  bool
	repair  bool

	now      time.Time // of the runner's clock, when last looked at
	start    time.Time // when the tool was called
	deadline time.Time
	timeout  time.Duration
	latency  time.Duration

	attempts  int             // of the tool
	broke     bool            // the last attempt: the tool panicked, or does not say what went wrong
	used      []lathe.ToolUse // before this call, of calls that run side by side
	answered  bool            // by a person in place of the tool
	verified  bool            // the tool knows what came of the call that an earlier process began
	tokens    bool            // args hold tokens of secrets
	found     bool            // something looked like a key
	out       *lathe.Output
	data      []byte // of the output, as far as it may be shown
	blobs     []lathe.Blob
	toolCode  lathe.Code // of an output that is an error
	cacheKey  cacheKey
	ran       bool // tool code ran
	cached    bool
	noop      bool
	fault     bool // of a guest
	rc        int
	text      bool // data is plain text: a string of JSON, unquoted, or what is left after truncation
	truncated bool
	size      int // bytes of the output

	resolved bool            // the approval
	parked   *Parked         // set: not answered now
	cause    string          // why the call failed, for operators
	child    *lathe.ChildRun // the run that the call started
	scope    *Scope          // nil: the tool starts no runs
	code     lathe.Code      // set: answered with this error
	detail   []byte          // further members of the error object, each with a comma before it
	limitKey string
	content  string
}

// facts are the events of a call, which others may keep. They are made in one piece.
type facts struct {
	proposed lathe.ToolCallProposed
	planned  lathe.ToolCallPlanned
	executed lathe.ToolCallExecuted
	result   lathe.ToolCallResult
}

// Execute carries the calls of one turn to their end, in call order; with MaxParallel above 1,
// neighbouring calls to tools that only read run side by side. Every call is planned and answered,
// but for those that are Pending. Once ctx is done, what has not run is answered `cancelled`.
//
// emit, which must not be nil, is called on the goroutine of Execute, in the order of the facts, before what they announce.
// Once a call is parked, the calls after it wait too, unless they are refused.
func (w *Work) Execute(ctx context.Context, turn int, calls []Call, emit func(lathe.EventData)) Outcome {
	s := newSettling(len(calls))
	l := w.r.takeLane()
	for len(calls) > 0 {
		if w.answered(&calls[0]) {
			calls = calls[1:]
			continue
		}
		n := w.sideBySide(calls)
		if n > 1 {
			w.runTogether(ctx, turn, calls[:n], emit, &s)
		} else {
			c := call{emit: emit, lane: l, detail: l.detail[:0]}
			w.begin(ctx, &c, turn, &calls[0], s.nextFacts(), s.out.Parked)
			w.runCall(ctx, &c)
			w.settle(&c, &s)
			l.detail = c.detail
		}
		calls = calls[n:]
	}
	w.r.giveBack(l) // not deferred: what panicked in the caller's code is not used again
	return s.out
}

// begin makes c ready to run. The seq of a call is its place in call order.
func (w *Work) begin(ctx context.Context, c *call, turn int, in *Call, f *facts, hold bool) {
	c.Call, c.turn, c.hold, c.facts = *in, turn, hold, f
	if in.Parked != nil {
		c.seq = in.Parked.Seq
	} else {
		c.seq = w.next
		w.next++
	}
	if w.tools.startRuns {
		if e, _, _ := w.lookup(c.Name); e != nil {
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

// settling collects the outcome of a turn.
type settling struct {
	out   Outcome
	parts []lathe.Part // of all messages
	facts []facts      // of the calls that have not begun
}

func (s *settling) nextFacts() *facts {
	f := &s.facts[0]
	s.facts = s.facts[1:]
	return f
}

// newSettling makes room for n calls, in one piece for the usual one.
func newSettling(n int) (s settling) {
	if n == 1 {
		room := new(struct {
			facts    [1]facts
			messages [1]lathe.Message
			calls    [1]lathe.CallTrace
			parts    [1]lathe.Part
		})
		s.facts, s.out.Messages, s.out.Calls, s.parts = room.facts[:], room.messages[:0], room.calls[:0], room.parts[:0]
		return s
	}
	s.facts = make([]facts, n)
	s.out.Messages, s.out.Calls, s.parts = make([]lathe.Message, 0, n), make([]lathe.CallTrace, 0, n), make([]lathe.Part, 0, n)
	return s
}

// settle takes over what became of a call. Calls are settled in call order.
func (w *Work) settle(c *call, s *settling) {
	out := &s.out
	if c.parked != nil {
		w.ids.park(c.ID)
		out.Parked = true
		out.Pending = append(out.Pending, c.ToolCall)
		out.Waiting = append(out.Waiting, Call{ToolCall: c.ToolCall, Parked: c.parked})
		return
	}
	out.Calls = append(out.Calls, lathe.CallTrace{ID: c.ID, Tool: c.tool, Seq: c.seq, ArgsBytes: len(c.Arguments),
		OK: c.code == "" && (!c.client || c.Answer != nil), Code: c.code, Executed: c.ran, Repaired: c.repair, LatencyMS: c.latency.Milliseconds()})
	w.noteUse(c)
	w.noteChild(c, out)
	if c.client && c.code == "" && c.Answer == nil {
		w.ids.park(c.ID) // it may come back refused, in a run that does not wait for the client
		out.Pending = append(out.Pending, c.ToolCall)
		return
	}
	s.parts = append(s.parts, lathe.ToolResult{CallID: c.ID, Name: c.Name, Content: c.content, Blobs: c.blobs,
		IsError: c.code != "", Code: c.code})
	n := len(s.parts)
	out.Messages = append(out.Messages, lathe.Message{Role: lathe.RoleTool, Parts: s.parts[n-1 : n : n]})
	w.ledger.add(c)
	w.judgeLoop(c, out)
}

// judgeLoop says whether the run must end because of this call.
func (w *Work) judgeLoop(c *call, out *Outcome) {
	if c.fault {
		w.stop(out, lathe.ReasonGuestFault, "", lathe.CodeCancelled)
	}
	if c.seq >= w.limits.MaxToolCalls {
		w.stop(out, lathe.ReasonMaxToolCalls, keyMaxToolCalls, "")
	}
	switch {
	case c.Refuse != "" || c.ParseError != "":
		return
	case c.code == lathe.CodeUnknownTool && c.entry == nil:
		w.unknown++
		if w.settings.StrictUnknownTool {
			w.stop(out, lathe.ReasonUnknownTool, "", lathe.CodeCancelled)
		} else if w.unknown >= w.limits.MaxUnknownTools {
			w.stop(out, lathe.ReasonToolLoop, "max_unknown_tools", lathe.CodeToolCallLimit)
		}
		return
	}
	w.unknown = 0
	if w.repeat.add(c) >= w.limits.MaxRepeatedCalls {
		w.stop(out, lathe.ReasonToolLoop, "max_repeated_calls", lathe.CodeToolCallLimit)
	}
}

// stop ends the run; the first reason stands.
func (w *Work) stop(out *Outcome, reason lathe.Reason, limit string, halt lathe.Code) {
	if out.Reason == "" {
		out.Reason, out.Limit = reason, limit
	}
	if w.halt == "" {
		w.halt = halt
	}
}

// Called reports whether the model asked for any call, in the run that is resumed or continued included.
func (w *Work) Called() bool { return w.next > 0 || w.resumed }

// end ends the call with a code. What the tool returned is not shown then.
func (c *call) end(code lathe.Code) bool {
	c.code = callCode(code)
	c.data, c.blobs, c.text = nil, nil, false
	return true
}

// await waits until the call before this one is planned.
func (c *call) await() {
	if c.before != nil {
		<-c.before
	}
}

// pass lets the call after this one be planned.
func (c *call) pass() {
	if c.planned != nil {
		close(c.planned)
	}
}
