package server

import (
	"context"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/gateway/runlog"
	"github.com/lathe-run/lathe/internal/gateway/splice"
)

func newTurns(co *core) *splice.Turns {
	l := &co.opts.Limits
	return splice.New(&splice.Options{Index: co.opts.Index, Shared: co.shared != nil, Approvals: co.opts.Approvals != nil, Seals: co.seals,
		MaxKept: l.MaxKept, MaxKeptBytes: l.MaxKeptBytes, KeepFor: l.KeepFor, Now: co.opts.Now, Log: co.opts.Log,
		Lock: co.locks.lock, Flush: co.opts.Engine.Flush, Background: co.work.background})
}

// View implements [splice.Runs]. It reads the log of a run of the caller.
func (a *request) View(ctx context.Context, id string) (*runlog.View, *problem) {
	return a.handler.viewOther(ctx, a.caller, id)
}

// Suspended implements [splice.Runs]. It waits until the run is suspended or has ended.
func (a *request) Suspended(ctx context.Context, id string) (*runlog.View, *problem) {
	return a.handler.waitSuspended(ctx, a.caller, id)
}

// waitSuspended returns the run when it is suspended or has ended, or its current state after logTimeout.
func (rv *runViews) waitSuspended(ctx context.Context, c *caller, id string) (*runlog.View, *problem) {
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	for {
		v, p := rv.viewOther(ctx, c, id)
		if p != nil || v.Rests() {
			return v, p
		}
		if _, here := rv.waitRun(ctx, id); here && ctx.Err() == nil {
			continue
		}
		if pause(ctx, nil, rv.opts.Limits.Poll) != nil {
			return v, nil
		}
	}
}

// hidden returns the parts of the request that package splice needs to restore hidden turns.
func (a *exchange) hidden() *splice.Request {
	c := a.caller
	return &splice.Request{ID: c.requestID, Owner: a.owner(), Session: a.session, Messages: a.req.Messages, HandsOver: len(a.req.Tools) > 0,
		Texts: a.keepsText, CallTurns: a.callTurns, Waiting: c.setup.waiting, Runs: &a.request, Memory: c.reserved}
}

func (a *request) owner() splice.Owner {
	return splice.Owner{Principal: a.caller.key.Name, User: a.req.User, Model: a.req.Model}
}

// restoreIDs replaces the call ids that this server made, in the messages of the request, by those of the model server.
func (h *planner) restoreIDs(ctx context.Context, a *chat) *problem {
	r := a.hidden()
	p := h.turns.RestoreIDs(ctx, r)
	a.req.Messages, a.callTurns = r.Messages, r.CallTurns
	return p
}

// conversationOf returns the conversation of the request with its hidden turns spliced in. A conversation that continues a
// stored response has none.
func (h *planner) conversationOf(ctx context.Context, a *chat) *splice.Spliced {
	r := a.hidden()
	if a.continuesResponse() {
		return splice.Unspliced(r)
	}
	return h.turns.Splice(ctx, r, a.plan.relayed)
}

// countLost logs and counts the hidden turns that could not be restored in the conversation of a request.
func (h *planner) countLost(c *caller, turns int) {
	if turns == 0 {
		return
	}
	h.opts.Log.Warn("turns of this gateway are not in the conversation that the model gets: they are not stored any more, or the client has changed older messages",
		"request_id", c.requestID, "turns", turns)
	if h.opts.Metrics != nil {
		h.opts.Metrics.AddLostTurns(turns)
	}
}

// newCallIDs returns the converter for the ids of calls that the run returns to the client. It returns nil if the client
// gets the ids of the model server: if the run is relayed or offers no tool of this server.
func newCallIDs(ctx context.Context, a *exchange, run string) *splice.CallIDs {
	offers := offersTool(&a.caller.access, &a.settings, a.in.Allow, everyTool)
	if a.plan.relayed || !offers || !safeName().MatchString(run) {
		return nil
	}
	return a.handler.turns.NewCallIDs(ctx, a.caller.key.Name, run)
}

// lastTurn returns the number of the last turn of a run; 0 if it has none.
func lastTurn(res *event.Result) int {
	if len(res.Trace) == 0 {
		return 0
	}
	return res.Trace[len(res.Trace)-1].Turn
}

// everyTool is the kind of all tools, for [access.hasTool].
func everyTool(*lathe.ToolSpec) bool { return true }

// keepText stores the messages that a run added to the conversation, if the answer is text and the client does not receive
// all of them: a later request that contains the text gets them back.
func (a *content) keepText(res *event.Result, own []lathe.Message) {
	status := res.Reason.Status()
	if !a.keepsText || a.continuesResponse() || status != "completed" && status != "limited" && res.Reason != lathe.ReasonInvalidAnswer {
		return
	}
	own, ok := splice.BehindText(own)
	if !ok {
		return
	}
	text, refused := a.seen(own)
	if strings.TrimSpace(text) == "" || refused {
		return
	}
	a.handler.turns.KeepText(a.sum, text, own, a.job.loop.Retention(), a.caller.runID, a.caller.requestID)
}
