package loop

import (
	"context"
	"errors"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// exhausted returns the limit that forbids another model call, and the reason with which the run then ends. Both are "" if no limit is
// reached.
func (r *run) exhausted() (reason lathe.Reason, key string) {
	switch {
	case r.turn >= r.limits.MaxIterations:
		return lathe.ReasonMaxIterations, "max_iterations"
	case r.result.Usage.Total() >= r.limits.MaxTokensTotal:
		return lathe.ReasonBudgetExceeded, "max_tokens_total"
	case r.limits.MaxCost > 0 && r.result.Cost >= r.limits.MaxCost:
		return lathe.ReasonBudgetExceeded, "max_cost"
	}
	return "", ""
}

// admitStep reports whether the policy allows another model call. If not, it ends the run with reason budget_exceeded.
func (r *run) admitStep() bool {
	if r.loop.opts.Policy == nil {
		return true
	}
	v := judgeStep(r.loop.opts.Policy, &lathe.StepInfo{Run: &r.info, Turn: r.turn + 1, Usage: r.result.Usage, Cost: r.result.Cost, ToolCalls: r.result.ToolCalls})
	if v.Decision == lathe.Allow {
		return true
	}
	r.fail(lathe.ReasonBudgetExceeded, lathe.CodePolicyDenied, errors.New("rule "+v.Rule+": "+v.Reason))
	return false
}

// judgeStep returns the verdict of the policy, or Deny if the policy panics.
func judgeStep(p lathe.Policy, step *lathe.StepInfo) (v lathe.Verdict) {
	defer func() {
		if recover() != nil {
			v = lathe.Verdict{Rule: "policy_panic"}
		}
	}()
	return p.Step(step)
}

// reachLimit ends the run because of a limit. If on_limit is finish, it makes one more model call beyond the limit, without tools, for an
// answer from the results so far. The reason of the run is the limit, whether or not that call succeeds, unless the run was cancelled or
// interrupted.
func (r *run) reachLimit(ctx context.Context, reason lathe.Reason, key string) {
	if r.settings.OnLimit == lathe.OnLimitFinish && r.admitStep() {
		r.followUp.ask(r.settings.FixEmptyFinalText)
		if r.call.ask(ctx, false) {
			r.result.Answer = r.call.answer
		} else if r.reason == lathe.ReasonCancelled || r.reason == lathe.ReasonInterrupted {
			return
		}
	}
	r.reason, r.limit = reason, key
	r.result.Err, r.errorCode = nil, "" // the error of the last model call, if it was denied or failed
}

// endIfDone ends the run if its context is done, and reports whether it did.
func (r *run) endIfDone(ctx context.Context) bool {
	if ctx.Err() == nil {
		return false
	}
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, &r.timeout):
		r.reason, r.limit = lathe.ReasonRunTimeout, "run_timeout"
	case errors.Is(cause, ErrInterrupted):
		r.fail(lathe.ReasonInterrupted, lathe.CodeInterrupted, cause)
	default:
		r.fail(lathe.ReasonCancelled, lathe.CodeCancelled, cause)
	}
	return true
}

// fail ends the run with an error. If code is "", the code is that of the reason.
func (r *run) fail(reason lathe.Reason, code lathe.Code, err error) {
	if code == "" {
		code = lathe.Code(reason)
	}
	r.reason = reason
	r.errorCode = string(code)
	r.result.Err = code.Wrap("loop: run", err)
}

// finish emits the last event of the run: RunFinished, or RunPaused alone if the run is parked.
func (r *run) finish() {
	r.result.RunID, r.result.Reason = r.info.RunID, r.reason
	// The request of the loop would otherwise be answered by a later run.
	if r.followUp.unanswered() {
		r.req.Messages = r.req.Messages[:len(r.req.Messages)-1]
	}
	r.result.History = r.req.Messages
	r.result.Blank, r.result.Reasoning = r.blank()
	if r.paused != nil {
		if r.in.Park {
			r.paused.Result = &r.result
		}
		r.emit(r.paused)
		if r.in.Park {
			return
		}
	}
	r.finished = event.RunFinished{
		Reason: r.reason, Status: r.reason.Status(), Turns: r.turn, ToolCalls: r.result.ToolCalls,
		Usage: r.result.Usage, LatencyMS: r.loop.since(r.started), ErrorCode: r.errorCode, Limit: r.limit,
		Answer: r.result.Answer, Blank: r.result.Blank, Result: &r.result,
	}
	r.emit(&r.finished)
}
