package temporal

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/store"
)

// The names of the updates, the query and the signal of the workflow. UpdateApproval and UpdateResult are completed when their input is
// stored, UpdateCancel and UpdateResume at once. An update for which the run does not wait is rejected with an application error of type
// "not_waiting", and an answer to a request that has expired with one of type "approval_expired".
const (
	UpdateApproval = "approval" // answers a request for approval; the argument is an [ApprovalAnswer]
	UpdateResult   = "result"   // supplies the result of a client's tool; the argument is a [ClientResult]
	UpdateCancel   = "cancel"   // ends the run with the reason `cancelled` unless it has already ended; no argument; may be repeated
	UpdateResume   = "resume"   // resumes a run that is parked with reason `interrupted`; no argument
	QueryStatus    = "status"   // returns the [Status] of the run
	// SignalWake reports to the workflow that another process has stored external input of the run.
	SignalWake = "wake"
)

// An ApprovalAnswer answers a request for approval. Only the first answer to a request counts.
type ApprovalAnswer struct {
	CallID string `json:"call_id"`
	Digest string `json:"digest"` // digest of the request, from the [Status] of the run; it covers the arguments that were approved
	approval.Answer
}

// A ClientResult is the result of a client's tool. Data is JSON.
type ClientResult struct {
	CallID  string          `json:"call_id"`
	Data    json.RawMessage `json:"data"`
	IsError bool            `json:"is_error,omitempty"`
}

// The types of the errors with which updates are rejected.
const (
	notWaiting = "not_waiting" // the run does not wait for this input, or no longer does
	expired    = string(lathe.CodeApprovalExpired)
)

// handle registers the handlers of updates, queries and signals.
func (r *run) handle(ctx workflow.Context) error {
	r.listen(ctx)
	return errors.Join(
		workflow.SetQueryHandler(ctx, QueryStatus, func() (Status, error) { return r.status, nil }),
		workflow.SetUpdateHandlerWithOptions(ctx, UpdateApproval,
			func(ctx workflow.Context, a ApprovalAnswer) error { return r.store(ctx, &external{Approval: &a}) },
			workflow.UpdateHandlerOptions{Validator: func(ctx workflow.Context, a ApprovalAnswer) error { return r.mayAnswer(ctx, a.CallID, a.Digest) }}),
		workflow.SetUpdateHandlerWithOptions(ctx, UpdateResult,
			func(ctx workflow.Context, c ClientResult) error { return r.store(ctx, &external{Result: &c}) },
			workflow.UpdateHandlerOptions{Validator: func(ctx workflow.Context, c ClientResult) error { return r.mayAnswer(ctx, c.CallID, "") }}),
		workflow.SetUpdateHandler(ctx, UpdateCancel, func(workflow.Context) error {
			r.cancel = true
			r.stop()
			return nil
		}),
		workflow.SetUpdateHandlerWithOptions(ctx, UpdateResume,
			func(workflow.Context) error {
				r.wake, r.resume = true, true
				return nil
			},
			workflow.UpdateHandlerOptions{Validator: func() error {
				if r.status.Status != "parked" || r.status.Reason != lathe.ReasonInterrupted {
					return temporal.NewApplicationError("the run does not wait for this: it is "+r.status.Status, notWaiting)
				}
				return nil
			}}))
}

// listen sets wake when SignalWake arrives.
func (r *run) listen(ctx workflow.Context) {
	workflow.Go(ctx, func(ctx workflow.Context) {
		for {
			workflow.GetSignalChannel(ctx, SignalWake).Receive(ctx, nil)
			if ctx.Err() != nil {
				return
			}
			r.wake = true
		}
	})
}

// mayAnswer returns an error for an answer that the run does not wait for. digest is "" for the result of a client's tool.
func (r *run) mayAnswer(ctx workflow.Context, callID, digest string) error {
	i := slices.IndexFunc(r.status.Waiting, func(w Waiting) bool { return w.CallID == callID })
	if i < 0 {
		return temporal.NewApplicationError("the run does not wait for this call", notWaiting)
	}
	switch w := &r.status.Waiting[i]; {
	case w.Digest != digest:
		return temporal.NewApplicationError("the call waits for another answer: its digest differs", notWaiting)
	case !w.ExpiresAt.IsZero() && !workflow.Now(ctx).Before(w.ExpiresAt):
		return temporal.NewApplicationError("the request for approval has expired", expired)
	}
	return nil
}

