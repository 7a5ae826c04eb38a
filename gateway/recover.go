package gateway

import (
	"context"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/loop"
)

// Recover goes on with the runs of the store whose process ended in the middle of them, and returns how
// many those are. It is called once, before requests are served. The setup of now is kept for them.
// The error says why others cannot be gone on with.
func (g *Gateway) Recover(ctx context.Context) (n int, err error) {
	if g.opts.Index == nil || g.opts.Crew == nil {
		return 0, nil
	}
	setup := g.work.begin()
	defer g.work.end(setup)
	r := &recovered{gateway: g, setup: setup, held: map[string]bool{}}
	n, err = g.opts.Crew.Recover(ctx, g.opts.Index, r.loopFor, r)
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.held {
		if !g.opts.Crew.Carries(id) { // it could not be gone on with, or is over
			r.release(id)
		}
	}
	return n, err
}

// recovered holds a setup for the runs that are gone on with. It is their sink.
type recovered struct {
	gateway *Gateway
	setup   *setup
	mu      sync.Mutex
	held    map[string]bool // by run
}

func (r *recovered) loopFor(row *lathe.RunSummary) (*loop.Loop, error) {
	m, err := r.setup.Models.Model(row.Target)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held[row.RunID] = true
	r.gateway.work.hold(r.setup)
	return m.Loop, nil
}

// Emit implements [lathe.Sink].
func (r *recovered) Emit(_ context.Context, e lathe.Event) {
	if loop.Ended(e.Data) == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.release(e.RunID)
}

func (r *recovered) release(id string) {
	if r.held[id] {
		delete(r.held, id)
		r.gateway.work.release(r.setup)
	}
}
