package store

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

var _ Store = (*Memory)(nil)

// A Memory stores runs in memory, until the process ends. It implements every interface of this package except
// [LossWatcher], and [remote.Queue]. Its methods may be called from several goroutines at once. A read sees the log as it
// was when the read began, and delays no append.
//
// Errors are *[lathe.Error]: conflict (wraps [lathe.ErrConflict]), not_found (wraps
// [lathe.ErrNotFound]), invalid_request for events that do not fit the log, unavailable if a
// limit is reached, and cancelled or timeout if ctx is done.
//
// Locks are taken in the order of the Memory, its CallQueue, its RequestRecords. Its SharedSecrets and NamedValues take no other lock.
type Memory struct {
	*CallQueue
	*RequestRecords
	*SharedSecrets
	*LedgerRecords
	*NamedValues
	maxEvents int
	now       func() time.Time

	mu       sync.RWMutex
	kept     journals
	inputs   inputs
	nodes    map[string]advertised // by name
	watchers watchers
}

// MemoryOptions bound a [Memory].
type MemoryOptions struct {
	// MaxRuns is the most runs that are kept: 1,000. A run beyond it replaces the run that finished first, and is
	// refused if no run has finished.
	MaxRuns int
	// MaxFinished is the most of them that have finished; 0: MaxRuns.
	MaxFinished int
	// MaxEvents is the most events of one run: 100,000. Events beyond it are refused.
	MaxEvents int
	// MaxBytes is the most memory of all runs, in bytes, as estimated from their texts; 0: no limit. Beyond it the runs
	// that finished first are removed. If that would not make room for a new run, the new run is refused and none is
	// removed. Running and parked runs are kept, whatever they take.
	MaxBytes int64
	// Share limits the part of one principal if principals share the store. With 4, the unfinished runs of a principal are
	// at most a quarter of MaxRuns, and its new runs must fit into a quarter of MaxBytes: its own finished runs are removed
	// first, and then a new run is refused. If finished runs must be removed, those of the principal that has most of them
	// are removed first, and what a principal has beyond its part prevents no other from starting runs. 0, 1, and runs
	// without a principal: no limit but those of all runs.
	Share int
	// Now is the clock of claims, signals, calls and workers; nil: time.Now.
	Now func() time.Time
}