// external is external input of a run. The activity lathe.input stores it.
type external struct {
	RunID    string          `json:"run_id"`
	Approval *ApprovalAnswer `json:"approval,omitempty"`
	Result   *ClientResult   `json:"result,omitempty"`
}

// store stores external input and wakes the run.
func (r *run) store(ctx workflow.Context, in *external) error {
	in.RunID = r.id
	ctx = workflow.WithActivityOptions(ctx, r.options(unlimited, "store external input"))
	if err := workflow.ExecuteActivity(ctx, inputActivity, in).Get(ctx, nil); err != nil {
		return err
	}
	r.wake = true
	return nil
}

// input implements the activity lathe.input. It may be repeated: only the first input of a call counts, and to repeat the same input is no
// error.
func (w *Workflow) input(ctx context.Context, in *external) error {
	defer w.heartbeat(ctx)()
	var err error
	if in.Approval != nil {
		err = w.answer(ctx, in.RunID, in.Approval)
	} else {
		err = w.putResult(ctx, in.RunID, in.Result)
	}
	if lathe.CodeOf(err) == lathe.CodeConflict {
		return temporal.NewNonRetryableApplicationError("the call has another answer", string(lathe.CodeConflict), nil)
	}
	return failure(err)
}

// answer stores the answer to a request for approval.
func (w *Workflow) answer(ctx context.Context, runID string, a *ApprovalAnswer) error {
	q := w.opts.Approvals
	if q == nil {
		return lathe.CodeInvalidRequest.Errorf("temporal: answer", "no approvals are configured")
	}
	s, err := w.opts.Engine.State(ctx, runID)
	if err != nil {
		return err
	}
	for _, o := range s.Open {
		if o.ID == a.CallID && o.Asked && o.Digest == a.Digest {
			q.Await(approval.RequestOf(s, &o))
			return q.Answer(ctx, a.Digest, a.Answer)
		}
	}
	return w.answered(ctx, runID, a)
}

// answered returns nil if the store has the same answer and the run has used it already, because an earlier attempt of the activity was
// lost after it had stored the answer.
func (w *Workflow) answered(ctx context.Context, runID string, a *ApprovalAnswer) error {
	var kept []store.Signal
	if signals, ok := w.opts.Store.(store.SignalStore); ok {
		var err error
		if kept, err = signals.Signals(ctx, runID); err != nil {
			return err
		}
	}
	for i := range kept {
		digest, used, ok := approval.DecodeSignal(&kept[i])
		if !ok || digest != a.Digest || kept[i].Key != a.CallID {
			continue
		}
		sameReason := a.ReasonCode == "" || a.ReasonCode == used.ReasonCode
		sameContent := string(used.Arguments) == string(a.Arguments) && string(used.Result) == string(a.Result)
		if used.Verb == a.Verb && used.By == a.By && used.Scope == a.Scope && sameReason && sameContent {
			return nil
		}
		return lathe.CodeConflict.Errorf("temporal: answer", "the request has another answer")
	}
	return lathe.CodeNotFound.Errorf("temporal: answer", "the call has no request for approval with this digest")
}

// putResult stores the result of a client's tool.
func (w *Workflow) putResult(ctx context.Context, runID string, c *ClientResult) error {
	signals, ok := w.opts.Store.(store.SignalStore)
	if !ok {
		return lathe.CodeInvalidRequest.Errorf("temporal: store a result", "the store keeps no signals")
	}
	f, err := engine.ResultSignal(runID, c.CallID, lathe.Output{Data: c.Data, IsError: c.IsError})
	if err != nil {
		return err
	}
	err = signals.PutSignal(ctx, f)
	if !errors.Is(err, lathe.ErrConflict) {
		return err
	}
	kept, rerr := signals.Signals(ctx, runID)
	if rerr != nil {
		return rerr
	}
	for _, k := range kept {
		if k.Kind == f.Kind && k.Key == f.Key && string(k.Body) == string(f.Body) {
			return nil
		}
	}
	return err
}
