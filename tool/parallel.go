package tool

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// sideBySide returns how many of the first calls may run concurrently, at least 1.
func (w *Work) sideBySide(calls []Call) int {
	if w.settings.MaxParallel < 2 {
		return 1
	}
	n := 0
	for n < len(calls) && w.onlyReads(&calls[n]) {
		n++
	}
	return max(n, 1)
}

// onlyReads reports whether a call may run concurrently with others: its tool only reads, and the call loads no definition.
func (w *Work) onlyReads(c *Call) bool {
	if c.Parked != nil || c.Refuse != "" || c.ParseError != "" || c.Incomplete {
		return false
	}
	e := w.tools.lookup(c.Name).entry
	return e != nil && e.spec.Effect == lathe.ReadOnly && !w.tools.mayLoad(e.spec)
}

// runTogether executes calls on at most MaxParallel goroutines, and waits for all of them. They send their events to the calling goroutine,
// which alone calls emit; a call continues after emit has returned.
func (w *Work) runTogether(ctx context.Context, turn int, in []Call, emit func(event.Data), out *Outcome) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := relay{events: make(chan event.Data), emitted: make(chan struct{})}
	send := r.send
	calls := make([]call, len(in))
	for i := range calls {
		c := &calls[i]
		c.w, c.emit, c.parkBehind = w, send, out.Parked
		w.begin(ctx, c, turn, &in[i])
		c.planned = make(chan struct{})
		if i > 0 {
			c.before = calls[i-1].planned
		}
	}
	foreseeUse(w, calls)
	var started atomic.Int64 // number of calls
	var workers sync.WaitGroup
	for range min(w.settings.MaxParallel, len(calls)) {
		workers.Go(func() {
			for {
				i := int(started.Add(1)) - 1
				if i >= len(calls) {
					return
				}
				runCall(ctx, &calls[i])
			}
		})
	}
	go func() {
		workers.Wait()
		close(r.events)
	}()
	r.run(emit, cancel)
	for i := range calls {
		w.finishCall(&calls[i], out)
	}
}

// A relay passes the events of workers to one goroutine.
type relay struct {
	events  chan event.Data // closed when all workers have ended
	emitted chan struct{}   // receives a value when an event was emitted
}

// send is called by a worker. It returns when the event was emitted.
func (r relay) send(d event.Data) {
	r.events <- d
	<-r.emitted
}

// run emits the events until all workers have ended. If emit panics, run cancels the workers and discards their events before the panic
// continues.
func (r relay) run(emit func(event.Data), cancel func()) {
	emitting := false // a worker waits for emitted
	defer func() {
		if emitting {
			cancel()
			r.emitted <- struct{}{}
			r.run(func(event.Data) {}, cancel)
		}
	}()
	for d := range r.events {
		emitting = true
		emit(d)
		emitting = false
		r.emitted <- struct{}{}
	}
}
