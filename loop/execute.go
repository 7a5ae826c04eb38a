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
	switch {
	case out.Suspended:
		r.suspended = true
	case out.Parked: // pending calls remain pending: answerCalls has checked ctx
		r.pause(lathe.ReasonAwaitingApproval)
	case len(out.Pending) > 0 && r.in.Park && !r.in.extra.HandOver:
		r.pause(lathe.ReasonAwaitingToolResults)
	case len(out.Pending) > 0:
		r.reason = lathe.ReasonClientToolCalls
	case r.endIfDone(ctx):
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
// the history.
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
	ended := ctx.Err() != nil || out.Reason != "" && out.Limit == ""
	if ended && len(out.Pending) > 0 {
		r.giveUp(ctx, &out)
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

// giveUp ends the pending calls with the code `cancelled`, since the run has ended or is cancelled.
func (r *run) giveUp(ctx context.Context, out *tool.Outcome) {
	given := make([]tool.Call, 0, len(out.Pending))
	for _, p := range out.Pending {
		c := tool.Call{ToolCall: p, Refuse: lathe.CodeCancelled}
		if i := slices.IndexFunc(out.Waiting, func(w tool.Call) bool { return w.ID == p.ID }); i >= 0 {
			c.Parked = out.Waiting[i].Parked
		} else if i := slices.IndexFunc(out.Calls, func(t event.CallTrace) bool { return t.ID == p.ID }); i >= 0 {
			c.Parked = &tool.Parked{Seq: out.Calls[i].Seq}
			out.Calls = slices.Delete(out.Calls, i, i+1)
		}
		given = append(given, c)
	}
	rest := r.work.Execute(ctx, r.turn, given, r.emit)
	out.Messages = inCallOrder(r.call.asked, append(out.Messages, rest.Messages...))
	out.Calls = append(out.Calls, rest.Calls...)
	slices.SortFunc(out.Calls, func(a, b event.CallTrace) int { return a.Seq - b.Seq })
	out.Pending, out.Waiting, out.Parked = nil, nil, false
}

// inCallOrder sorts tool messages by the order of their calls.
func inCallOrder(calls []tool.Call, answers []lathe.Message) []lathe.Message {
	place := func(m lathe.Message) int {
		return slices.IndexFunc(calls, func(c tool.Call) bool { return c.ID == m.Parts[0].(lathe.ToolResult).CallID })
	}
	slices.SortStableFunc(answers, func(a, b lathe.Message) int { return place(a) - place(b) })
	return answers
}
