package engine

import (
	"context"
	"errors"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/loop"
)

// maxLate bounds the runs that are being stored after their end. Where there are as many, a run that ends
// is stored before its end is told.
const maxLate = 256

// RunLazily is [Engine.Run] for a run that nobody asked to survive the end of this process. Its events are
// told before they are stored, until due says of one that it has to be on record before anything follows
// from it: that one and those before it are stored together, and from there on the run is carried like any
// other. A run of which nothing was due is stored whole while its end is told; see [Engine.Settle] and [Options.StoreAtOnce]. Should
// the process end, or the store fail, until then, there is no record of it. What is audited is audited at once.
//
// due is called with the data of each event that is no delta, in order, by the goroutine that carries the run.
func (e *Engine) RunLazily(ctx context.Context, l *loop.Loop, in *loop.Input, due func(lathe.EventData) bool, sinks ...lathe.Sink) (*lathe.Result, error) {
	return e.run(ctx, l, in, due, sinks)
}

// Settle waits until the run is stored that ended a moment ago, or with "" all such runs. It is cut short by
// ctx, whose error it returns then.
func (e *Engine) Settle(ctx context.Context, runID string) error {
	e.mu.Lock()
	var wait []chan struct{}
	for id, stored := range e.late {
		if runID == "" || runID == id {
			wait = append(wait, stored)
		}
	}
	e.mu.Unlock()
	for _, stored := range wait {
		select {
		case <-stored:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// holdBack keeps ev from the store for now, and reports whether it did.
func (s *stamper) holdBack(ctx context.Context, ev *lathe.Event) bool {
	if s.due == nil {
		return false
	}
	if s.due(ev.Data) {
		s.due = nil
		return false
	}
	s.back = append(s.back, *ev)
	if loop.Ended(ev.Data) != nil {
		s.engine.storeLater(ctx, s.run.RunID, s.back)
		s.back = nil
	}
	return true
}

// storeLater stores a run that ends, in the background.
func (e *Engine) storeLater(ctx context.Context, runID string, events []lathe.Event) {
	ctx = context.WithoutCancel(ctx)
	if e.opts.StoreAtOnce {
		e.storeWhole(ctx, runID, events)
		return
	}
	e.mu.Lock()
	if len(e.late) >= maxLate {
		e.mu.Unlock()
		e.storeWhole(ctx, runID, events)
		return
	}
	stored := make(chan struct{})
	e.late[runID] = stored
	e.mu.Unlock()
	go func() {
		defer func() {
			e.mu.Lock()
			delete(e.late, runID)
			e.mu.Unlock()
			close(stored)
		}()
		e.storeWhole(ctx, runID, events)
	}()
}

func (e *Engine) storeWhole(ctx context.Context, runID string, events []lathe.Event) {
	ctx, cancel := context.WithTimeout(ctx, e.opts.StoreTimeout)
	defer cancel()
	err := errors.New("the store panicked")
	func() {
		defer func() { _ = recover() }() // its value may hold content
		_, err = e.opts.Store.Append(ctx, runID, 0, events...)
	}()
	if err != nil {
		e.opts.Log.Error("a run that has ended could not be stored", "run_id", runID, "events", len(events), "code", storeCode(err))
	}
}
