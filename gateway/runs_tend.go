package gateway

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/loop"
)

// Tend goes on with runs whose requests for approval have expired, those of earlier processes too; on a
// shared store with all runs that nobody carries, whichever process they are of. It returns when ctx is done
// or the gateway is drained, and is called once.
func (g *Gateway) Tend(ctx context.Context) {
	if g.opts.Index == nil || g.opts.Crew == nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(g.leaving, cancel)()
	var surveyed sync.WaitGroup
	defer surveyed.Wait()
	if g.opts.Desk != nil {
		g.survey(ctx)
		surveyed.Go(func() { g.surveyOn(ctx) })
	}
	if g.shared != nil {
		g.serve(ctx)
		return
	}
	if g.opts.Desk == nil || g.opts.Bus == nil {
		return
	}
	tick := time.NewTicker(g.opts.Limits.Expiry)
	defer tick.Stop()
	for {
		for _, r := range g.opts.Desk.Expired() {
			if p := g.expire(ctx, r.RunID); p != nil && ctx.Err() == nil {
				g.opts.Log.Error("a run whose request for approval has expired could not be gone on with", "run_id", r.RunID, "code", p.Code)
				g.opts.Desk.Await(r) // it is looked at again
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// nobody is the caller of what the gateway does by itself. It may see every run.
func (g *Gateway) nobody() *caller { return &caller{key: anyone} }

// request is what the log says of a call that somebody is asked about.
func (v *runView) request(o *loop.OpenCall) approval.Request {
	r := approval.Request{Digest: o.Digest, RunID: v.state.Run.RunID, SessionID: v.state.Run.SessionID, Principal: v.state.Run.Principal,
		ToolCallID: o.ID, Tool: o.Name, Turn: v.state.Turn, Seq: o.Seq, Rule: o.Rule, ExpiresAt: o.ExpiresAt, Arguments: o.Shown}
	if r.Arguments == nil {
		r.Arguments = json.RawMessage(o.Arguments)
	}
	return r
}

// expire goes on with a run if it waits for an answer that comes too late now.
func (g *Gateway) expire(ctx context.Context, id string) *problem {
	c := g.nobody()
	c.setup = g.work.begin()
	defer g.work.end(c.setup)
	unlock, err := g.held.lock(ctx, id)
	if err != nil {
		return nil // the server stops
	}
	defer unlock()
	v, p := g.view(ctx, c, id)
	switch {
	case p != nil && p.Code == noRun().Code:
		return nil
	case p != nil:
		return p
	case v.state.Paused == "", v.state.Finished != nil, g.carries(id):
		return nil
	}
	for i := range v.state.Open {
		if o := &v.state.Open[i]; o.Asked && !g.opts.Now().Before(o.ExpiresAt) {
			return g.resume(ctx, c, v, nil)
		}
	}
	return nil
}
