package server

import (
	"context"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gateway/pairs"
	"github.com/lathe-run/lathe/internal/gateway/runlog"
	"github.com/lathe-run/lathe/internal/gateway/splice"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// If a run requests an approval for one call and returns another call to the client, it is suspended until it has both. The
// client's next request contains the result of its call and resumes that run, which may then still wait for the approval.

// resumeRun sets the job of the request to resume the run, which waits for the results at the end of the conversation. It returns
// false if the run no longer waits for them; the request then begins a new run.
func (h *planner) resumeRun(ctx context.Context, a *chat, run *splice.Stored) (resumed bool, _ *problem) {
	if a.compacts() {
		return false, conflict("response_in_progress", "The response that the request goes on from waits: continue it before it is compacted.")
	}
	c := a.caller
	v, p := h.loadSuspended(ctx, a, run.RunID)
	switch {
	case p != nil && p.Code == noRun().Code, v != nil && (v.State.Finished != nil || v.State.Target != a.req.Model):
		return h.releaseRun(a)
	case p == nil && v.State.Paused == "":
		p = ownedElsewhere()
	case p == nil:
		p = c.reserved.Load(v.State.Messages)
	}
	if p != nil {
		a.unlock()
		return false, p
	}
	answers, p := h.resultsFor(ctx, c, a.req.Messages, v)
	if p != nil {
		a.unlock()
		return false, p
	}
	if len(answers) == 0 {
		return h.releaseRun(a)
	}
	l, p := c.loopOf(v)
	if p != nil {
		a.unlock()
		return false, p
	}
	a.session, a.base = v.State.Run.SessionID, len(v.State.Messages)
	a.head.Kept = v.State.Run.Labels[labelResponse] != ""
	id := runlog.AnswerID{Run: run.RunID, After: v.WaitBefore(a.base)}
	if id.After == 0 { // the process of the run stopped before the run waited
		id.Once = runlog.NewOnce()
	}
	a.begin(ctx, id, &a.plan.model.Settings, &a.plan.model.Limits)
	a.job = job{loop: l, resume: run.RunID, answers: answers, stepped: v.Stepped(), holds: a.holds, note: &waitingNote{h.turns, a.digest()}}
	return true, nil
}

// releaseRun unlocks the run, which is not resumed. Its results are those of resumeRun.
func (h *planner) releaseRun(a *chat) (bool, *problem) {
	a.unlock()
	a.unlock, a.caller.runID = func() {}, ""
	return false, nil
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
		if p == nil && !v.Rests() && !isExecuted { // the run may have been resumed between the two reads
			isExecuted = h.executes(id)
			before := v.State.LastID
			if v, p = h.view(ctx, a.caller, id); p == nil && v.State.LastID > before {
				isExecuted = true
			}
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
