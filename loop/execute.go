package loop

import (
	"context"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/tool"
)

// execute executes the calls of the turn and sets the reason if the run ends or is parked.
func (r *run) execute(ctx context.Context) {
	out := r.answerCalls(ctx, "")
	r.result.Pending = out.Pending
	pending := len(out.Pending) > 0 // none if a call has made the run fail or ctx was done
	switch {
	case out.Suspended:
		r.suspended = true
	case out.Parked:
		r.pause(lathe.ReasonAwaitingApproval)
	case pending && r.in.Park && !r.in.extra.HandOver:
		r.pause(lathe.ReasonAwaitingToolResults)
	case pending:
		r.reason = lathe.ReasonClientToolCalls
	case ctx.Err() != nil:
		r.endIfDone(ctx)
	case out.Limit != "":
		r.reachLimit(ctx, out.Reason, out.Limit)
	case out.Reason != "":
		r.fail(out.Reason, "", nil)
	}
}

// pause ends or parks the run because it requires an approval or a result of the client.
func (r *run) pause(reason lathe.Reason) {
	p := &event.RunPaused{Reason: reason, Pending: make([]string, len(r.result.Pending))}
	for i := range r.result.Pending {
		p.Pending[i] = r.result.Pending[i].ID
	}
	r.paused, r.reason = p, reason
}

// answerCalls executes the calls of the turn, or refuses all of them with the code refuse if it is not "". It appends the tool messages to
// the history, and adds usage, cost and traces of the calls to the result.
func (r *run) answerCalls(ctx context.Context, refuse lathe.Code) tool.Outcome {
	calls := r.call.asked
	single := r.settings.ParallelToolCalls != nil && !*r.settings.ParallelToolCalls && r.in.extra.Relay == nil
	for i := range calls {
		switch {
		case refuse != "":
			calls[i].Refuse = refuse
		case single && i > 0:
			calls[i].Refuse = lathe.CodeTooManyCalls
		}
	}
	r.work.Spent(r.result.Usage, r.result.Cost)
	out := r.work.Execute(ctx, r.turn, calls, r.emit)
	r.result.Usage.Add(out.ChildUsage)
	r.result.Cost += out.ChildCost
	if r.settings.Executor == lathe.ExecutorNoop {
		r.showCanned(&out)
	}
	failed := out.Reason != "" && out.Limit == ""
	if len(out.Pending) > 0 && (failed || ctx.Err() != nil) {
		r.cancelPending(ctx, &out)
	}
	r.req.Messages = append(r.req.Messages, out.Messages...)
	if t := r.turnTrace(); t.Calls == nil {
		t.Calls = out.Calls
	} else {
		t.Calls = append(slices.Clone(t.Calls), out.Calls...)
	}
	r.result.ToolCalls += len(calls)
	if r.from.order != nil { // a resumed run may have results of other calls of the turn
		sortAnswers(r.from.order, r.req.Messages[r.from.tail:])
		r.from.order = nil
	}
	return out
}

// showCanned emits the result of each call that the noop executor answered as commentary, so that the stream of a dry run shows where
// results would appear.
func (r *run) showCanned(out *tool.Outcome) {
	for _, m := range out.Messages {
		for _, p := range m.Parts {
			if res, ok := p.(lathe.ToolResult); ok && !res.IsError {
				r.emit(&event.CommentaryDelta{Bytes: len(res.Content), Text: res.Content})
			}
		}
	}
}

// cancelPending ends the pending calls with the code `cancelled`, since the run has ended or is cancelled. It adds their results to out.
func (r *run) cancelPending(ctx context.Context, out *tool.Outcome) {
	calls := make([]tool.Call, 0, len(out.Pending))
	for _, p := range out.Pending {
		calls = append(calls, tool.Call{ToolCall: p, Refuse: lathe.CodeCancelled, Parked: parked(out, p.ID)})
	}
	var order []string
	for i := range r.call.asked {
		order = append(order, r.call.asked[i].ID)
	}
	rest := r.work.Execute(ctx, r.turn, calls, r.emit)
	isPending := func(t event.CallTrace) bool {
		return slices.ContainsFunc(calls, func(c tool.Call) bool { return c.ID == t.ID })
	}
	out.Messages = append(out.Messages, rest.Messages...)
	sortAnswers(order, out.Messages)
	out.Calls = append(slices.DeleteFunc(out.Calls, isPending), rest.Calls...)
	slices.SortFunc(out.Calls, func(a, b event.CallTrace) int { return a.Seq - b.Seq })
	out.Pending, out.Waiting, out.Parked = nil, nil, false
}

// parked returns the state of a pending call: that of a call which waits for an approval, or the number of a client call.
func parked(out *tool.Outcome, id string) *tool.Parked {
	for i := range out.Waiting {
		if out.Waiting[i].ID == id {
			return out.Waiting[i].Parked
		}
	}
	for i := range out.Calls {
		if out.Calls[i].ID == id {
			return &tool.Parked{Seq: out.Calls[i].Seq}
		}
	}
	return nil
}
