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
	"github.com/lathe-run/lathe/remote"
)

var (
	_ remote.Queue = (*CallQueue)(nil)
	_ remote.Queue = (*Memory)(nil)
)

// maxCalls bounds the calls of a CallQueue, and maxWorkers the workers.
const (
	maxCalls   = 100_000
	maxWorkers = 10_000
)

// A CallQueue is the part of a [Memory] that stores calls for workers, and lists the workers. It implements
// [remote.Queue]. Its lock may be taken while the lock of the Memory is held, and never the other way around.
type CallQueue struct {
	now     func() time.Time
	resumes func(runID string) bool // reports whether the Memory has the run and it has not ended

	mu       sync.Mutex
	calls    map[string]*queued
	open     []*queued // the calls that have not ended, in the order in which they were queued
	workers  map[string]*present
	joined   int64 // workers so far
	notifier CallNotifier
}

// A queued is one call, with the fields that are not part of its row.
type queued struct {
	remote.Call
	args     [sha256.Size]byte
	starts   int
	deadline time.Time
	lease    time.Time
	ended    time.Time
}

// present is a worker.
type present struct {
	remote.Worker
	order int64
	until time.Time
}

// CallMisfit returns an error if the call cannot be queued.
func CallMisfit(op string, c *remote.Call) error {
	if c.Key == "" || c.Tool == "" || c.Definition == "" || !json.Valid(c.Arguments) {
		return &lathe.Error{Code: lathe.CodeInvalidRequest, Op: op, Err: errors.New("a call has a key, a tool, its definition, and arguments in JSON")}
	}
	return nil
}

// ArgumentsHash returns a hash of the arguments. A store compares it after the arguments have been removed.
func ArgumentsHash(c *remote.Call) string {
	sum := sha256.Sum256(c.Arguments)
	return hex.EncodeToString(sum[:])
}

// NotClaimed returns the error for a worker that does not hold the call.
func NotClaimed(op string) error {
	return &lathe.Error{Code: lathe.CodeConflict, Op: op, Err: lathe.ErrConflict}
}

// NoCall returns the error for a key that is not in the queue.
func NoCall(op string) error {
	return &lathe.Error{Code: lathe.CodeNotFound, Op: op, Err: lathe.ErrNotFound}
}

func newCallQueue(now func() time.Time, resumes func(runID string) bool) *CallQueue {
	return &CallQueue{now: now, resumes: resumes, calls: map[string]*queued{}, workers: map[string]*present{}}
}

// lock begins an operation and returns its time. If it returns no error, the caller must unlock q.mu.
func (q *CallQueue) lock(ctx context.Context, op string) (time.Time, error) {
	if err := ended(ctx, op); err != nil {
		return time.Time{}, err
	}
	q.mu.Lock()
	return q.now(), nil
}

// row returns a copy of the call for the caller.
func (c *queued) row(now time.Time) *remote.Call {
	out := c.Call
	out.Arguments, out.Left = bytes.Clone(c.Arguments), c.deadline.Sub(now)
	if c.Result != nil {
		out.Result = cloneResult(c.Result)
	}
	return &out
}

func cloneResult(r *remote.Result) *remote.Result {
	out := *r
	out.Data, out.Blobs = bytes.Clone(r.Data), slices.Clone(r.Blobs)
	for i := range out.Blobs {
		out.Blobs[i] = cloneBlob(out.Blobs[i])
	}
	return &out
}