// NewMemory returns an empty store. opts may be nil.
func NewMemory(opts *MemoryOptions) *Memory {
	var o MemoryOptions
	if opts != nil {
		o = *opts
	}
	if o.MaxRuns <= 0 {
		o.MaxRuns = 1_000
	}
	if o.MaxEvents <= 0 {
		o.MaxEvents = 100_000
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.MaxFinished <= 0 {
		o.MaxFinished = o.MaxRuns
	}
	s := &Memory{maxEvents: o.MaxEvents, now: o.Now, nodes: map[string]advertised{}, watchers: watchers{}}
	s.kept = journals{maxRuns: o.MaxRuns, maxFinished: o.MaxFinished, maxBytes: o.MaxBytes, share: max(o.Share, 1), now: o.Now,
		runs: map[string]*journal{}, usages: map[string]*usage{}, finished: list.New(), gone: newGoneRuns()}
	s.CallQueue = newCallQueue(o.Now, func(runID string) bool {
		s.mu.RLock()
		defer s.mu.RUnlock()
		j := s.kept.runs[runID]
		return j != nil && !j.over()
	})
	s.kept.removed = s.CallQueue.forgetRun
	s.SharedSecrets = &SharedSecrets{}
	s.LedgerRecords = newLedgerRecords()
	s.NamedValues = &NamedValues{}
	s.RequestRecords = &RequestRecords{now: o.Now, of: map[RequestDigest]*requestRow{}}
	return s
}

// A journal is the log of one run. Elements of events never change: an append writes behind the length that earlier
// readers have taken.
type journal struct {
	id       string
	of       *usage
	events   []event.Event
	sum      Summary       // of events
	finished *list.Element // among the finished runs; nil until the run has ended
	own      *list.Element // among those of its principal
	ended    int64         // the number of its end, among all ends
	claim    claim
	signals  []Signal
	bytes    int64 // what it takes
}

// Append implements [Store]. It keeps copies: the caller may change its events afterwards.
func (s *Memory) Append(ctx context.Context, runID string, last int64, events ...event.Event) (int64, error) {
	return s.append(ctx, runID, last, events, nil)
}

// append adds events, for the holder of a claim where there is one.
func (s *Memory) append(ctx context.Context, runID string, last int64, events []event.Event, by *Claim) (int64, error) {
	const op = "store: append"
	if err := ended(ctx, op); err != nil {
		return 0, err
	}
	if err := CheckAppend(runID, last, events); err != nil {
		return 0, &lathe.Error{Code: lathe.CodeInvalidRequest, Op: op, Err: err}
	}
	copies := make([]event.Event, len(events))
	var size int64
	for i := range events {
		c, err := clone(events[i], &s.inputs)
		if err != nil {
			return 0, &lathe.Error{Code: lathe.CodeInvalidRequest, Op: op, Err: err}
		}
		copies[i] = c
		size += weightOf(&copies[i])
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.kept.runs[runID]
	var end int64
	if j != nil {
		end = int64(len(j.events))
	}
	if end != last || by != nil && !j.accepts(by) {
		return end, &lathe.Error{Code: lathe.CodeConflict, Op: op, Err: lathe.ErrConflict}
	}
	if len(events) == 0 {
		return end, nil
	}
	if len(copies) > s.maxEvents-int(end) {
		return end, &lathe.Error{Code: lathe.CodeUnavailable, Op: op, Err: fmt.Errorf("max_events: a run has at most %d events", s.maxEvents)}
	}
	if j == nil {
		principal := principalOf(copies)
		if err := s.kept.evictFor(principal, size); err != nil {
			return 0, &lathe.Error{Code: lathe.CodeUnavailable, Op: op, Err: err}
		}
		j = &journal{id: runID, of: s.kept.usageOf(principal)}
		j.of.runs++
		s.kept.runs[runID] = j
	}
	if len(j.events) == 0 {
		j.events = copies
	} else {
		j.events = append(j.events, copies...)
	}
	s.kept.weigh(j, size)
	for i := range copies {
		j.sum.Apply(&copies[i])
	}
	if by != nil && by.Epoch == 0 {
		j.claim = claim{node: by.Node, epoch: 1, until: s.now().Add(by.Lease)}
	}
	s.kept.noteEnd(j)
	s.watchers.notify(runID)
	return int64(len(j.events)), nil
}

// Read implements [Store]. A run that is not there, and an ID that its log does not have,
// are [lathe.ErrNotFound]. The events are the caller's own.
func (s *Memory) Read(ctx context.Context, runID string, after int64) iter.Seq2[event.Event, error] {
	const op = "store: read"
	return func(yield func(event.Event, error) bool) {
		if err := ended(ctx, op); err != nil {
			yield(event.Event{}, err)
			return
		}
		s.mu.RLock()
		var events []event.Event
		if j := s.kept.runs[runID]; j != nil {
			events = j.events
		}
		missing := s.kept.missing(runID)
		s.mu.RUnlock()
		if len(events) == 0 || after < 0 || after > int64(len(events)) {
			yield(event.Event{}, &lathe.Error{Code: lathe.CodeNotFound, Op: op, Err: missing})
			return
		}
		for _, e := range events[after:] {
			if err := ended(ctx, op); err != nil {
				yield(event.Event{}, err)
				return
			}
			c, err := clone(e, nil)
			if err != nil {
				yield(event.Event{}, &lathe.Error{Code: lathe.CodeInternal, Op: op, Err: err})
				return
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}

// Delete implements [Store]. Reads that have begun see the whole log.
func (s *Memory) Delete(ctx context.Context, runID string) error {
	if err := ended(ctx, "store: delete"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept.forget(runID)
	s.RequestRecords.forget(func(id string) bool { return id == runID })
	s.kept.gone.remove(runID)
	return nil
}

// ended returns the error of a context that is done.
func ended(ctx context.Context, op string) error {
	err := ctx.Err()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return &lathe.Error{Code: lathe.CodeTimeout, Op: op, Err: err}
	default:
		return &lathe.Error{Code: lathe.CodeCancelled, Op: op, Err: err}
	}
}
