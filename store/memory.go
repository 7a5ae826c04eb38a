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

// A Memory stores runs in memory; they are lost when the process ends. It implements [remote.Queue] and all interfaces of this package
// except [LossWatcher]. Its methods may be called from several goroutines at once. Read returns the log as of its start and does not block
// appends.
//
// Errors are *[lathe.Error]: conflict (wraps [lathe.ErrConflict]), not_found (wraps [lathe.ErrNotFound]), invalid_request for events that
// do not fit the log, unavailable if a limit of [MemoryOptions] is reached, and cancelled or timeout if ctx is done.
type Memory struct {
	*Records
	*core
	kept     journals
	rows     memoryRows
	nodes    map[string]advertised // addresses by node name
	watchers watchers[string]
}

// MemoryOptions are the limits and the clock of a [Memory]. A negative limit has the effect of 0. If a method refuses to store something
// because of a limit, its error has the code unavailable.
type MemoryOptions struct {
	// MaxRuns is the maximum number of runs; 0: 1,000. A new run beyond it replaces the run that finished first; if no run has finished,
	// the new run is refused.
	MaxRuns int
	// MaxFinished is the maximum number of finished runs; 0: MaxRuns. Beyond it, the runs that finished first are removed.
	MaxFinished int
	// MaxEvents is the maximum number of events of one run; 0: 100,000. Further events are refused.
	MaxEvents int
	// MaxBytes is the maximum memory of all runs in bytes; 0: no limit. The memory of a run is estimated from all its texts: a text that
	// several runs share counts for each of them. To make space for a new run, the runs that finished first are removed; if that is not
	// enough, the new run is refused. Running and parked runs are never removed.
	MaxBytes int64
	// Share limits each principal to the fraction 1/Share of the store; 0 and 1: no limit. If Share is 4, a principal may have at most a
	// quarter of MaxRuns as unfinished runs, and its runs must fit into a quarter of MaxBytes. To make space for its new run, its own
	// finished runs are removed; if that is not enough, the new run is refused. To make space for another principal, the finished runs of
	// the principal with the most are removed first. Runs without a principal are not limited by Share.
	Share int
	// Now is the clock for claims, signals, worker calls and workers; nil: time.Now.
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
	o.Share = max(o.Share, 1)
	s := &Memory{core: &core{now: o.Now}, nodes: map[string]advertised{}}
	s.rows = memoryRows{
		memoryCalls{calls: map[string]*list.Element{}, workers: map[string]*memoryWorker{}},
		memoryLedger{map[Account]*Balance{}, map[UsageKey]*Counts{}, map[string]memoryReservation{}},
		memoryRequests{requests: map[RequestDigest]*list.Element{}},
		memoryValues{}, &s.kept, &s.watchers,
	}
	s.kept = journals{MemoryOptions: o, removed: s.rows.forgetCalls, runs: map[string]*journal{}, usages: map[string]*usage{}, gone: map[string]*GoneError{}}
	s.Records = NewRecords(s.change)
	return s
}

// change implements the transactions of [NewRecords].
func (s *Memory) change(ctx context.Context, op string, write bool, fn func(Rows, time.Time) error) error {
	return s.do(ctx, op, func(now time.Time) error {
		s.rows.at, s.rows.writes = now, write
		return fn(&s.rows, now)
	})
}

// A core contains the mutex and the clock of a [Memory].
type core struct {
	mu  sync.Mutex
	now func() time.Time
}