// PutCall implements [remote.Queue].
func (q *CallQueue) PutCall(ctx context.Context, c *remote.Call, within time.Duration) (*remote.Call, error) {
	const op = "store: queue a call"
	if err := CallMisfit(op, c); err != nil {
		return nil, err
	}
	now, err := q.lock(ctx, op)
	if err != nil {
		return nil, err
	}
	if len(q.calls) >= maxCalls { // remove calls that have ended, however recently
		q.mu.Unlock()
		q.forget(now)
		q.mu.Lock()
	}
	defer q.mu.Unlock()
	sum := sha256.Sum256(c.Arguments)
	if has := q.calls[c.Key]; has != nil {
		if has.Tool != c.Tool || has.args != sum {
			return nil, NotClaimed(op)
		}
		return has.row(now), nil
	}
	if len(q.calls) >= maxCalls {
		return nil, &lathe.Error{Code: lathe.CodeUnavailable, Op: op, Err: fmt.Errorf("%d calls are kept, and no more can be", maxCalls)}
	}
	own := &queued{args: sum, deadline: now.Add(within), Call: remote.Call{Key: c.Key, RunID: c.RunID, CallID: c.CallID, RequestID: c.RequestID,
		SessionID: c.SessionID, Depth: c.Depth, Trace: c.Trace, Tool: c.Tool, Definition: c.Definition, Effect: c.Effect, Arguments: bytes.Clone(c.Arguments), State: remote.Queued}}
	q.calls[c.Key] = own
	q.open = append(q.open, own)
	q.notifier.Notify(remote.Notification{Key: c.Key, Definition: c.Definition})
	return own.row(now), nil
}

// FindCall implements [remote.Queue].
func (q *CallQueue) FindCall(ctx context.Context, key string) (*remote.Call, error) {
	return q.change(ctx, "store: find a call", key, func(*queued, time.Time) {})
}

// CancelCall implements [remote.Queue].
func (q *CallQueue) CancelCall(ctx context.Context, key string) (*remote.Call, error) {
	return q.change(ctx, "store: cancel a call", key, func(c *queued, now time.Time) {
		switch {
		case c.State.Ended():
		case c.State == remote.Started:
			c.Cancelled = true
			q.notifier.Notify(remote.Notification{Key: c.Key, Cancelled: true})
		default:
			c.Cancelled = true
			q.end(c, remote.Cancelled, now)
		}
	})
}

// DecideCall implements [remote.Queue].
func (q *CallQueue) DecideCall(ctx context.Context, key string) (*remote.Call, error) {
	return q.change(ctx, "store: decide a call", key, func(c *queued, _ time.Time) {
		if c.State == remote.Unknown {
			c.Decided = true
		}
	})
}

