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
	calls := make([]call, len(in))
	events, emitted := make(chan event.Data), make(chan struct{})
	send := func(d event.Data) {
		events <- d
		<-emitted
	}
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
	done := make(chan struct{})
	go func() {
		workers.Wait()
		close(done)
	}()
	emitting := false // a worker waits for emitted
	defer func() {    // also if emit panics: it waits until every goroutine has ended
		cancel()
		if emitting {
			emitted <- struct{}{}
		}
		for {
			select {
			case <-events:
				emitted <- struct{}{}
			case <-done:
				return
			}
		}
	}()
	for running := true; running; {
		select {
		case d := <-events:
			emitting = true
			emit(d)
			emitting = false
			emitted <- struct{}{}
		case <-done:
			running = false
		}
	}
	for i := range calls {
		w.finishCall(&calls[i], out)
	}
}
