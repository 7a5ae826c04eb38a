package tool

import (
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// call is the state of a call in the stages. It is on the stack of the goroutine that executes the stages: nothing that outlives them, and
// nothing that is passed to other code, may point to it.
type call struct {
	Call
	w       *Work
	turn    int
	seq     int
	emit    func(event.Data)
	content string // content of the tool message

	order
	callee
	arguments
	ruling
	timing
	execution
	output
	failure
}

// order is the position of a call among concurrent calls. Execute and runTogether set it.
type order struct {
	// before is closed when the previous call is planned, planned when this one is; nil for a call that is executed alone.
	before, planned chan struct{}
	parkBehind      bool // an earlier call of the turn is parked
}

// callee is the tool of a call. resolveName sets it.
type callee struct {
	entry   *entry // nil: an unknown tool or one of the client
	client  bool
	foreign bool   // the caller of the run declared the tool
	tool    string // the registered name, or "unknown"
}

// arguments are the arguments of a call. plan sets the text, parseArguments replaces it by an object, and checkTokens sets tokens.
type arguments struct {
	args   []byte // the text from the model; after parsing, the object for the tool
	parsed bool
	repair event.Repair // "": not repaired
	tokens bool         // args contain tokens of secrets
}

// ruling is the decision of the policy and the approver: authorize and checkTokens set the verdict, approve.go the rest.
type ruling struct {
	info     *lathe.CallInfo // the argument of the policy
	verdict  lathe.Verdict
	judged   bool
	used     []lathe.ToolUse // tools used before this call, for concurrent calls
	resolved bool            // the approval is resolved
	parked   *Parked         // not nil: the call is parked
}

// timing contains the times of a call. reserve, enter and execute set it.
type timing struct {
	now      time.Time // last time read from the runner's clock
	start    time.Time // start of the tool
	deadline time.Time
	timeout  time.Duration
	latency  time.Duration
}

// execution is the state of the execution of the tool. begin sets scope, execute.go the rest.
type execution struct {
	scope    *Scope // nil: the tool starts no runs
	attempts int
	ran      bool            // the tool was called
	broke    bool            // in the last attempt the tool panicked, or returned an error without a code
	fault    bool            // the tool returned ErrGuestFault
	rc       int             // exit status of a program
	child    *lathe.ChildRun // the last run that the call started, with the usage of all
	noop     bool            // the noop executor replaces the tool by {"ok":true}
}

// output is the output of a call. A function of obtainOutput sets source and out, or data; those of showOutput reduce data and blobs to what
// the model may receive.
type output struct {
	source    source
	out       *lathe.Output // as returned
	data      []byte
	blobs     []lathe.Blob
	toolCode  lathe.Code // code of an output that is an error
	cacheKey  cacheKey
	hidden    bool // text that looks like a key was replaced
	text      bool // data is plain text: the value of a JSON string, or a truncated output
	truncated bool
	size      int // in bytes, before truncation
}

// failure is the reason why a call failed. finish and record set the code, the stage that ends the call the rest.
type failure struct {
	code     lathe.Code // "": the call succeeded
	detail   []byte     // further members of the error object, each after a comma
	limitKey string     // the config key of the limit that ended the call
	cause    string     // text for operators
	err      error      // error of the last attempt
}

// finish sets the code of a call that a stage has ended. The output of the tool is then dropped.
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

// releaseNext allows the next call to be planned.
func (c *call) releaseNext() {
	if c.planned != nil {
		close(c.planned)
	}
}
