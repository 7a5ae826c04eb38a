package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
)

var _ lathe.CallQueue = (*Memory)(nil)

// maxCalls bounds the calls that a Memory keeps, and maxWorkers the workers.
const (
	maxCalls   = 100_000
	maxWorkers = 10_000
)

// callQueue is the part of a Memory that keeps calls. Its zero value is empty.
type callQueue struct {
	mu      sync.Mutex
	calls   map[string]*queued
	open    []*queued // those that have not ended, in the order in which they were queued
	workers map[string]*present
	came    int64 // counts the workers
	hints   CallHints
}

// A queued call, with what only the queue knows of it.
type queued struct {
	lathe.RemoteCall
	args     [sha256.Size]byte
	starts   int
	deadline time.Time
	lease    time.Time
	ended    time.Time
}

// present is a worker.
type present struct {
	lathe.Worker
	order int64
	until time.Time
}

// CallMisfit says why a call cannot be queued.
func CallMisfit(op string, c *lathe.RemoteCall) error {
	if c.Key == "" || c.Tool == "" || c.Definition == "" || !json.Valid(c.Arguments) {
		return &lathe.Error{Code: lathe.CodeInvalidRequest, Op: op, Err: errors.New("a call has a key, a tool, its definition, and arguments in JSON")}
	}
	return nil
}

// ArgumentsHash tells calls with other arguments from each other, in place of the arguments.
func ArgumentsHash(c *lathe.RemoteCall) string {
	sum := sha256.Sum256(c.Arguments)
	return hex.EncodeToString(sum[:])
}

// NotHeld is the error of whoever does not hold a call.
func NotHeld(op string) error {
	return &lathe.Error{Code: lathe.CodeConflict, Op: op, Err: lathe.ErrConflict}
}

// NoCall is the error for a key that is not there.
func NoCall(op string) error {
	return &lathe.Error{Code: lathe.CodeNotFound, Op: op, Err: lathe.ErrNotFound}
}

// lockCalls begins an operation; the queue is locked where there is no error.
func (s *Memory) lockCalls(ctx context.Context, op string) (*callQueue, time.Time, error) {
	if err := ended(ctx, op); err != nil {
		return nil, time.Time{}, err
	}
	q := &s.queue
	q.mu.Lock()
	if q.calls == nil {
		q.calls, q.workers = map[string]*queued{}, map[string]*present{}
	}
	return q, s.now(), nil
}

// row returns a copy of what is told of a call.
func (c *queued) row(now time.Time) *lathe.RemoteCall {
	out := c.RemoteCall
	out.Arguments, out.Left = bytes.Clone(c.Arguments), c.deadline.Sub(now)
	if c.Result != nil {
		out.Result = cloneResult(c.Result)
	}
	return &out
}

func cloneResult(r *lathe.CallResult) *lathe.CallResult {
	out := *r
	out.Data, out.Blobs = bytes.Clone(r.Data), slices.Clone(r.Blobs)
	for i := range out.Blobs {
		out.Blobs[i] = cloneBlob(out.Blobs[i])
	}
	return &out
}

// PutCall implements [lathe.CallQueue].
func (s *Memory) PutCall(ctx context.Context, c *lathe.RemoteCall, within time.Duration) (*lathe.RemoteCall, error) {
	const op = "store: queue a call"
	if err := CallMisfit(op, c); err != nil {
		return nil, err
	}
	q, now, err := s.lockCalls(ctx, op)
	if err != nil {
		return nil, err
	}
	if len(q.calls) >= maxCalls { // what ended goes before its time
		q.mu.Unlock()
		s.forgetCalls(now)
		q.mu.Lock()
	}
	defer q.mu.Unlock()
	sum := sha256.Sum256(c.Arguments)
	if has := q.calls[c.Key]; has != nil {
		if has.Tool != c.Tool || has.args != sum {
			return nil, NotHeld(op)
		}
		return has.row(now), nil
	}
	if len(q.calls) >= maxCalls {
		return nil, &lathe.Error{Code: lathe.CodeUnavailable, Op: op, Err: fmt.Errorf("%d calls are kept, and no more can be", maxCalls)}
	}
	own := &queued{args: sum, deadline: now.Add(within), RemoteCall: lathe.RemoteCall{Key: c.Key, RunID: c.RunID, CallID: c.CallID, RequestID: c.RequestID,
		SessionID: c.SessionID, Depth: c.Depth, Trace: c.Trace, Tool: c.Tool, Definition: c.Definition, Effect: c.Effect, Arguments: bytes.Clone(c.Arguments), State: lathe.CallQueued}}
	q.calls[c.Key] = own
	q.open = append(q.open, own)
	q.hints.Tell(lathe.CallHint{Key: c.Key, Definition: c.Definition})
	return own.row(now), nil
}

