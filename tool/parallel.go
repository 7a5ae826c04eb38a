package tool

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/lathe-run/lathe"
)

// sideBySide returns how many of the calls, from the first on, may run side by side.
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

func (w *Work) onlyReads(c *Call) bool {
	if c.Parked != nil || c.Refuse != "" || c.ParseError != "" || c.Incomplete {
		return false
	}
	e, _, _ := w.lookup(c.Name)
	return e != nil && e.spec.Effect == lathe.ReadOnly
}

// runTogether runs calls on at most MaxParallel goroutines, and waits for all of them. Facts are
// handed to this goroutine, which alone calls emit; a call goes on when its fact has been told.
func (w *Work) runTogether(ctx context.Context, turn int, in []Call, emit func(lathe.EventData), s *settling) {
	ctx, cancel := context.WithCancel(ctx)
	calls := make([]call, len(in))
	facts, told := make(chan lathe.EventData), make(chan struct{})
	say := func(d lathe.EventData) {
		facts <- d
		<-told
	}
	for i := range calls {
		w.begin(ctx, &calls[i], turn, &in[i], s.nextFacts(), s.out.Parked)
		calls[i].emit = say
		calls[i].planned = make(chan struct{})
		if i > 0 {
			calls[i].before = calls[i-1].planned
		}
	}
	w.foresee(calls)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(w.settings.MaxParallel, len(calls)) {
		workers.Go(func() {
			l := w.r.takeLane()
			for i := next.Add(1) - 1; i < int64(len(calls)); i = next.Add(1) - 1 {
				calls[i].lane = l
				w.runCall(ctx, &calls[i])
			}
			w.r.giveBack(l)
		})
	}
	done := make(chan struct{})
	go func() {
		workers.Wait()
		close(done)
	}()
	owed := false
	defer func() { // also when emit panics: nobody is left behind
		cancel()
		if owed {
			told <- struct{}{}
		}
		for {
			select {
			case <-facts:
				told <- struct{}{}
			case <-done:
				return
			}
		}
	}()
	for running := true; running; {
		select {
		case d := <-facts:
			owed = true
			emit(d)
			owed = false
			told <- struct{}{}
		case <-done:
			running = false
		}
	}
	for i := range calls {
		w.settle(&calls[i], s)
	}
}