// change calls do with the call of that key, and returns its row afterwards.
func (q *CallQueue) change(ctx context.Context, op, key string, do func(*queued, time.Time)) (*remote.Call, error) {
	now, err := q.lock(ctx, op)
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

// ClaimCalls implements [remote.Queue].
func (q *CallQueue) ClaimCalls(ctx context.Context, worker string, definitions []string, lease time.Duration, limit int) ([]remote.Call, error) {
	now, err := q.lock(ctx, "store: claim calls")
	if err != nil {
		return nil, err
	}
	defer q.mu.Unlock()
	var out []remote.Call
	for _, c := range q.open {
		if len(out) >= limit {
			break
		}
		if c.State != remote.Queued || !now.Before(c.deadline) || !slices.Contains(definitions, c.Definition) {
			continue
		}
		c.State, c.Worker, c.lease = remote.Claimed, worker, now.Add(lease)
		c.Attempt++
		out = append(out, *c.row(now))
	}
	return out, nil
}

// withClaim calls do with the call if the worker holds it in that attempt. do returns false if the call is in a state that does
// not allow the operation.
func (q *CallQueue) withClaim(ctx context.Context, op string, ref remote.Ref, do func(*queued, time.Time) bool) error {
	now, err := q.lock(ctx, op)
	if err != nil {
		return err
	}
	defer q.mu.Unlock()
	c := q.calls[ref.Key]
	if c == nil {
		return NoCall(op)
	}
	if c.Attempt != ref.Attempt || c.Worker != ref.Worker || ref.Worker == "" || !do(c, now) {
		return NotClaimed(op)
	}
	return nil
}

// StartCall implements [remote.Queue].
func (q *CallQueue) StartCall(ctx context.Context, ref remote.Ref, lease time.Duration) error {
	return q.withClaim(ctx, "store: start a call", ref, func(c *queued, now time.Time) bool {
		if c.State != remote.Claimed || !now.Before(c.lease) || !now.Before(c.deadline) {
			return false
		}
		c.State, c.lease = remote.Started, now.Add(lease)
		c.starts++
		return true
	})
}

// RenewCalls implements [remote.Queue].
func (q *CallQueue) RenewCalls(ctx context.Context, worker string, held []remote.Ref, lease time.Duration) (stop []remote.Ref, err error) {
	now, err := q.lock(ctx, "store: renew calls")
	if err != nil {
		return nil, err
	}
	defer q.mu.Unlock()
	for _, ref := range held {
		c := q.calls[ref.Key]
		mine := c != nil && c.Attempt == ref.Attempt && c.Worker == worker && (c.State == remote.Claimed || c.State == remote.Started)
		if mine {
			c.lease = now.Add(lease)
		}
		if !mine || c.Cancelled {
			stop = append(stop, ref)
		}
	}
	return stop, nil
}

// FinishCall implements [remote.Queue].
func (q *CallQueue) FinishCall(ctx context.Context, ref remote.Ref, r *remote.Result) error {
	return q.withClaim(ctx, "store: finish a call", ref, func(c *queued, now time.Time) bool {
		switch c.State {
		case remote.Done:
			return true
		case remote.Started, remote.Queued: // queued again after it was started: a claim clears the rest
		case remote.Unknown:
			if c.Decided {
				return false
			}
		case remote.Claimed, remote.Cancelled:
			return false
		}
		c.Result = cloneResult(r)
		q.end(c, remote.Done, now)
		return true
	})
}

// ReturnCall implements [remote.Queue].
func (q *CallQueue) ReturnCall(ctx context.Context, ref remote.Ref) error {
	return q.withClaim(ctx, "store: return a call", ref, func(c *queued, now time.Time) bool {
		if c.State != remote.Claimed && c.State != remote.Started {
			return false
		}
		c.Worker = ""
		q.again(c, now)
		return true
	})
}

// again queues a call once more, or ends it if it was cancelled or its time is up.
func (q *CallQueue) again(c *queued, now time.Time) {
	if c.Cancelled || !now.Before(c.deadline) {
		q.end(c, remote.Cancelled, now)
		return
	}
	c.State = remote.Queued
	q.notifier.Notify(remote.Notification{Key: c.Key, Definition: c.Definition})
}

// end ends a call and removes its arguments.
func (q *CallQueue) end(c *queued, state remote.State, now time.Time) {
	c.State, c.Arguments, c.ended = state, nil, now
	if i := slices.Index(q.open, c); i >= 0 {
		q.open = slices.Delete(q.open, i, i+1)
	}
	q.notifier.Notify(remote.Notification{Key: c.Key})
}

// ExpireCalls implements [remote.Queue].
func (q *CallQueue) ExpireCalls(ctx context.Context) (n int, err error) {
	now, err := q.lock(ctx, "store: expire calls")
	if err != nil {
		return 0, err
	}
	for _, c := range slices.Clone(q.open) {
		if q.expire(c, now) {
			n++
		}
	}
	for id, w := range q.workers {
		if !now.Before(w.until) {
			delete(q.workers, id)
			q.notifier.Notify(remote.Notification{})
		}
	}
	q.mu.Unlock()
	return n + q.forget(now.Add(-remote.CallsKept)), nil
}

// forget removes the calls that ended before that time and whose run has ended or does not exist.
func (q *CallQueue) forget(before time.Time) (n int) {
	old := map[string][]*queued{} // by run
	q.mu.Lock()
	for _, c := range q.calls {
		if c.State.Ended() && c.ended.Before(before) {
			old[c.RunID] = append(old[c.RunID], c)
		}
	}
	q.mu.Unlock() // resumes takes the lock of the Memory
	for id := range old {
		if q.resumes(id) {
			delete(old, id)
		}
	}
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

// expire ends or requeues a call whose lease or time has ended, and reports whether it changed the call. A call that was
// started is queued again only if its effect allows it to run twice: for any other, whether it ran is unknown.
func (q *CallQueue) expire(c *queued, now time.Time) bool {
	lost := !now.Before(c.lease)
	switch {
	case c.State == remote.Queued && !now.Before(c.deadline):
		q.end(c, remote.Cancelled, now)
	case c.State == remote.Claimed && lost:
		c.Worker = ""
		q.again(c, now)
	case c.State != remote.Started || !lost:
		return false
	case c.Effect != lathe.ReadOnly && c.Effect != lathe.Idempotent:
		q.end(c, remote.Unknown, now)
	case c.starts >= remote.MaxStarts:
		c.Result = &remote.Result{IsError: true, Code: lathe.CodeUnavailable}
		q.end(c, remote.Done, now)
	default:
		q.again(c, now)
	}
	return true
}

// forgetRun removes the calls of a run that is deleted.
func (q *CallQueue) forgetRun(runID string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for key, c := range q.calls {
		if c.RunID == runID {
			delete(q.calls, key)
		}
	}
	q.open = slices.DeleteFunc(q.open, func(c *queued) bool { return c.RunID == runID })
}

// WatchCalls implements [remote.Queue].
func (q *CallQueue) WatchCalls(ctx context.Context, fn func(remote.Notification)) error {
	q.notifier.Watch(ctx, fn)
	return nil
}

// PutWorker implements [remote.WorkerIndex].
func (q *CallQueue) PutWorker(ctx context.Context, w *remote.Worker, ttl time.Duration) error {
	const op = "store: keep a worker"
	now, err := q.lock(ctx, op)
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
		q.notifier.Notify(remote.Notification{})
		return nil
	case has == nil && len(q.workers) >= maxWorkers:
		return &lathe.Error{Code: lathe.CodeUnavailable, Op: op, Err: fmt.Errorf("%d workers are known, and no more can be", maxWorkers)}
	case has == nil || !now.Before(has.until):
		q.joined++
		has = &present{Worker: remote.Worker{ID: w.ID, Since: now}, order: q.joined}
		q.workers[w.ID] = has
		q.notifier.Notify(remote.Notification{})
	case !slices.EqualFunc(has.Tools, w.Tools, sameTool):
		q.notifier.Notify(remote.Notification{})
	}
	has.Pool, has.Tools, has.until = w.Pool, cloneTools(w.Tools), now.Add(ttl)
	return nil
}

// ShortenWorker implements [remote.WorkerIndex].
func (q *CallQueue) ShortenWorker(ctx context.Context, id string, ttl time.Duration) error {
	now, err := q.lock(ctx, "store: shorten the time of a worker")
	if err != nil {
		return err
	}
	defer q.mu.Unlock()
	if has, until := q.workers[id], now.Add(ttl); has != nil && until.Before(has.until) {
		has.until = until
	}
	return nil
}

func sameTool(a, b remote.Tool) bool { return a.Definition() == b.Definition() }

func cloneTools(tools []remote.Tool) []remote.Tool {
	out := slices.Clone(tools)
	for i := range out {
		t := &out[i]
		t.Schema, t.OutputSchema = bytes.Clone(t.Schema), bytes.Clone(t.OutputSchema)
		t.Allowlist, t.Target, t.Labels = slices.Clone(t.Allowlist), slices.Clone(t.Target), slices.Clone(t.Labels)
	}
	return out
}

// Workers implements [remote.WorkerIndex].
func (q *CallQueue) Workers(ctx context.Context) ([]remote.Worker, error) {
	now, err := q.lock(ctx, "store: list workers")
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
	out := make([]remote.Worker, len(there))
	for i, w := range there {
		out[i] = w.Worker
		out[i].Tools = cloneTools(w.Tools)
	}
	return out, nil
}
