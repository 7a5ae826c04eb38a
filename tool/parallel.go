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
	e, _, _ := w.tools.lookup(c.Name)
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
		w.begin(ctx, &calls[i], turn, &in[i], out.Parked)
		calls[i].w, calls[i].emit = w, send
		calls[i].planned = make(chan struct{})
		if i > 0 {
			calls[i].before = calls[i-1].planned
		}
	}
	foreseeUse(w, calls)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(w.settings.MaxParallel, len(calls)) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(calls)); i = next.Add(1) - 1 {
				runCall(ctx, &calls[i])
			}
		})
	}
	done := make(chan struct{})
	go func() {
		workers.Wait()
		close(done)
	}()
	owed := false
	defer func() { // also if emit panics: it waits until every goroutine has ended
		cancel()
		if owed {
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
			owed = true
			emit(d)
			owed = false
			emitted <- struct{}{}
		case <-done:
			running = false
		}
	}
	for i := range calls {
		w.finishCall(&calls[i], out)
	}
}
