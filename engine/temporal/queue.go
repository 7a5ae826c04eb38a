package temporal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/tool"
)

// QueueOptions are the options of [NewQueueTool]. TaskQueue is required.
type QueueOptions struct {
	TaskQueue string // the Temporal task queue whose workers execute the calls
	// Activity is the type of the Temporal activity; "": the name of the tool. The activity receives a [CallInput] and returns a
	// [CallResult].
	Activity string
	// Heartbeat is the maximum time between two heartbeats of the activity. After it, the call counts as lost. 0: the activity sends no
	// heartbeats, and a lost worker is detected only at the timeout of the call.
	Heartbeat time.Duration
	// Attempts is the maximum number of attempts of a call of a tool that is read-only or idempotent; 0: 3. A call of a tool that writes
	// has only one attempt.
	Attempts int32
}

// A CallInput is the input of the activity that executes a call of a [NewQueueTool]. It is encoded as JSON.
type CallInput struct {
	RunID     string          `json:"run_id"`
	SessionID string          `json:"session_id,omitempty"`
	CallID    string          `json:"call_id"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Principal string          `json:"principal,omitempty"`
	// IdempotencyKey is the same for every attempt of the call.
	IdempotencyKey string `json:"idempotency_key"`
}

// A CallResult is the output of the activity that executes a call of a [NewQueueTool]. It is encoded as JSON. If the activity itself fails,
// the call fails: the model receives the error message as far as the allowlist of the tool permits.
type CallResult struct {
	Data    json.RawMessage `json:"data"` // the output as JSON or, if IsError, the error message as a JSON string
	IsError bool            `json:"is_error,omitempty"`
	Code    lathe.Code      `json:"code,omitempty"` // the error code, if IsError; "": execution_failed
}

// A remoteCall is a call that the workflow dispatches to a task queue.
type remoteCall struct {
	Queue     string        `json:"queue"`
	Activity  string        `json:"activity"`
	Timeout   time.Duration `json:"timeout"`
	Heartbeat time.Duration `json:"heartbeat,omitempty"`
	Attempts  int32         `json:"attempts"`
	Input     CallInput     `json:"input"`
}

// callOutput is the outcome of a call that the workflow dispatched.
type callOutput struct {
	CallResult
	CallID  string `json:"call_id"`
	Unknown bool   `json:"unknown,omitempty"` // no attempt has returned, but one may have been executed
}

// A queueTool is a tool whose calls are activities on a task queue. Call ends the step; the workflow executes the activity, and the next
// step receives its output.
type queueTool struct {
	spec *lathe.ToolSpec
	opts QueueOptions
}

var _ tool.OutcomeChecker = (*queueTool)(nil)

// NewQueueTool returns a tool whose calls are Temporal activities on a task queue. The runner processes the calls like those of any tool.
// The tool can be called only in runs of a [Workflow]. In other runs, including those that a tool call of such a run starts, its calls are
// refused with the code policy_denied. spec and opts are copied. The error has the code invalid_config if the name of the tool or the task
// queue is missing, or a number is negative.
func NewQueueTool(spec *lathe.ToolSpec, opts *QueueOptions) (lathe.Tool, error) {
	var err error
	switch {
	case spec == nil || spec.Name == "":
		err = errors.New("the tool has no name")
	case opts == nil || opts.TaskQueue == "":
		err = fmt.Errorf("the tool %s has no task queue", spec.Name)
	case opts.Heartbeat < 0 || opts.Attempts < 0:
		err = fmt.Errorf("the tool %s has a negative heartbeat or number of attempts", spec.Name)
	}
	if err != nil {
		return nil, lathe.CodeInvalidConfig.Wrap("temporal: new queue tool", err)
	}
	own := *spec
	if own.Origin == "" {
		own.Origin = "temporal"
	}
	return &queueTool{spec: &own, opts: *opts}, nil
}

// Spec implements [lathe.Tool].
func (t *queueTool) Spec() *lathe.ToolSpec { return t.spec }

// Call implements [lathe.Tool]. If the workflow has executed the activity of the call, Call returns the output of the activity. Otherwise
// it makes the workflow dispatch the activity.
func (t *queueTool) Call(ctx context.Context, args json.RawMessage) (*lathe.Output, error) {
	meta := lathe.CallMetaFrom(ctx)
	d := dispatcherOf(ctx, meta)
	if d == nil {
		// the code unavailable would open the circuit of the tool for runs in Temporal, too
		return nil, tool.Fail(lathe.CodePolicyDenied, "The tool can be called in detached runs only, and not by the agents of a run.")
	}
	if out, ok := d.outputs[meta.CallID]; ok {
		if out.Unknown {
			return nil, lathe.CodeTimeout.Errorf("temporal: call a tool", "no attempt has returned")
		}
		return out.output(), nil
	}
	call := remoteCall{Queue: t.opts.TaskQueue, Activity: cmp.Or(t.opts.Activity, t.spec.Name), Heartbeat: t.opts.Heartbeat, Attempts: 1, Timeout: 30 * time.Second,
		Input: CallInput{RunID: meta.RunID, SessionID: meta.SessionID, CallID: meta.CallID, Tool: t.spec.Name, Arguments: args, Principal: meta.Principal, IdempotencyKey: meta.IdempotencyKey}}
	if t.spec.Effect == lathe.ReadOnly || t.spec.Effect == lathe.Idempotent {
		call.Attempts = cmp.Or(t.opts.Attempts, 3)
	}
	if until, ok := ctx.Deadline(); ok {
		call.Timeout = max(time.Until(until).Round(time.Millisecond), time.Second)
	}
	d.dispatch(call)
	<-ctx.Done()
	return nil, ctx.Err()
}

// CheckOutcome implements [tool.OutcomeChecker]. If a call was started and the workflow has no outcome for it, it was never dispatched,
// because the step that dispatches it has not finished.
func (t *queueTool) CheckOutcome(ctx context.Context, call *lathe.CallMeta) (tool.Recovery, error) {
	d := dispatcherOf(ctx, call)
	if d == nil {
		return tool.Recovery{}, nil
	}
	out, ok := d.outputs[call.CallID]
	switch {
	case !ok:
		return tool.Recovery{Outcome: tool.RecoveryNotRun}, nil
	case out.Unknown:
		return tool.Recovery{}, nil
	}
	return tool.Recovery{Outcome: tool.RecoveryDone, Output: out.output()}, nil
}

func (o *callOutput) output() *lathe.Output {
	return &lathe.Output{Data: jsonOrNull(o.Data), IsError: o.IsError, Code: o.Code}
}

type dispatcherKey struct{}

// A dispatcher collects the calls that a step dispatches, and contains the outcomes of those of the previous step.
type dispatcher struct {
	run     string                 // id of the run of the step
	outputs map[string]*callOutput // by call id
	leave   context.CancelCauseFunc

	mu    sync.Mutex
	calls []remoteCall
}

// dispatcherOf returns the dispatcher of the step to which the call belongs. It returns nil if a workflow does not execute the run of the
// call: the run is executed by this process, or is that of an agent.
func dispatcherOf(ctx context.Context, meta *lathe.CallMeta) *dispatcher {
	d, _ := ctx.Value(dispatcherKey{}).(*dispatcher)
	if d == nil || meta == nil || meta.RunID != d.run {
		return nil
	}
	return d
}

func newDispatcher(run string, outputs []callOutput) *dispatcher {
	d := &dispatcher{run: run, outputs: map[string]*callOutput{}}
	for i := range outputs {
		d.outputs[outputs[i].CallID] = &outputs[i]
	}
	return d
}

// dispatch adds a call and cancels the step with the cause [lathe.ErrLeft].
func (d *dispatcher) dispatch(c remoteCall) {
	d.mu.Lock()
	d.calls = append(d.calls, c)
	d.mu.Unlock()
	d.leave(lathe.ErrLeft)
}

func (d *dispatcher) dispatched() []remoteCall {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls
}