// do executes fn under the lock, with the current time, unless ctx is done. It returns the error of fn as a *[lathe.Error]. If that error
// has no code and wraps neither [lathe.ErrConflict] nor [lathe.ErrNotFound], it means that a limit is reached, and gets the code
// unavailable.
func (c *core) do(ctx context.Context, op string, fn func(now time.Time) error) error {
	if err := ctx.Err(); err != nil {
		return failure(op, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return failure(op, fn(c.now()))
}

func failure(op string, err error) error {
	if err == nil {
		return nil
	}
	var known *lathe.Error
	code := lathe.CodeUnavailable
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, lathe.ErrConflict):
		code = lathe.CodeConflict
	case errors.Is(err, lathe.ErrNotFound):
		code = lathe.CodeNotFound
	case errors.Is(err, context.DeadlineExceeded):
		code = lathe.CodeTimeout
	case errors.Is(err, context.Canceled):
		code = lathe.CodeCancelled
	}
	return code.Wrap("store: "+op, err)
}

// Append implements [Store]. It stores copies: the caller may change the events that it has passed.
func (s *Memory) Append(ctx context.Context, runID string, last int64, events ...event.Event) (int64, error) {
	return s.append(ctx, runID, last, events, nil)
}

// append adds events, under the claim by if it is not nil.
func (s *Memory) append(ctx context.Context, runID string, last int64, events []event.Event, by *Claim) (end int64, err error) {
	const op = "append"
	if err := CheckAppend(runID, last, events); err != nil {
		return 0, invalid(op, err)
	}
	copies := make([]event.Event, len(events))
	var size int64
	for i := range events {
		copies[i] = Copy(events[i])
		size += weightOf(&copies[i])
	}
	texts := share(copies)
	err = s.do(ctx, op, func(now time.Time) error {
		j := s.kept.runs[runID]
		if j != nil {
			end = int64(len(j.events))
		}
		hasClaim := by == nil || j.accepts(by)
		switch {
		case end != last || !hasClaim:
			return lathe.ErrConflict
		case len(copies) == 0:
			return nil
		case len(copies) > s.kept.MaxEvents-int(end):
			return fmt.Errorf("max_events: a run has at most %d events", s.kept.MaxEvents)
		}
		if j == nil {
			if j, err = s.kept.start(runID, principalOf(copies), size); err != nil {
				return err
			}
		}
		if end == 0 {
			j.events = copies
		} else {
			j.events = append(j.events, copies...)
		}
		j.texts = append(j.texts, texts...)
		s.kept.weigh(j, size)
		for i := range copies {
			j.sum.Apply(&copies[i])
		}
		if by != nil && by.Epoch == 0 {
			j.claim = claim{node: by.Node, epoch: 1, until: now.Add(by.Lease)}
		}
		s.kept.noteEnd(j)
		s.watchers.notify(runID)
		end += int64(len(copies))
		return nil
	})
	return end, err
}

// Read implements [Store]. If the run does not exist, or after is negative or above the last ID of its log, the error wraps
// [lathe.ErrNotFound]. The caller owns the events.
func (s *Memory) Read(ctx context.Context, runID string, after int64) iter.Seq2[event.Event, error] {
	const op = "read"
	return func(yield func(event.Event, error) bool) {
		var events []event.Event // a later append writes only behind this length
		err := s.do(ctx, op, func(time.Time) error {
			if j := s.kept.runs[runID]; j != nil {
				events = j.events
			}
			if len(events) == 0 || after < 0 || after > int64(len(events)) {
				return s.kept.missing(runID)
			}
			return nil
		})
		for i := after; err == nil && i < int64(len(events)); i++ {
			if err = ctx.Err(); err == nil && !yield(Copy(events[i]), nil) {
				return
			}
		}
		if err != nil {
			yield(event.Event{}, failure(op, err))
		}
	}
}

// Delete implements [Store]. A Read that has begun still yields the whole log.
func (s *Memory) Delete(ctx context.Context, runID string) error {
	return s.do(ctx, "delete", func(time.Time) error {
		s.kept.forget(runID)
		s.rows.forgetRequestsOf(func(id string) bool { return id == runID })
		delete(s.kept.gone, runID)
		return nil
	})
}

// invalid returns err with the code invalid_request.
func invalid(op string, err error) error {
	return lathe.CodeInvalidRequest.Wrap("store: "+op, err)
}
