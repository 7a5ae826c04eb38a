package temporal

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/loop"
)

// stepInput is the input of the activities lathe.model and lathe.tool. Members are added, never renamed, because this version also executes
// workflows that an older version started.
type stepInput struct {
	RunID   string        `json:"run_id"`
	Target  string        `json:"target,omitempty"`
	After   int64         `json:"after"`
	Elapsed time.Duration `json:"elapsed,omitempty"`
	Settle  bool          `json:"settle,omitempty"`
	Resume  bool          `json:"resume,omitempty"`
	Cancel  bool          `json:"cancel,omitempty"`
	Outputs []callOutput  `json:"outputs,omitempty"`
}

// stepOutput is the output of the activities lathe.model and lathe.tool.
type stepOutput struct {
	LastID  int64        `json:"last_id"`
	Reason  lathe.Reason `json:"reason,omitempty"`
	Status  string       `json:"status,omitempty"` // "": the run is suspended
	Next    *next        `json:"next,omitempty"`
	Waiting []Waiting    `json:"waiting,omitempty"`
	Calls   []remoteCall `json:"calls,omitempty"`
}

// accept implements the activity lathe.accept.
func (w *Workflow) accept(ctx context.Context, runID, target string, s *Start) error {
	_, err := w.Accept(ctx, &loop.Input{Run: lathe.RunInfo{RunID: runID, SessionID: s.SessionID, Principal: s.Principal, Profile: s.Profile, Labels: s.Labels},
		Target: target, Messages: s.Messages, Allow: s.Allow, ClientTools: s.ClientTools})
	return failure(err)
}

// step implements the activities lathe.model and lathe.tool.
func (w *Workflow) step(ctx context.Context, in *stepInput) (*stepOutput, error) {
	l, release, err := w.loopFor(in.Target)
	if err != nil { // retryable: another worker may have the target, or this worker after a restart
		code := string(lathe.CodeOf(err))
		return nil, temporal.NewApplicationError("the step has no loop: "+code, code)
	}
	defer release()
	d := newDispatcher(in.RunID, in.Outputs)
	own, leave := leaving(ctx)
	defer leave(nil)
	defer context.AfterFunc(w.left, func() { leave(lathe.ErrLeft) })()
	d.leave = leave
	defer w.heartbeat(ctx)()
	info := activity.GetInfo(ctx)
	opts := &engine.StepOptions{After: in.After, Settle: in.Settle, Resume: in.Resume, Cancel: in.Cancel, Sinks: w.opts.Sinks,
		Elapsed: in.Elapsed + max(info.StartedTime.Sub(info.ScheduledTime), 0)}
	if info.Attempt > 1 {
		opts.After = -1 // also an attempt without events must be recorded in the log, as RunResumed
	}
	s, err := w.opts.Engine.Step(context.WithValue(own, dispatcherKey{}, d), l, in.RunID, opts)
	if err == nil {
		return outputOf(s), nil
	}
	calls := d.dispatched()
	isDispatch := errors.Is(err, lathe.ErrLeft) && len(calls) > 0 && s != nil
	isDeleted := in.Cancel && lathe.CodeOf(err) == lathe.CodeNotFound
	switch {
	case isDispatch:
		return &stepOutput{LastID: s.LastID, Calls: calls}, nil
	case isDeleted:
		return &stepOutput{LastID: in.After, Reason: lathe.ReasonCancelled, Status: lathe.ReasonCancelled.Status()}, nil
	case temporal.IsCanceledError(context.Cause(ctx)):
		return nil, ctx.Err()
	}
	return nil, failure(err)
}

// outputOf returns the output of an activity for the result of its step.
func outputOf(s *engine.Step) *stepOutput {
	out := &stepOutput{LastID: s.LastID, Reason: s.Reason, Status: s.Status}
	if s.Next != nil {
		out.Next = &next{CallID: s.Next.CallID, Tool: s.Next.Tool, Once: s.Next.Writes()}
	}
	for _, c := range s.Waiting {
		out.Waiting = append(out.Waiting, Waiting(c))
	}
	return out
}

// leaving returns a context for a step. If the workflow cancels the activity, the context is cancelled, and the run ends `cancelled`. If
// the activity is lost for another reason, such as the stop of the worker, the cause is [lathe.ErrLeft]: another worker continues the run.
func leaving(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	own, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if temporal.IsCanceledError(context.Cause(ctx)) {
			cancel(context.Canceled)
		} else {
			cancel(lathe.ErrLeft)
		}
	})
	return own, func(cause error) {
		stop()
		cancel(cause)
	}
}

// heartbeat records a heartbeat of the activity three times per heartbeat timeout, until the returned function is called.
func (w *Workflow) heartbeat(ctx context.Context) (stop func()) {
	quit, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		tick := time.Tick(w.opts.Heartbeat / 3)
		for {
			activity.RecordHeartbeat(ctx)
			select {
			case <-tick:
			case <-quit:
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-over
	}
}

// failure returns the error of an activity: its type is the code, and it has no content. An activity is not retried if the store does not
// contain its run or its input is not valid.
func failure(err error) error {
	if err == nil {
		return nil
	}
	code := lathe.CodeOf(err)
	message := "the step failed: " + string(code)
	if errors.Is(err, lathe.ErrLeft) {
		message = "the step was left: " + string(code)
	}
	switch code {
	case lathe.CodeNotFound, lathe.CodeInvalidRequest, lathe.CodeApprovalExpired:
		return temporal.NewNonRetryableApplicationError(message, string(code), nil)
	default:
		return temporal.NewApplicationError(message, string(code))
	}
}

// jsonOrNull returns the JSON value, or null if it is empty.
func jsonOrNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}
