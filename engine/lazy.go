package engine

import (
	"context"
	"errors"
	"sync"

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

// A reserve is what a run of RunLazily has told and not stored.
type reserve struct {
	engine *Engine
	runID  string
	due    func(lathe.EventData) bool // called by the run alone

	mu   sync.Mutex // held while anything of the run is stored
	open bool       // events are kept back
	back []lathe.Event
	hold *hold // nil: nobody else could carry the run
}

// take stores ev and what was kept back before it, or keeps it back.
func (r *reserve) take(ctx context.Context, ev *lathe.Event) error {
	due := r.due(ev.Data)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.open {
		return r.engine.put(ctx, r.hold, r.runID, ev.ID-1, []lathe.Event{*ev})
	}
	if r.back = append(r.back, *ev); due {
		return r.spend(ctx)
	}
	if loop.Ended(ev.Data) != nil {
		r.open = false
		r.hold.saw(0, true) // there is no claim to give back
		r.engine.storeLater(ctx, r.runID, r.back)
	}
	return nil
}

// spend stores what was kept back; events are stored one by one from then on. r.mu is held.
func (r *reserve) spend(ctx context.Context) error {
	if len(r.back) == 0 {
		return nil
	}
	if err := r.engine.put(ctx, r.hold, r.runID, 0, r.back); err != nil {
		return err
	}
	r.open, r.back = false, nil
	return nil
}

// untouched reports whether nothing of the run was stored.
func (r *reserve) untouched() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open
}

// keepBack has the events of the run that s carries kept back, until done is called.
func (s *stamper) keepBack(due func(lathe.EventData) bool) (done func()) {
	e, id := s.engine, s.run.RunID
	r := &reserve{engine: e, runID: id, due: due, open: true, hold: s.hold}
	s.reserve = r
	e.mu.Lock()
	e.lazy[id] = r
	e.mu.Unlock()
	return func() {
		e.mu.Lock()
		if e.lazy[id] == r {
			delete(e.lazy, id)
		}
		e.mu.Unlock()
		r.mu.Lock() // whoever stores what was kept back uses the claim, which is about to be given back
		r.open, r.back = false, nil
		r.mu.Unlock()
	}
}

// Settle has what [Engine.RunLazily] has told of a run stored, whether the run goes on or has just ended, so
// that the store has it when Settle returns; with "" it does so for all runs. It is cut short by ctx.
func (e *Engine) Settle(ctx context.Context, runID string) error {
	e.mu.Lock()
	var going []*reserve
	var wait []chan struct{}
	for id, r := range e.lazy {
		if runID == "" || runID == id {
			going = append(going, r)
		}
	}
	for id, stored := range e.late {
		if runID == "" || runID == id {
			wait = append(wait, stored)
		}
	}
	e.mu.Unlock()
	for _, r := range going {
		if err := e.settle(ctx, r); err != nil {
			return err
		}
	}
	if len(going) > 0 { // one of them may have ended meanwhile
		e.mu.Lock()
		for id, stored := range e.late {
			if runID == "" || runID == id {
				wait = append(wait, stored)
			}
		}
		e.mu.Unlock()
	}
	for _, stored := range wait {
		select {
		case <-stored:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// settle stores what a run that goes on has kept back.
func (e *Engine) settle(ctx context.Context, r *reserve) (err error) {
	// Whoever asks may leave; the run has to know whether its events are stored.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.opts.StoreTimeout)
	defer cancel()
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() {
		if recover() != nil { // its value may hold content
			err = errors.New("the store panicked")
		}
	}()
	if !r.open {
		return nil
	}
	return r.spend(ctx)
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
		e.opts.Log.Error("a run that has ended could not be stored", "run_id", runID, "events", len(events), "code", storeCode(err), "cause", storeCause(err))
	}
}
