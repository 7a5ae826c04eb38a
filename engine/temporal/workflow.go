package temporal

import (
	"encoding/json"
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/lathe-run/lathe"
)

// An Input is the input of the workflow of a run.
type Input struct {
	// RunID is the id of the run; "": the id of the workflow is used.
	RunID  string `json:"run_id,omitempty"`
	Target string `json:"target,omitempty"` // name of the loop: see [Options].LoopFor
	// Start is the input of a run for which the caller has not called [Workflow.Accept]; nil: Accept has stored the input. It contains the
	// text of messages, which becomes part of the workflow history: see [NewCodec].
	Start *Start `json:"start,omitempty"`
	// Continued is the state of a run that continues in a new history. The workflow sets it; callers must leave it nil.
	Continued *Continued `json:"continued,omitempty"`
}

// Start contains the conversation and the owner of a run. The fields have the meaning of those with the same names in [loop.Input] and
// [lathe.RunInfo].
type Start struct {
	Messages  []lathe.Message   `json:"messages"`
	SessionID string            `json:"session_id,omitempty"`
	Principal string            `json:"principal,omitempty"`
	Profile   string            `json:"profile,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	// Allow lists the names of the tools that the run may use; nil: all.
	Allow []string `json:"allow,omitempty"`
	// ClientTools are tools of the client. The run waits for their results, which the update [UpdateResult] supplies.
	ClientTools []*lathe.ToolSpec `json:"client_tools,omitempty"`
}

// Continued is the state of a run that a new history receives from the previous one. Only [Workflow.Run] sets and reads it.
type Continued struct {
	LastID  int64         `json:"last_id"`
	Next    *next         `json:"next,omitempty"`
	Elapsed time.Duration `json:"elapsed"`
	Settle  bool          `json:"settle,omitempty"`
	Status  Status        `json:"status"`
	Wake    bool          `json:"wake,omitempty"`
	Resume  bool          `json:"resume,omitempty"`
}

// A Result is what the workflow returns when its run has ended.
type Result struct {
	RunID       string       `json:"run_id"`
	Reason      lathe.Reason `json:"reason"`
	Status      string       `json:"status"`
	LastEventID int64        `json:"last_event_id"` // ID of the last event of the run
}

// Status is what the query [QueryStatus] returns about a run.
type Status struct {
	RunID       string       `json:"run_id"`
	Status      string       `json:"status"`            // "running", "parked", or the status of a run that has ended
	Reason      lathe.Reason `json:"reason,omitempty"`  // why the run is parked or has ended; "": it is running
	LastEventID int64        `json:"last_event_id"`     // ID of the last event of the run; events of a step in progress are not counted
	Waiting     []Waiting    `json:"waiting,omitempty"` // the calls that a parked run waits for
}

// Waiting is a call whose result or approval a parked run waits for.
type Waiting struct {
	CallID string `json:"call_id"`
	// Digest is the digest of the requested approval, which an [ApprovalAnswer] must contain; "": the call waits for the result of a
	// client's tool, or for another call.
	Digest    string    `json:"digest,omitempty"`
	ExpiresAt time.Time `json:"expires_at,omitzero"` // when the request for approval expires; zero if Digest is ""
}

// next is the step that follows.
type next struct {
	CallID string `json:"call_id,omitempty"` // "": a model call
	Tool   string `json:"tool,omitempty"`
	Once   bool   `json:"once,omitempty"` // the step may have an effect that must not be repeated
}

// A run is the state of the workflow of one run. It depends on the history alone. The workflow executes one goroutine at a time, so that no
// lock is needed.
type run struct {
	w  *Workflow
	id string
	in *Input

	// Changed by the steps, which Run executes one after the other.
	last    int64         // ID of the last event
	elapsed time.Duration // total time of the steps
	status  Status
	next    *next        // nil: the next step is not known
	calls   []remoteCall // started calls of tools on task queues, without an output
	outputs []callOutput // outputs of calls on task queues, for the next step
	settle  bool         // the previous step failed
	began   bool         // this history contains an activity

	// Set by the handlers of updates and signals. A step clears wake and resume when it starts.
	wake   bool // the run has something to do: external input was stored, or a request for approval has expired
	resume bool // a caller resumes a run that is parked with reason `interrupted`
	cancel bool
	stop   workflow.CancelFunc // cancels the step in progress
}

// Run is the workflow function. Workers call it: see [Workflow.Register]. The run id is in.RunID, or the workflow id if in.RunID is "". Run
// returns a result when the run has ended, whatever its status. If the workflow was cancelled, Run ends the run and returns a cancellation
// error with the result as details.
func (w *Workflow) Run(ctx workflow.Context, in *Input) (*Result, error) {
	r := &run{w: w, in: in, id: in.RunID, stop: func() {}}
	if r.id == "" {
		r.id = workflow.GetInfo(ctx).WorkflowExecution.ID
	}
	r.status = Status{RunID: r.id, Status: "running"}
	if c := in.Continued; c != nil {
		r.last, r.next, r.elapsed, r.settle, r.status, r.wake, r.resume = c.LastID, c.Next, c.Elapsed, c.Settle, c.Status, c.Wake, c.Resume
	}
	if err := r.handle(ctx); err != nil { // before anything blocks, so that no update is missed
		return nil, err
	}
	if in.Continued == nil {
		r.next = &next{}
		if in.Start != nil {
			if err := r.accept(ctx); err != nil {
				return nil, err
			}
		}
	}
	for {
		var err error
		switch {
		case r.over():
			return r.result(ctx)
		case r.cancel || ctx.Err() != nil:
			err = r.end(ctx)
		case len(r.calls) > 0:
			r.dispatch(ctx)
		case r.mayContinueAsNew(ctx):
			if r.awaitHandlers(ctx) {
				return nil, r.continueAsNew(ctx)
			}
		case r.status.Status == "parked" && !r.wake:
			r.wait(ctx)
		default:
			err = r.step(ctx)
		}
		if err != nil {
			return nil, err
		}
	}
}

// over reports whether the run has ended.
func (r *run) over() bool { return r.status.Status != "running" && r.status.Status != "parked" }

// result returns the result of the workflow after all update handlers have finished.
func (r *run) result(ctx workflow.Context) (*Result, error) {
	free, _ := workflow.NewDisconnectedContext(ctx)
	if err := workflow.Await(free, func() bool { return workflow.AllHandlersFinished(free) }); err != nil {
		return nil, err
	}
	out := &Result{RunID: r.id, Reason: r.status.Reason, Status: r.status.Status, LastEventID: r.last}
	if ctx.Err() != nil && r.status.Status == "cancelled" {
		return nil, temporal.NewCanceledError(out)
	}
	return out, nil
}

// accept stores the first event of a run that the caller has not accepted.
func (r *run) accept(ctx workflow.Context) error {
	ctx = workflow.WithActivityOptions(ctx, r.options(unlimited, "accept"))
	err := workflow.ExecuteActivity(ctx, acceptActivity, r.id, r.in.Target, r.in.Start).Get(ctx, nil)
	if err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// The maximum numbers of attempts of an activity.
const (
	unlimited  = 0
	oneAttempt = 1
)

// options returns the options of an activity of this package.
func (r *run) options(attempts int32, summary string) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		StartToCloseTimeout: 24 * time.Hour, // tool_timeout and run_timeout end a step earlier; heartbeats detect a lost worker
		HeartbeatTimeout:    r.w.opts.Heartbeat,
		WaitForCancellation: true,
		Summary:             summary,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute, MaximumAttempts: attempts},
	}
}

// step executes the next step in an activity. If the step may have an effect that must not be repeated, the activity has one attempt. If
// that attempt fails, the next step settles: it gives results to what was started, and may be retried.
func (r *run) step(ctx workflow.Context) error {
	in := &stepInput{RunID: r.id, Target: r.in.Target, After: r.last, Elapsed: r.elapsed, Outputs: r.outputs, Resume: r.resume,
		Settle: r.settle || len(r.outputs) > 0}
	name, summary, once := toolActivity, "", true
	if r.next != nil {
		summary, once = r.next.Tool, r.next.Once
		if r.next.CallID == "" {
			name = modelActivity
		}
	}
	once = once && !in.Settle
	attempts := int32(unlimited)
	if once {
		attempts = oneAttempt
	}
	r.wake, r.resume = false, false
	stoppable, stop := workflow.WithCancel(ctx)
	defer stop()
	r.stop = stop
	var out stepOutput
	if err := r.execute(stoppable, name, r.options(attempts, summary), in, &out); err != nil {
		r.resume = in.Resume // for the step that repeats this one
		switch {
		case r.cancel || ctx.Err() != nil:
			return nil
		case once:
			r.settle, r.wake = true, true
			return nil
		}
		return err
	}
	r.outputs, r.settle = nil, false
	r.apply(&out)
	return nil
}

// execute executes one activity, and adds its time to elapsed.
func (r *run) execute(ctx workflow.Context, name string, opts workflow.ActivityOptions, in *stepInput, out *stepOutput) error {
	ctx = workflow.WithActivityOptions(ctx, opts)
	r.began = true
	began := workflow.Now(ctx)
	err := workflow.ExecuteActivity(ctx, name, in).Get(ctx, out)
	r.elapsed += workflow.Now(ctx).Sub(began)
	return err
}

// apply updates the state of the run from the output of a step.
func (r *run) apply(out *stepOutput) {
	r.last, r.next, r.calls = out.LastID, out.Next, out.Calls
	r.status.LastEventID, r.status.Reason, r.status.Status, r.status.Waiting = out.LastID, out.Reason, "running", out.Waiting
	if out.Status != "" {
		r.status.Status = out.Status
	}
}

// wait blocks until external input is stored, or until the first request for approval expires.
func (r *run) wait(ctx workflow.Context) {
	input := func() bool { return r.wake || r.cancel }
	var until time.Time
	for _, w := range r.status.Waiting {
		if !w.ExpiresAt.IsZero() && (until.IsZero() || w.ExpiresAt.Before(until)) {
			until = w.ExpiresAt
		}
	}
	if until.IsZero() {
		_ = workflow.Await(ctx, input) // fails only if the workflow is cancelled
		return
	}
	// The timer is at least 1 s, because the clock of a worker may be behind that of the store.
	ok, err := workflow.AwaitWithTimeout(ctx, max(until.Sub(workflow.Now(ctx)), time.Second), input)
	if err == nil && !ok {
		r.wake = true
	}
}

// end ends the run after the workflow or the run was cancelled. A further cancellation does not stop it.
func (r *run) end(ctx workflow.Context) error {
	r.stop = func() {}
	free, _ := workflow.NewDisconnectedContext(ctx)
	var out stepOutput
	if err := r.execute(free, toolActivity, r.options(unlimited, "cancel"), &stepInput{RunID: r.id, Target: r.in.Target, Cancel: true}, &out); err != nil {
		return err
	}
	r.apply(&out)
	return nil
}

// mayContinueAsNew reports whether the history is long enough to continue in a new one, and nothing in memory would be lost.
func (r *run) mayContinueAsNew(ctx workflow.Context) bool {
	return r.began && len(r.outputs) == 0 && workflow.GetInfo(ctx).GetContinueAsNewSuggested()
}

// awaitHandlers waits until all update handlers have finished. It returns false if the run or the workflow is cancelled in the meantime: the
// run must then end in this history, because the cancellation is not passed to the next one.
func (r *run) awaitHandlers(ctx workflow.Context) bool {
	err := workflow.Await(ctx, func() bool { return r.cancel || workflow.AllHandlersFinished(ctx) })
	return err == nil && !r.cancel
}

// continueAsNew continues the run in a new history. No update is lost: all handlers have finished, and their effect is in the store.
func (r *run) continueAsNew(ctx workflow.Context) error {
	woken := workflow.GetSignalChannel(ctx, SignalWake)
	for woken.ReceiveAsync(nil) {
		r.wake = true
	}
	return workflow.NewContinueAsNewError(ctx, Name, &Input{RunID: r.id, Target: r.in.Target, Continued: &Continued{
		LastID: r.last, Next: r.next, Elapsed: r.elapsed, Settle: r.settle, Status: r.status, Wake: r.wake, Resume: r.resume}})
}

// dispatch executes the calls of tools on task queues, and stores their outputs for the next step.
func (r *run) dispatch(ctx workflow.Context) {
	stoppable, stop := workflow.WithCancel(ctx)
	defer stop()
	r.stop = stop
	began := workflow.Now(ctx)
	futures := make([]workflow.Future, len(r.calls))
	for i, c := range r.calls {
		o := workflow.ActivityOptions{TaskQueue: c.Queue, StartToCloseTimeout: c.Timeout, ScheduleToStartTimeout: c.Timeout,
			HeartbeatTimeout: c.Heartbeat, WaitForCancellation: true, Summary: c.Input.Tool,
			RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumAttempts: c.Attempts}}
		futures[i] = workflow.ExecuteActivity(workflow.WithActivityOptions(stoppable, o), c.Activity, &c.Input)
	}
	for i, f := range futures {
		out := callOutput{CallID: r.calls[i].Input.CallID}
		var got CallResult
		if err := f.Get(stoppable, &got); err != nil {
			out.fail(err)
		} else {
			out.CallResult = got
		}
		r.outputs = append(r.outputs, out)
	}
	r.elapsed += workflow.Now(ctx).Sub(began)
	r.calls, r.wake = nil, true
}

// fail records the failure of a call on a task queue. Its outcome is known if the tool returned an error, or if no worker started the call.
func (o *callOutput) fail(err error) {
	var failed *temporal.ApplicationError
	var late *temporal.TimeoutError
	o.IsError = true
	switch {
	case errors.As(err, &failed):
		o.Code = lathe.CodeExecutionFailed
		o.Data, _ = json.Marshal(failed.Message()) // a string
	case errors.As(err, &late) && late.TimeoutType() == enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START:
		o.Code = lathe.CodeUnavailable
	default: // the worker is lost, or the call took too long
		o.Code, o.Unknown = lathe.CodeTimeout, true
	}
}

// alreadyStarted reports whether err means that the workflow of a run was started before.
func alreadyStarted(err error) bool {
	var started *serviceerror.WorkflowExecutionAlreadyStarted
	return errors.As(err, &started)
}
