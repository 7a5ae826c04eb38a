package server

import (
	"context"
	"sync"
	"time"
)

// Maintain resumes runs whose approval requests have expired, including those of earlier processes. If the store is shared, it also resumes
// all other runs that no process owns. It blocks until ctx is done or the server drains. If [Options].Index or Supervisor is nil, it
// returns at once. It must be called at most once.
func (g *Server) Maintain(ctx context.Context) {
	if g.opts.Index != nil && g.opts.Supervisor != nil {
		g.maintain.run(ctx)
	}
}

// run surveys the store and resumes expired runs until ctx is done or the server drains.
func (mt *maintenance) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(mt.leaving, cancel)()
	var surveys sync.WaitGroup
	defer surveys.Wait()
	if mt.opts.Approvals != nil {
		began := time.Now()
		mt.recount(ctx)
		took := time.Since(began)
		surveys.Go(func() { mt.recountEvery(ctx, took) })
	}
	if mt.shared != nil {
		mt.serve(ctx)
		return
	}
	if mt.opts.Approvals == nil || mt.opts.Bus == nil {
		return
	}
	tick := time.Tick(mt.opts.Limits.Expiry)
	for {
		for _, r := range mt.opts.Approvals.Expired() {
			if p := mt.expire(ctx, r.RunID); p != nil && ctx.Err() == nil {
				mt.opts.Log.Error("a run whose request for approval has expired could not be resumed", "run_id", r.RunID, "code", p.Code)
				mt.opts.Approvals.Await(r) // the request is queued again, so the next tick retries it
			}
		}
		select {
		case <-tick:
		case <-ctx.Done():
			return
		}
	}
}

// serverCaller returns the caller for operations that the server itself begins. It may see every run.
func serverCaller() *caller { return &caller{access: access{key: anyone}} }

// expire resumes the run if it is suspended and one of its approval requests has expired. It does nothing otherwise.
func (mt *maintenance) expire(ctx context.Context, id string) *problem {
	c := serverCaller()
	c.setup = mt.work.begin()
	defer mt.work.end(c.setup)
	unlock, p := mt.locks.lock(ctx, id)
	if p != nil {
		return nil // ctx is done: the server stops
	}
	defer unlock()
	v, p := mt.view(ctx, c, id)
	switch {
	case p != nil && p.Code == noRun().Code:
		return nil
	case p != nil:
		return p
	case v.State.Paused == "", v.State.Finished != nil, mt.executes(id), v.Stepped() != nil: // the executor of a stepped run has its own timer
		return nil
	}
	for _, o := range v.State.Open {
		if o.Asked && !mt.opts.Now().Before(o.ExpiresAt) {
			return mt.resume(ctx, c, v, nil)
		}
	}
	return nil
}
