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
)

var _ lathe.Store = (*Memory)(nil)

// A Memory keeps logs until the process ends. Its methods may be called from several goroutines at
// once. A read sees the log as it was when the read began, and holds up no append.
//
// Errors are *[lathe.Error]: conflict (wraps [lathe.ErrConflict]), not_found (wraps
// [lathe.ErrNotFound]), invalid_request for events that do not fit the log, unavailable where a
// limit is reached, and cancelled or timeout when ctx is done.
type Memory struct {
	maxRuns, maxFinished, maxEvents int
	maxBytes                        int64 // 0: no bound
	share                           int   // how many times one principal's part goes into the whole; at least 1
	now                             func() time.Time

	mu       sync.RWMutex
	runs     map[string]*journal
	bytes    int64                 // what all runs take
	holdings map[string]*holding   // by principal; those that have runs
	finished *list.List            // of journals, the longest finished in front
	nodes    map[string]advertised // by name
	watchers map[*watcher]struct{}
	gone     map[string]lathe.GoneError // by run; see retain.go
	queue    callQueue                  // with a lock of its own, which is taken last
	requests requests                   // by digest; see request.go
}

// MemoryOptions bound a [Memory].
type MemoryOptions struct {
	// MaxRuns bounds the runs that are kept: 1 000. A run beyond it takes the place of the one
	// that finished first; where none has finished, it is refused.
	MaxRuns int
	// MaxFinished bounds those of them that have finished; zero: MaxRuns.
	MaxFinished int
	// MaxEvents bounds the events of one run: 100 000. Events beyond it are refused.
	MaxEvents int
	// MaxBytes bounds what the runs take, which is estimated from their texts: zero, there is no bound. Beyond it the runs that
	// finished first are forgotten, and where that would not make room for a new run it is refused, and
	// none is forgotten. Runs that have begun are kept whatever they take.
	MaxBytes int64
	// Share bounds the part of one principal, where principals share the store: with 4 its runs that
	// have not finished are at most a quarter of MaxRuns, and a new run of its own finds room within a
	// quarter of MaxBytes, where its finished runs are forgotten first, or is refused. Of all finished
	// runs those of the principal that has most of them are forgotten first, and what one has beyond its
	// part keeps no other from beginning runs. Zero or one, and for runs without a principal: no bound but those of all.
	Share int
	// Now is the clock of claims and facts; nil: time.Now.
	Now func() time.Time
}

// NewMemory returns an empty store.
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
	return &Memory{maxRuns: o.MaxRuns, maxFinished: o.MaxFinished, maxEvents: o.MaxEvents, maxBytes: o.MaxBytes, share: max(o.Share, 1), now: o.Now,
		runs: map[string]*journal{}, holdings: map[string]*holding{}, finished: list.New(),
		gone: map[string]lathe.GoneError{}, nodes: map[string]advertised{}, watchers: map[*watcher]struct{}{}}
}

// A journal is the log of one run. What stands in events never changes: an append writes beyond
// the length that earlier readers know.
type journal struct {
	id       string
	of       *holding
	events   []lathe.Event
	sum      Summary       // of events
	finished *list.Element // nil while the run may go on
	claim    claim
	facts    []lathe.Fact
	bytes    int64 // what it takes
}

// Append implements [lathe.Store]. It keeps copies: the caller may change its events afterwards.
func (s *Memory) Append(ctx context.Context, runID string, last int64, events ...lathe.Event) (int64, error) {
	return s.append(ctx, runID, last, events, nil)
}

// append adds events, for the holder of a claim where there is one.
func (s *Memory) append(ctx context.Context, runID string, last int64, events []lathe.Event, by *lathe.Claim) (int64, error) {
	const op = "store: append"
	if err := ended(ctx, op); err != nil {
		return 0, err
	}
	if err := Fits(runID, last, events); err != nil {
		return 0, &lathe.Error{Code: lathe.CodeInvalidRequest, Op: op, Err: err}
	}
	copies := make([]lathe.Event, len(events))
	var size int64
	for i := range events {
		c, err := clone(events[i])
		if err != nil {
			return 0, &lathe.Error{Code: lathe.CodeInvalidRequest, Op: op, Err: err}
		}
		copies[i] = c
		size += weightOf(&copies[i])
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.runs[runID]
	var end int64
	if j != nil {
		end = int64(len(j.events))
	}
	if end != last || by != nil && !j.takes(by) {
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
		if err := s.makeRoom(principal, size); err != nil {
			return 0, &lathe.Error{Code: lathe.CodeUnavailable, Op: op, Err: err}
		}
		j = &journal{id: runID, of: s.holding(principal)}
		j.of.runs++
		s.runs[runID] = j
	}
	j.events = append(j.events, copies...)
	s.weigh(j, size)
	for i := range copies {
		j.sum.Apply(&copies[i])
	}
	if by != nil && by.Epoch == 0 {
		j.claim = claim{node: by.Node, epoch: 1, until: s.now().Add(by.Lease)}
	}
	s.noteEnd(j)
	s.hint(runID)
	return int64(len(j.events)), nil
}

// Read implements [lathe.Store]. A run that is not there, and an ID that its log does not have,
// are [lathe.ErrNotFound]. The events are the caller's own.
func (s *Memory) Read(ctx context.Context, runID string, after int64) iter.Seq2[lathe.Event, error] {
	const op = "store: read"
	return func(yield func(lathe.Event, error) bool) {
		if err := ended(ctx, op); err != nil {
			yield(lathe.Event{}, err)
			return
		}
		s.mu.RLock()
		var events []lathe.Event
		if j := s.runs[runID]; j != nil {
			events = j.events
		}
		s.mu.RUnlock()
		if len(events) == 0 || after < 0 || after > int64(len(events)) {
			yield(lathe.Event{}, &lathe.Error{Code: lathe.CodeNotFound, Op: op, Err: s.missing(runID)})
			return
		}
		for _, e := range events[after:] {
			if err := ended(ctx, op); err != nil {
				yield(lathe.Event{}, err)
				return
			}
			c, err := clone(e)
			if err != nil {
				yield(lathe.Event{}, &lathe.Error{Code: lathe.CodeInternal, Op: op, Err: err})
				return
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}

// Delete implements [lathe.Store]. Reads that have begun see the whole log.
func (s *Memory) Delete(ctx context.Context, runID string) error {
	if err := ended(ctx, "store: delete"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(runID)
	s.forgetRequests(func(id string) bool { return id == runID })
	delete(s.gone, runID)
	return nil
}

// Fits says why the events cannot stand after last in the log of the run.
func Fits(runID string, last int64, events []lathe.Event) error {
	if runID == "" {
		return errors.New("the run has no id")
	}
	if last < 0 {
		return fmt.Errorf("the last id is %d", last)
	}
	for i := range events {
		e := &events[i]
		switch {
		case e.Data == nil:
			return fmt.Errorf("event %d has no data", e.ID)
		case lathe.IsDelta(e.Data):
			return fmt.Errorf("%s is live only", e.Data.EventType())
		case e.RunID != runID:
			return fmt.Errorf("event %d is of another run", e.ID)
		case e.ID != last+int64(i)+1:
			return fmt.Errorf("event %d where %d is next", e.ID, last+int64(i)+1)
		}
	}
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
