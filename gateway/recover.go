package gateway

import (
	"context"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/loop"
)

// Recover goes on with the runs of the store whose process ended in the middle of them, and with those that
// wait and to which something came. It returns how many those are. It is called once, before requests are
// served. The error says why others cannot be gone on with. On a shared store [Gateway.Tend] does it, too.
func (g *Gateway) Recover(ctx context.Context) (n int, err error) {
	if g.opts.Index == nil || g.opts.Crew == nil {
		return 0, nil
	}
	r := &recovered{work: &g.work, held: map[string][]*setup{}}
	return g.opts.Crew.Recover(ctx, g.opts.Index, r.loopFor, r)
}

// serve goes on with runs of a shared store that nobody carries, until ctx is done.
func (g *Gateway) serve(ctx context.Context) {
	r := &recovered{work: &g.work, held: map[string][]*setup{}}
	g.opts.Crew.Serve(ctx, &engine.ServeOptions{LoopFor: r.loopFor, Sinks: []lathe.Sink{r}, Every: g.opts.Limits.Claim, Address: g.opts.Cluster.Address, Hinted: g.hinted.wake})
}

// recovered has runs that are gone on with keep the setup that they were taken up under. It is their sink.
type recovered struct {
	work *work
	mu   sync.Mutex
	held map[string][]*setup // by run
}

var _ engine.Leaver = (*recovered)(nil)

func (r *recovered) loopFor(row *lathe.RunSummary) (*loop.Loop, error) {
	s := r.work.begin()
	defer r.work.end(s)
	m, err := s.Models.Model(row.Target)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held[row.RunID] = append(r.held[row.RunID], s)
	r.work.hold(s)
	return m.Loop, nil
}

// Emit implements [lathe.Sink].
func (r *recovered) Emit(context.Context, lathe.Event) {}

// Leave implements [engine.Leaver].
func (r *recovered) Leave(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	held := r.held[id]
	if len(held) == 0 {
		return
	}
	if r.held[id] = held[1:]; len(held) == 1 {
		delete(r.held, id)
	}
	r.work.release(held[0])
}
