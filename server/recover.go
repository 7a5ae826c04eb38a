package server

import (
	"context"
	"sync"

	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

// Recover resumes the runs that were in progress when their process ended, and suspended runs for which input was stored. It returns the
// number of resumed runs, which continue in the background, and the joined errors of the runs that could not be resumed. If [Options].Index
// or Supervisor is nil, it resumes none. It must be called once, before the server serves requests.
func (g *Server) Recover(ctx context.Context) (n int, err error) {
	if g.opts.Index == nil || g.opts.Supervisor == nil {
		return 0, nil
	}
	r := &recovered{core: g.core, resumed: map[string][]resumed{}}
	return g.opts.Supervisor.Recover(ctx, g.opts.Index, r.loopFor, r)
}

// serve acquires and resumes the runs of a shared store that no process owns, until ctx is done.
func (mt *maintenance) serve(ctx context.Context) {
	r := &recovered{core: mt.core, resumed: map[string][]resumed{}}
	mt.opts.Supervisor.Serve(ctx, &engine.ServeOptions{LoopFor: r.loopFor, Sinks: []event.Sink{r}, Every: mt.opts.Limits.Claim, Address: mt.opts.Cluster.Address, Notified: mt.waiters.wake})
}

// A recovered is the sink of the resumed runs. It retains the setup under which a run was resumed until this process stops
// executing the run.
type recovered struct {
	core    *core
	mu      sync.Mutex
	resumed map[string][]resumed // by run id; a run that is resumed again before it was left has several elements
}

// A resumed contains the setup of one resumption of a run, and the note of the vendor's objects.
type resumed struct {
	setup   *setup
	objects *objectNote
}

var _ engine.Leaver = (*recovered)(nil)

// loopFor returns the loop for a run that is about to be resumed, and retains the setup that the loop belongs to.
func (r *recovered) loopFor(row *store.RunSummary) (*loop.Loop, error) {
	work := &r.core.work
	s := work.begin()
	defer work.end(s)
	m, err := s.Models.Model(row.Target)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resumed[row.RunID] = append(r.resumed[row.RunID], resumed{s, newObjectNote(r.core, &caller{access: access{anyone, s}}, row.Principal)})
	work.hold(s)
	return m.Loop, nil
}

// Emit implements [event.Sink]. It records the objects of the vendor's account that answers name.
func (r *recovered) Emit(ctx context.Context, e event.Event) {
	if _, answer := e.Data.(*event.ModelCallFinished); !answer {
		return
	}
	r.mu.Lock()
	all := r.resumed[e.RunID]
	r.mu.Unlock()
	if len(all) > 0 {
		all[0].objects.Emit(ctx, e)
	}
}

// Leave implements [engine.Leaver]. It releases the setup of the run.
func (r *recovered) Leave(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.resumed[id]
	if len(all) == 0 {
		return
	}
	r.resumed[id] = all[1:]
	if len(all) == 1 {
		delete(r.resumed, id)
	}
	r.core.work.release(all[0].setup)
}
