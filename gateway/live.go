package gateway

import (
	"context"
	"sync"

	"github.com/lathe-run/lathe"
)

// A run goes on in this process because a request carries it, or the crew does.

// flying are the runs that requests carry.
type flying struct {
	mu sync.Mutex
	of map[string]*flight // by run id
}

// add remembers the flight of a run until it is removed.
func (l *flying) add(f *flight) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[string]*flight{}
	}
	l.of[f.id] = f
}

func (l *flying) remove(f *flight) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of[f.id] == f {
		delete(l.of, f.id)
	}
}

// interrupt ends all of them.
func (l *flying) interrupt(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.of {
		f.cancel(cause)
	}
}

func (l *flying) find(id string) *flight {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of[id]
}

// carries reports whether the run goes on now.
func (g *Gateway) carries(id string) bool {
	return g.flying.find(id) != nil || g.opts.Crew != nil && g.opts.Crew.Carries(id)
}

// await waits until a run that goes on now has ended or waits, or ctx is done. res is nil then; ok is
// false where it did not go on.
func (g *Gateway) await(ctx context.Context, id string) (res *lathe.Result, ok bool) {
	if f := g.flying.find(id); f != nil {
		select {
		case <-f.over:
			return f.res, true
		case <-ctx.Done():
			return nil, true
		}
	}
	res, ok, _ = g.opts.Crew.Wait(ctx, id) // its log says what came of it
	return res, ok
}

// interrupt ends a run that goes on now, and reports whether there was one.
func (g *Gateway) interrupt(id string) bool {
	if f := g.flying.find(id); f != nil {
		f.cancel(context.Canceled)
		return true
	}
	return g.opts.Crew.Cancel(id)
}