// FindCall implements [lathe.CallQueue].
func (s *Memory) FindCall(ctx context.Context, key string) (*lathe.RemoteCall, error) {
	return s.changeCall(ctx, "store: find a call", key, func(*queued, time.Time) {})
}

// CancelCall implements [lathe.CallQueue].
func (s *Memory) CancelCall(ctx context.Context, key string) (*lathe.RemoteCall, error) {
	return s.changeCall(ctx, "store: cancel a call", key, func(c *queued, now time.Time) {
		switch {
		case c.State.Ended():
		case c.State == lathe.CallStarted:
			c.Cancelled = true
			s.queue.hints.Tell(lathe.CallHint{Key: c.Key, Cancelled: true})
		default:
			c.Cancelled = true
			s.queue.end(c, lathe.CallCancelled, now)
		}
	})
}

// DecideCall implements [lathe.CallQueue].
func (s *Memory) DecideCall(ctx context.Context, key string) (*lathe.RemoteCall, error) {
	return s.changeCall(ctx, "store: decide a call", key, func(c *queued, _ time.Time) {
		if c.State == lathe.CallUnknown {
			c.Decided = true
		}
	})
}

func (s *Memory) changeCall(ctx context.Context, op, key string, do func(*queued, time.Time)) (*lathe.RemoteCall, error) {
	q, now, err := s.lockCalls(ctx, op)
	if err != nil {
		return nil, err
	}
	defer q.mu.Unlock()
	c := q.calls[key]
	if c == nil {
		return nil, NoCall(op)
	}
	do(c, now)
	return c.row(now), nil
}

// ClaimCalls implements [lathe.CallQueue].
func (s *Memory) ClaimCalls(ctx context.Context, worker string, definitions []string, lease time.Duration, limit int) ([]lathe.RemoteCall, error) {
	q, now, err := s.lockCalls(ctx, "store: claim calls")
	if err != nil {
		return nil, err
	}
	defer q.mu.Unlock()
	var out []lathe.RemoteCall
	for _, c := range q.open {
		if len(out) >= limit {
			break
		}
		if c.State != lathe.CallQueued || !now.Before(c.deadline) || !slices.Contains(definitions, c.Definition) {
			continue
		}
		c.State, c.Worker, c.lease = lathe.CallClaimed, worker, now.Add(lease)
		c.Attempt++
		out = append(out, *c.row(now))
	}
	return out, nil
}

// holdCall carries out do for a call that the worker holds in that attempt.
func (s *Memory) holdCall(ctx context.Context, op string, ref lathe.CallRef, do func(*queued, time.Time) bool) error {
	q, now, err := s.lockCalls(ctx, op)
	if err != nil {
		return err
	}
	defer q.mu.Unlock()
	c := q.calls[ref.Key]
	if c == nil {
		return NoCall(op)
	}
	if c.Attempt != ref.Attempt || c.Worker != ref.Worker || ref.Worker == "" || !do(c, now) {
		return NotHeld(op)
	}
	return nil
}

// StartCall implements [lathe.CallQueue].
func (s *Memory) StartCall(ctx context.Context, ref lathe.CallRef, lease time.Duration) error {
	return s.holdCall(ctx, "store: start a call", ref, func(c *queued, now time.Time) bool {
		if c.State != lathe.CallClaimed || !now.Before(c.lease) || !now.Before(c.deadline) {
			return false
		}
		c.State, c.lease = lathe.CallStarted, now.Add(lease)
		c.starts++
		return true
	})
}

