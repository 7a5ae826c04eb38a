package tool

import (
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// call is a call on its way through the stages. It lives on the stack of the goroutine that runs the stages: nothing
// that outlives them, and nothing that is handed to foreign code, may point to it.
type call struct {
	Call
	w       *Work
	turn    int
	seq     int
	emit    func(event.Data)
	kept    *kept
	content string // what the model gets

	order
	callee
	arguments
	ruling
	timing
	execution
	output
	failure
}

// order is the place of a call among calls that run side by side.
type order struct {
	// before is closed when the call before this one is planned, planned when this one is; nil for
	// a call that runs alone.
	before, planned chan struct{}
	parkBehind      bool // a call before this one is parked
}

// callee is what the name of a call means.
type callee struct {
	entry   *entry // nil: unknown, or the client's
	client  bool
	foreign bool   // the caller of the run declared the tool
	tool    string // the registered name, or "unknown"
}

// arguments are the arguments of a call.
type arguments struct {
	args   []byte // as they came; once parsed, the object that the tool gets
	parsed bool
	repair event.Repair // empty: they were not repaired
	tokens bool         // args hold tokens of secrets
}

// ruling is what policy and approver decided.
type ruling struct {
	info     *lathe.CallInfo // what the policy got
	verdict  lathe.Verdict
	judged   bool
	used     []lathe.ToolUse // before this call, of calls that run side by side
	resolved bool            // the approval
	parked   *Parked         // set: not answered now
}

// timing is the clock of a call.
type timing struct {
	now      time.Time // of the runner's clock, when last read
	start    time.Time // when the tool was called
	deadline time.Time
	timeout  time.Duration
	latency  time.Duration
}

// execution is what happened while the tool ran.
type execution struct {
	scope    *Scope // nil: the tool starts no runs
	attempts int
	ran      bool            // tool code ran
	broke    bool            // the last attempt: the tool panicked, or does not say what went wrong
	fault    bool            // of a guest
	rc       int             // exit status of a program
	child    *lathe.ChildRun // the run that the call started
	noop     bool            // the settings replace execution by {"ok":true}
}

// output is the output of a call, reduced stage by stage to what the model may see.
type output struct {
	source    source
	out       *lathe.Output // as it came
	data      []byte
	blobs     []lathe.Blob
	toolCode  lathe.Code // of an output that is an error
	cacheKey  cacheKey
	hidden    bool // something that looks like a key was replaced
	text      bool // data is plain text: a string of JSON, unquoted, or what is left after truncation
	truncated bool
	size      int // bytes
}

// failure is why a call failed.
type failure struct {
	code     lathe.Code // set: answered with this error
	detail   []byte     // further members of the error object, each with a comma before it
	limitKey string     // the config key of the limit that ended the call
	cause    string     // for operators
	err      error      // of the last attempt of the tool
}

// kept are the values of a call that others may retain: its events, and what policies and journals get. They are allocated
// in one piece.
type kept struct {
	description

	proposed event.ToolCallProposed
	planned  event.ToolCallPlanned
	executed event.ToolCallExecuted
	result   event.ToolCallResult
}

// finish sets the code of a call that a stage ended. What the tool returned is not shown then.
func (c *call) finish(end ending) {
	if end == proceed {
		return
	}
	c.code = lathe.Code(end)
	c.data, c.blobs, c.text = nil, nil, false
}

// awaitPrevious blocks until the call before this one is planned.
func (c *call) awaitPrevious() {
	if c.before != nil {
		<-c.before
	}
}

// releaseNext lets the call after this one be planned.
func (c *call) releaseNext() {
	if c.planned != nil {
		close(c.planned)
	}
}
