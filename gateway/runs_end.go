package gateway

import (
	"context"
	"net/http"

	"github.com/lathe-run/lathe"
)

// cancelRun ends a run that goes on or waits. Its open calls are answered `cancelled`.
func (g *Gateway) cancelRun(w http.ResponseWriter, r *http.Request, c *caller) {
	id := r.PathValue("id")
	for told := false; ; told = true {
		again, status, p := g.tryCancel(r.Context(), c, id, told)
		switch {
		case r.Context().Err() != nil:
			return // the client left
		case p != nil:
			c.fail(w, p)
			return
		case !again:
			g.answerRun(w, r, c, id, status)
			return
		}
	}
}

// resumeRun goes on with a run that waits, such as one that was interrupted within a call. What it waits for is
// still open then: a run that waits for an approval waits again.
func (g *Gateway) resumeRun(w http.ResponseWriter, r *http.Request, c *caller) {
	id := r.PathValue("id")
	unlock, err := g.held.lock(r.Context(), id)
	if err != nil {
		return // the client left
	}
	defer unlock()
	v, p := g.view(r.Context(), c, id)
	if p == nil {
		p = v.ended()
	}
	if p == nil && g.carries(id) {
		p = conflict("run_running", "The run goes on already.")
	}
	if p == nil {
		p = g.resume(r.Context(), c, v, nil)
	}
	if p != nil {
		c.fail(w, p)
		return
	}
	g.answerRun(w, r, c, id, http.StatusAccepted)
}

// tryCancel answers 200 when the run has ended, and 202 when it was told to and has not yet. again is
// set where it had come to wait before it could be told; told says that this was so before.
func (g *Gateway) tryCancel(ctx context.Context, c *caller, id string, told bool) (again bool, status int, p *problem) {
	unlock, err := g.held.lock(ctx, id)
	if err != nil {
		return false, 0, nil // the client left
	}
	defer unlock()
	v, p := g.view(ctx, c, id)
	if p == nil && told && v.state.Finished != nil && v.state.Finished.Reason == lathe.ReasonCancelled {
		g.withdraw(id)
		return false, http.StatusOK, nil
	}
	if p == nil {
		p = v.ended()
	}
	if p != nil {
		return false, 0, p
	}
	if v.state.Paused == "" && g.shared == nil && !g.carries(id) {
		return g.movedOn(ctx, c, v)
	}
	// It is kept before anybody is told: whoever carries the run, and ends before it, has not lost it.
	if err := g.facts.PutFact(ctx, lathe.Fact{RunID: id, Kind: lathe.FactCancel}); err != nil && lathe.CodeOf(err) != lathe.CodeConflict {
		return false, 0, g.runFailed(c, err)
	}
	if g.interrupt(id) {
		wait, cancel := context.WithTimeout(ctx, settleTime)
		defer cancel()
		res, ok := g.await(wait, id)
		switch {
		case ok && res == nil:
			return false, http.StatusAccepted, nil
		case ok && res.Reason == lathe.ReasonCancelled:
			g.withdraw(id)
			return false, http.StatusOK, nil
		}
		return true, 0, nil
	}
	switch {
	case v.state.Paused == "" && g.shared == nil: // it has come to wait, or ended
		return true, 0, nil
	case v.state.Paused == "":
		return g.cancelElsewhere(ctx, c, v)
	}
	l, p := c.loopOf(v)
	if p != nil {
		return false, 0, p
	}
	res, err := g.opts.Engine.Cancel(ctx, l, id)
	switch {
	case err != nil && g.shared != nil && lathe.CodeOf(err) == lathe.CodeConflict:
		return g.cancelElsewhere(ctx, c, v)
	case err != nil:
		return false, 0, g.runFailed(c, err)
	}
	if res.Reason != lathe.ReasonCancelled {
		return false, 0, conflict("run_changed", "The run has moved on; look at it again.")
	}
	g.withdraw(id)
	return false, http.StatusOK, nil
}

// cancelElsewhere waits a while until whoever carries the run, or takes it up, has ended it.
func (g *Gateway) cancelElsewhere(ctx context.Context, c *caller, v *runView) (again bool, status int, p *problem) {
	id := v.state.Run.RunID
	owner, err := g.shared.Owner(ctx, id)
	switch {
	case err != nil:
		return false, 0, g.runFailed(c, err)
	case owner == "" && !v.summary.Run.Resumable:
		return g.movedOn(ctx, c, v)
	}
	sub := g.opts.Bus.Subscribe(id)
	defer sub.Close()
	g.opts.Crew.Hint(id) // it may be here by now
	if !g.settled(ctx, sub, v, true, func(d lathe.EventData) bool { _, over := d.(*lathe.RunFinished); return over }) {
		return false, http.StatusAccepted, nil
	}
	return true, 0, nil // its log says how it has ended
}

// movedOn looks again at a run that its log had as going on, and that nobody here carries: it may
// have ended, or come to wait, in between.
func (g *Gateway) movedOn(ctx context.Context, c *caller, v *runView) (again bool, status int, p *problem) {
	now, p := g.view(ctx, c, v.state.Run.RunID)
	if p == nil && now.state.LastID == v.state.LastID {
		p = elsewhere()
	}
	return p == nil, 0, p
}

// withdraw drops what was asked and granted within a run that has ended.
func (g *Gateway) withdraw(id string) {
	if g.opts.Desk != nil {
		g.opts.Desk.Withdraw(id)
	}
}