// BeatCalls implements [lathe.CallQueue].
func (s *Memory) BeatCalls(ctx context.Context, worker string, held []lathe.CallRef, lease time.Duration) (stop []lathe.CallRef, err error) {
	q, now, err := s.lockCalls(ctx, "store: renew calls")
	if err != nil {
		return nil, err
	}
	defer q.mu.Unlock()
	for _, ref := range held {
		c := q.calls[ref.Key]
		mine := c != nil && c.Attempt == ref.Attempt && c.Worker == worker && (c.State == lathe.CallClaimed || c.State == lathe.CallStarted)
		if mine {
			c.lease = now.Add(lease)
		}
		if !mine || c.Cancelled {
			stop = append(stop, ref)
		}
	}
	return stop, nil
}

// FinishCall implements [lathe.CallQueue].
func (s *Memory) FinishCall(ctx context.Context, ref lathe.CallRef, r *lathe.CallResult) error {
	return s.holdCall(ctx, "store: finish a call", ref, func(c *queued, now time.Time) bool {
		switch c.State {
		case lathe.CallDone:
			return true
		case lathe.CallStarted, lathe.CallQueued: // queued again after it was started: a claim clears the rest
		case lathe.CallUnknown:
			if c.Decided {
				return false
			}
		case lathe.CallClaimed, lathe.CallCancelled:
			return false
		}
		c.Result = cloneResult(r)
		s.queue.end(c, lathe.CallDone, now)
		return true
	})
}

// ReturnCall implements [lathe.CallQueue].
func (s *Memory) ReturnCall(ctx context.Context, ref lathe.CallRef) error {
	return s.holdCall(ctx, "store: return a call", ref, func(c *queued, now time.Time) bool {
		if c.State != lathe.CallClaimed && c.State != lathe.CallStarted {
			return false
		}
		c.Worker = ""
		s.queue.again(c, now)
		return true
	})
}

// again queues a call once more, unless nobody wants it.
func (q *callQueue) again(c *queued, now time.Time) {
	if c.Cancelled || !now.Before(c.deadline) {
		q.end(c, lathe.CallCancelled, now)
		return
	}
	c.State = lathe.CallQueued
	q.hints.Tell(lathe.CallHint{Key: c.Key, Definition: c.Definition})
}

// end ends a call, and lets go of its arguments.
func (q *callQueue) end(c *queued, state lathe.CallState, now time.Time) {
	c.State, c.Arguments, c.ended = state, nil, now
	if i := slices.Index(q.open, c); i >= 0 {
		q.open = slices.Delete(q.open, i, i+1)
	}
	q.hints.Tell(lathe.CallHint{Key: c.Key})
}

// ReapCalls implements [lathe.CallQueue].
func (s *Memory) ReapCalls(ctx context.Context) (n int, err error) {
	q, now, err := s.lockCalls(ctx, "store: reap calls")
	if err != nil {
		return 0, err
	}
	for _, c := range slices.Clone(q.open) {
		if q.reap(c, now) {
			n++
		}
	}
	for id, w := range q.workers {
		if !now.Before(w.until) {
			delete(q.workers, id)
			q.hints.Tell(lathe.CallHint{})
		}
	}
	q.mu.Unlock()
	return n + s.forgetCalls(now.Add(-lathe.CallsKept)), nil
}

// forgetCalls forgets the calls that ended before that time, of runs that nobody can go on with.
func (s *Memory) forgetCalls(before time.Time) (n int) {
	q := &s.queue
	old := map[string][]*queued{} // by run
	q.mu.Lock()
	for _, c := range q.calls {
		if c.State.Ended() && c.ended.Before(before) {
			old[c.RunID] = append(old[c.RunID], c)
		}
	}
	q.mu.Unlock() // the lock of the runs comes before this one
	s.mu.RLock()
	for id := range old {
		if j := s.runs[id]; j != nil && j.finished == nil {
			delete(old, id)
		}
	}
	s.mu.RUnlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, calls := range old {
		for _, c := range calls {
			delete(q.calls, c.Key)
			n++
		}
	}
	return n
}

