package engine

import (
	"context"
	"errors"
	"sync"

	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
)

// maxFlushing is the maximum number of ended runs that are being stored in the background. Beyond it, a run is stored before its end is
// published.
const maxFlushing = 256

var errStorePanicked = errors.New("the store panicked")

// recovered sets err to the error instead after a panic, whose value may contain content. It is to be deferred.
func recovered(err *error, instead error) {
	if recover() != nil {
		*err = instead
	}
}

// A deferredRun contains the buffered events of a run of durability [Deferred]: those that are published but not stored.
//
// Invariant: the stored events are a prefix of the run's events, without gaps. So the buffer is stored as a whole, once, by the first of
// these:
//
//   - an event for which mustPersist returns true: it is stored with the buffer, before it is published;
//   - [Engine.Flush], because a reader asks for the run;
//   - the end of the run, in the background.
//
// After that, each event is stored before it is published. For example, in a run whose tool writes:
//
//	RunStarted, ModelCallStarted, ModelCallFinished   buffered, published
//	ToolCallPlanned                                    mustPersist: it and the buffer are appended in one call
//	ToolCallResult, RunFinished                        appended one by one
type deferredRun struct {
	engine      *Engine
	runID       string
	mustPersist func(event.Data) bool // called only by the goroutine of the run; nil: false for each event

	mu       sync.Mutex // held while events of the run are stored
	open     bool       // events are buffered
	buffered []event.Event
	owned    *claimHandle // nil: the store is not shared
}

// add buffers ev, or stores it after the buffered events.
func (r *deferredRun) add(ctx context.Context, ev *event.Event) error {
	must := r.mustPersist != nil && r.mustPersist(ev.Data)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.open {
		return r.engine.put(ctx, r.owned, r.runID, ev.ID-1, []event.Event{*ev})
	}
	r.buffered = append(r.buffered, *ev)
	if must {
		return r.flush(ctx)
	}
	if loop.Ended(ev.Data) != nil {
		r.open = false
		r.owned.noteOver() // another process has no access to the run
		r.engine.storeLater(ctx, r.runID, r.buffered)
	}
	return nil
}

// flush stores the buffered events; later events are stored one by one. r.mu is held.
func (r *deferredRun) flush(ctx context.Context) error {
	if !r.open || len(r.buffered) == 0 {
		return nil
	}
	if err := r.engine.put(ctx, r.owned, r.runID, 0, r.buffered); err != nil {
		return err
	}
	r.open, r.buffered = false, nil
	return nil
}

// untouched reports whether no event of the run is stored.
func (r *deferredRun) untouched() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open
}

// deferPersistence buffers the events of the run that s executes until the caller calls done.
func (s *stamper) deferPersistence(mustPersist func(event.Data) bool) (done func()) {
	e, id := s.engine, s.run.RunID
	r := &deferredRun{engine: e, runID: id, mustPersist: mustPersist, open: true, owned: s.owned}
	s.deferred = r
	e.mu.Lock()
	e.deferred[id] = r
	e.mu.Unlock()
	return func() {
		e.mu.Lock()
		if e.deferred[id] == r {
			delete(e.deferred, id)
		}
		e.mu.Unlock()
		r.mu.Lock() // Flush may be using the claim, which the caller releases next
		r.open, r.buffered = false, nil
		r.mu.Unlock()
	}
}

// Flush stores the published events of a run of durability [Deferred], whether the run is in progress or has just ended. If runID is "", it
// does so for all runs. It blocks until the events are stored. Afterwards, each new event of a run in progress is stored before it is
// published.
//
// Flush returns the first error of the store for a run in progress, and the error of ctx if ctx is done earlier. If the events of an ended
// run cannot be stored, Flush logs that and returns no error for it. If runID is unknown, Flush does nothing.
func (e *Engine) Flush(ctx context.Context, runID string) error {
	e.mu.Lock()
	var inProgress []*deferredRun
	var ending []chan struct{}
	for id, r := range e.deferred {
		if runID == "" || runID == id {
			inProgress = append(inProgress, r)
		}
	}
	e.mu.Unlock()
	for _, r := range inProgress {
		r.mu.Lock()
		err := r.flush(ctx)
		r.mu.Unlock()
		if err != nil {
			return err
		}
	}
	e.mu.Lock() // after the flushes, since a run may have ended during them
	for id, stored := range e.flushing {
		if runID == "" || runID == id {
			ending = append(ending, stored)
		}
	}
	e.mu.Unlock()
	for _, stored := range ending {
		select {
		case <-stored:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// storeLater stores a run that has ended: in the background, or before it returns if FlushBeforeEnd is set or maxFlushing runs are being
// stored.
func (e *Engine) storeLater(ctx context.Context, runID string, events []event.Event) {
	stored := make(chan struct{})
	e.mu.Lock()
	atOnce := e.opts.FlushBeforeEnd || len(e.flushing) >= maxFlushing
	if !atOnce {
		e.flushing[runID] = stored
	}
	e.mu.Unlock()
	if atOnce {
		e.storeWhole(ctx, runID, events)
		return
	}
	go func() {
		e.storeWhole(ctx, runID, events)
		e.mu.Lock()
		delete(e.flushing, runID)
		e.mu.Unlock()
		close(stored)
	}()
}

// storeWhole stores a run that has ended. An error or a panic of the store is logged.
func (e *Engine) storeWhole(ctx context.Context, runID string, events []event.Event) {
	if err := e.put(ctx, nil, runID, 0, events); err != nil {
		e.opts.Log.Error("a run that has ended could not be stored", "run_id", runID, "events", len(events), "code", storeCode(err), "cause", storeCause(err))
	}
}
