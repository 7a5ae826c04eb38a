package server

import (
	"context"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gateway/pairs"
	"github.com/lathe-run/lathe/internal/gateway/runlog"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// If a run requests an approval for one call and returns another call to the client, it is suspended until it has both. The
// client's next request contains the result of its call and resumes that run, which may then still wait for the approval.

// resumeRun sets the job of the request to resume the run, which waits for the results at the end of the conversation. It returns
// false if the run no longer waits for them; the request then begins a new run. A resumed run stays locked until a.unlock is
// called.
func (h *planner) resumeRun(ctx context.Context, a *chat, run string) (resumed bool, p *problem) {
	if a.compacts() {
		return false, conflict("response_in_progress", "The response that the request goes on from waits: continue it before it is compacted.")
	}
	defer func() {
		if !resumed {
			a.unlock()
		}
	}()
	v, answers, p := h.loadWaiting(ctx, a, run)
	if p != nil {
		return false, p
	}
	if len(answers) == 0 {
		a.caller.runID = ""
		return false, nil
	}
	l, p := a.caller.loopOf(v)
	if p != nil {
		return false, p
	}
	base := len(v.State.Messages)
	id := runlog.AnswerID{Run: run, After: v.WaitBefore(base)}
	if id.After == 0 { // the process of the run stopped before the run waited
		id.Once = runlog.NewOnce()
	}
	answerFrom(ctx, a, v, base, id)
	a.job = job{loop: l, resume: resumption{run, answers, v.Stepped()}, holds: a.keepOpen, note: &waitingNote{h.turns, a.digest()}}
	return true, nil
}

// loadWaiting locks and returns the run, with the results that the request has for it. There are none if the run does not exist
// any more, has ended, or waits for other results.
func (h *planner) loadWaiting(ctx context.Context, a *chat, id string) (v *runlog.View, answers map[string]lathe.Output, p *problem) {
	v, p = h.loadSuspended(ctx, a, id)
	switch {
	case p != nil && p.Code == noRun().Code:
		return nil, nil, nil
	case p != nil:
		return nil, nil, p
	case v.State.Finished != nil, v.State.Target != a.req.Model:
		return v, nil, nil
	case v.State.Paused == "":
		return nil, nil, ownedElsewhere()
	}
	if p = a.caller.reserved.Load(v.State.Messages); p == nil {
		answers, p = h.resultsFor(ctx, a.caller, a.req.Messages, v)
	}
	return v, answers, p
}

// loadSuspended waits until this process does not execute the run, and returns the run. The run is locked until a.unlock is
// called.
func (h *planner) loadSuspended(ctx context.Context, a *chat, id string) (*runlog.View, *problem) {
	for {
		unlock, p := h.locks.lock(ctx, id)
		if p != nil {
			return nil, p
		}
		a.unlock = sync.OnceFunc(unlock)
		isExecuted := h.executes(id)
		v, p := h.view(ctx, a.caller, id)
		if p == nil && !isExecuted && !v.Rests() { // the run may have been resumed between the two reads
			isExecuted = h.executes(id)
			before := v.State.LastID
			v, p = h.view(ctx, a.caller, id)
			isExecuted = isExecuted || p == nil && v.State.LastID > before
		}
		if p != nil || !isExecuted {
			return v, p
		}
		a.unlock() // this process still executes other calls of the run
		_, _ = h.waitRun(ctx, id)
	}
}

// resultsFor returns the tool results at the end of the messages that belong to open client calls of the run, by call id.
func (h *planner) resultsFor(ctx context.Context, c *caller, given []lathe.Message, v *runlog.View) (map[string]lathe.Output, *problem) {
	first := len(given)
	for first > 0 && given[first-1].Role == lathe.RoleTool {
		first--
	}
	ids, p := h.turns.CallIDsIn(ctx, c.key.Name, given[first:])
	if p != nil {
		return nil, p
	}
	results := map[string]lathe.Output{}
	for _, m := range ids.Originals(given[first:], v.State.Messages) {
		if id := pairs.Answered(&m); v.Client[id] && v.OpenCall(id) != nil {
			r := m.Parts[0].(lathe.ToolResult)
			results[id] = lathe.Output{Data: rawjson.AppendQuote(nil, r.Content), Blobs: r.Blobs}
		}
	}
	return results, nil
}