func (q *callQueue) reap(c *queued, now time.Time) bool {
	lost := !now.Before(c.lease)
	switch {
	case c.State == lathe.CallQueued && !now.Before(c.deadline):
		q.end(c, lathe.CallCancelled, now)
	case c.State == lathe.CallClaimed && lost:
		c.Worker = ""
		q.again(c, now)
	case c.State != lathe.CallStarted || !lost:
		return false
	case c.Effect != lathe.ReadOnly && c.Effect != lathe.Idempotent:
		q.end(c, lathe.CallUnknown, now)
	case c.starts >= lathe.MaxStarts:
		c.Result = &lathe.CallResult{IsError: true, Code: lathe.CodeUnavailable}
		q.end(c, lathe.CallDone, now)
	default:
		q.again(c, now)
	}
	return true
}

// forgetRun forgets the calls of a run that is deleted.
func (q *callQueue) forgetRun(runID string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for key, c := range q.calls {
		if c.RunID == runID {
			delete(q.calls, key)
		}
	}
	q.open = slices.DeleteFunc(q.open, func(c *queued) bool { return c.RunID == runID })
}

// WatchCalls implements [lathe.CallQueue].
func (s *Memory) WatchCalls(ctx context.Context, fn func(lathe.CallHint)) error {
	s.queue.hints.Watch(ctx, fn)
	return nil
}

// PutWorker implements [lathe.WorkerIndex].
func (s *Memory) PutWorker(ctx context.Context, w *lathe.Worker, ttl time.Duration) error {
	const op = "store: keep a worker"
	q, now, err := s.lockCalls(ctx, op)
	if err != nil {
		return err
	}
	defer q.mu.Unlock()
	has := q.workers[w.ID]
	switch {
	case ttl <= 0:
		if has == nil {
			return nil
		}
		delete(q.workers, w.ID)
		q.hints.Tell(lathe.CallHint{})
		return nil
	case has == nil && len(q.workers) >= maxWorkers:
		return &lathe.Error{Code: lathe.CodeUnavailable, Op: op, Err: fmt.Errorf("%d workers are known, and no more can be", maxWorkers)}
	case has == nil || !now.Before(has.until):
		q.came++
		has = &present{Worker: lathe.Worker{ID: w.ID, Since: now}, order: q.came}
		q.workers[w.ID] = has
		q.hints.Tell(lathe.CallHint{})
	case !slices.EqualFunc(has.Tools, w.Tools, sameTool):
		q.hints.Tell(lathe.CallHint{})
	}
	has.Fleet, has.Tools, has.until = w.Fleet, cloneTools(w.Tools), now.Add(ttl)
	return nil
}

// ShortenWorker implements [lathe.WorkerIndex].
func (s *Memory) ShortenWorker(ctx context.Context, id string, ttl time.Duration) error {
	q, now, err := s.lockCalls(ctx, "store: shorten the time of a worker")
	if err != nil {
		return err
	}
	defer q.mu.Unlock()
	if has, until := q.workers[id], now.Add(ttl); has != nil && until.Before(has.until) {
		has.until = until
	}
	return nil
}

func sameTool(a, b lathe.WorkerTool) bool { return a.Definition() == b.Definition() }

func cloneTools(tools []lathe.WorkerTool) []lathe.WorkerTool {
	out := slices.Clone(tools)
	for i := range out {
		t := &out[i]
		t.Schema, t.OutputSchema = bytes.Clone(t.Schema), bytes.Clone(t.OutputSchema)
		t.Allowlist, t.Target, t.Labels = slices.Clone(t.Allowlist), slices.Clone(t.Target), slices.Clone(t.Labels)
	}
	return out
}

// Workers implements [lathe.WorkerIndex].
func (s *Memory) Workers(ctx context.Context) ([]lathe.Worker, error) {
	q, now, err := s.lockCalls(ctx, "store: list workers")
	if err != nil {
		return nil, err
	}
	defer q.mu.Unlock()
	var there []*present
	for _, w := range q.workers {
		if now.Before(w.until) {
			there = append(there, w)
		}
	}
	slices.SortFunc(there, func(a, b *present) int { return cmp.Compare(a.order, b.order) })
	out := make([]lathe.Worker, len(there))
	for i, w := range there {
		out[i] = w.Worker
		out[i].Tools = cloneTools(w.Tools)
	}
	return out, nil
}
