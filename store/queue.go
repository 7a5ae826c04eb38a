package store

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/remote"
)

// A callQueue implements [remote.Queue] over [Rows].
type callQueue struct {
	begin    transaction
	notifier CallNotifier
}

// errUnchanged means that the call already has the state that the operation requires.
var errUnchanged = errors.New("the call stays as it is")

// A QueuedCall is a call of a [remote.Queue], with the fields that only the store uses. [Rows] stores it.
type QueuedCall struct {
	remote.Call
	Hash            string    // hash of the arguments: [remote.Call.ArgumentsHash]
	Starts          int       // how often a worker has started the call
	Deadline, Lease time.Time // Deadline: the call ends if no worker has started it by then; Lease: end of the worker's claim
	Ended           time.Time // when the call ended; zero: it has not ended
}

// row returns a copy of the call for the caller of the queue, with Left.
func (c *QueuedCall) row(now time.Time) *remote.Call {
	out := clone(c.Call)
	out.Left = c.Deadline.Sub(now)
	return &out
}

// end sets an ended state, and removes the arguments.
func (c *QueuedCall) end(state remote.State, now time.Time) {
	c.State, c.Arguments, c.Ended = state, nil, now
}

// requeue queues the call again, or ends it if it was cancelled or its time is up.
func (c *QueuedCall) requeue(now time.Time) {
	c.State = remote.Queued
	if c.Cancelled || !now.Before(c.Deadline) {
		c.end(remote.Cancelled, now)
	}
}

// due reports whether the deadline of a queued call, or the lease of a claimed or started one, has passed.
func (c *QueuedCall) due(now time.Time) bool {
	switch c.State {
	case remote.Queued:
		return !now.Before(c.Deadline)
	case remote.Claimed, remote.Started:
		return !now.Before(c.Lease)
	default:
		return false
	}
}

// expire ends or requeues a call that is due. A started call is queued again only if its effect allows a repetition. For any other effect
// its state becomes unknown, because the call may have been executed.
func (c *QueuedCall) expire(now time.Time) {
	switch {
	case c.State == remote.Queued:
		c.end(remote.Cancelled, now)
	case c.State == remote.Claimed:
		c.Worker = ""
		c.requeue(now)
	case c.Effect != lathe.ReadOnly && c.Effect != lathe.Idempotent:
		c.end(remote.Unknown, now)
	case c.Starts >= remote.MaxStarts:
		c.Result = &remote.Result{IsError: true, Code: lathe.CodeUnavailable}
		c.end(remote.Done, now)
	default:
		c.requeue(now)
	}
}

// PutCall implements [remote.Queue].
func (q *callQueue) PutCall(ctx context.Context, c *remote.Call, within time.Duration) (*remote.Call, error) {
	const op = "queue a call"
	if err := c.Check("store: " + op); err != nil {
		return nil, err
	}
	added := &QueuedCall{Call: *c, Hash: c.ArgumentsHash()}
	added.Arguments = bytes.Clone(c.Arguments)
	// The fields that only the queue sets.
	added.State, added.Attempt, added.Worker, added.Cancelled, added.Decided, added.Result = remote.Queued, 0, "", false, false, nil
	var row *remote.Call
	err := q.begin(ctx, op, readWrite, func(rows Rows, now time.Time) error {
		stored, err := rows.Call(c.Key)
		if errors.Is(err, lathe.ErrNotFound) {
			stored, added.Deadline = added, now.Add(within)
			err = rows.PutCall(added)
		}
		if err != nil {
			return err
		}
		if stored.Tool != c.Tool || stored.Hash != added.Hash {
			return lathe.ErrConflict
		}
		row = stored.row(now)
		return nil
	})
	if err != nil {
		return nil, err
	}
	q.notify(row)
	return row, nil
}

// notify delivers the notification of a changed call.
func (q *callQueue) notify(c *remote.Call) {
	n := remote.Notification{Key: c.Key, Cancelled: c.Cancelled && c.State == remote.Started}
	if c.State == remote.Queued {
		n.Definition = c.Definition
	}
	q.notifier.Notify(n)
}

// FindCall implements [remote.Queue].
func (q *callQueue) FindCall(ctx context.Context, key string) (row *remote.Call, err error) {
	err = q.begin(ctx, "find a call", readOnly, func(rows Rows, now time.Time) error {
		c, err := rows.Call(key)
		if err == nil {
			row = c.row(now)
		}
		return err
	})
	return row, err
}

// change calls do with the call of this key, stores the call unless do returns errUnchanged, and returns the row afterwards.
func (q *callQueue) change(ctx context.Context, op, key string, do func(*QueuedCall, time.Time) error) (*remote.Call, error) {
	var row *remote.Call
	err := q.begin(ctx, op, readWrite, func(rows Rows, now time.Time) error {
		c, err := rows.Call(key)
		if err != nil {
			return err
		}
		if err = do(c, now); err == nil {
			err = rows.PutCall(c)
		}
		if err != nil && !errors.Is(err, errUnchanged) {
			return err
		}
		row = c.row(now)
		return nil
	})
	if err != nil {
		return nil, err
	}
	q.notify(row)
	return row, nil
}

// CancelCall implements [remote.Queue].
func (q *callQueue) CancelCall(ctx context.Context, key string) (*remote.Call, error) {
	return q.change(ctx, "cancel a call", key, func(c *QueuedCall, now time.Time) error {
		if c.State.Ended() || c.Cancelled {
			return errUnchanged
		}
		c.Cancelled = true
		if c.State != remote.Started {
			c.end(remote.Cancelled, now)
		}
		return nil
	})
}

// DecideCall implements [remote.Queue].
func (q *callQueue) DecideCall(ctx context.Context, key string) (*remote.Call, error) {
	return q.change(ctx, "decide a call", key, func(c *QueuedCall, _ time.Time) error {
		if c.Decided || c.State != remote.Unknown {
			return errUnchanged
		}
		c.Decided = true
		return nil
	})
}

// withClaim calls do with the call if the worker has claimed this attempt. do returns [lathe.ErrConflict] if the state of the call does not
// allow the operation.
func (q *callQueue) withClaim(ctx context.Context, op string, ref remote.Ref, do func(*QueuedCall, time.Time) error) error {
	_, err := q.change(ctx, op, ref.Key, func(c *QueuedCall, now time.Time) error {
		if c.Ref() != ref || ref.Worker == "" {
			return lathe.ErrConflict
		}
		return do(c, now)
	})
	return err
}

// StartCall implements [remote.Queue].
func (q *callQueue) StartCall(ctx context.Context, ref remote.Ref, lease time.Duration) error {
	return q.withClaim(ctx, "start a call", ref, func(c *QueuedCall, now time.Time) error {
		if c.State != remote.Claimed || c.due(now) || !now.Before(c.Deadline) {
			return lathe.ErrConflict
		}
		c.State, c.Lease = remote.Started, now.Add(lease)
		c.Starts++
		return nil
	})
}

// FinishCall implements [remote.Queue].
func (q *callQueue) FinishCall(ctx context.Context, ref remote.Ref, r *remote.Result) error {
	r = clone(r)
	return q.withClaim(ctx, "finish a call", ref, func(c *QueuedCall, now time.Time) error {
		switch {
		case c.State == remote.Done:
			return errUnchanged
		case c.State == remote.Claimed || c.State == remote.Cancelled || c.State == remote.Unknown && c.Decided:
			return lathe.ErrConflict
		}
		c.Result = r // a started call that was queued again keeps its worker until the next claim
		c.end(remote.Done, now)
		return nil
	})
}

// ReturnCall implements [remote.Queue].
func (q *callQueue) ReturnCall(ctx context.Context, ref remote.Ref) error {
	return q.withClaim(ctx, "return a call", ref, func(c *QueuedCall, now time.Time) error {
		if c.State != remote.Claimed && c.State != remote.Started {
			return lathe.ErrConflict
		}
		c.Worker = ""
		c.requeue(now)
		return nil
	})
}

// ClaimCalls implements [remote.Queue]. It first reads outside a write transaction, because usually there is nothing to claim.
func (q *callQueue) ClaimCalls(ctx context.Context, worker string, definitions []string, lease time.Duration, limit int) ([]remote.Call, error) {
	const op = "claim calls"
	var first []*QueuedCall
	err := q.begin(ctx, op, readOnly, func(rows Rows, _ time.Time) (err error) {
		first, err = rows.QueuedCalls(definitions, min(limit, 1))
		return err
	})
	if err != nil || len(first) == 0 {
		return nil, err
	}
	var out []remote.Call
	err = q.begin(ctx, op, readWrite, func(rows Rows, now time.Time) error {
		out = nil // of a transaction that was rolled back
		calls, err := rows.QueuedCalls(definitions, limit)
		if err != nil {
			return err
		}
		for _, c := range calls {
			c.State, c.Worker, c.Lease = remote.Claimed, worker, now.Add(lease)
			c.Attempt++
			out = append(out, *c.row(now))
			if err := rows.PutCall(c); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// RenewCalls implements [remote.Queue].
func (q *callQueue) RenewCalls(ctx context.Context, worker string, held []remote.Ref, lease time.Duration) ([]remote.Ref, error) {
	var stop []remote.Ref
	err := q.begin(ctx, "renew calls", len(held) > 0, func(rows Rows, now time.Time) error {
		stop = nil // of a transaction that was rolled back
		for _, ref := range held {
			cancelled, err := rows.RenewCall(remote.Ref{Key: ref.Key, Attempt: ref.Attempt, Worker: worker}, now.Add(lease))
			lost := errors.Is(err, lathe.ErrNotFound)
			if err != nil && !lost {
				return err
			}
			if lost || cancelled {
				stop = append(stop, ref)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return stop, nil
}

// ExpireCalls implements [remote.Queue]. It first reads outside a write transaction, because usually nothing has expired.
func (q *callQueue) ExpireCalls(ctx context.Context) (int, error) {
	const op = "expire calls"
	var due []*QueuedCall
	var forgotten, workers int
	find := func(rows Rows, now time.Time) (err error) { // sets due, forgotten and workers; a read-only transaction only counts: see [Rows]
		if due, err = rows.DueCalls(); err != nil {
			return err
		}
		if forgotten, err = rows.ForgetCalls(now.Add(-remote.CallsKept)); err != nil {
			return err
		}
		workers, err = rows.ForgetWorkers()
		return err
	}
	if err := q.begin(ctx, op, readOnly, find); err != nil || len(due)+forgotten+workers == 0 {
		return 0, err
	}
	var changed []*remote.Call
	err := q.begin(ctx, op, readWrite, func(rows Rows, now time.Time) error {
		changed = nil // of a transaction that was rolled back
		if err := find(rows, now); err != nil {
			return err
		}
		for _, c := range due {
			c.expire(now)
			changed = append(changed, c.row(now))
			if err := rows.PutCall(c); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	for _, c := range changed {
		q.notify(c)
	}
	if workers > 0 {
		q.notifier.Notify(remote.Notification{})
	}
	return len(due) + forgotten, nil
}

// WatchCalls implements [remote.Queue].
func (q *callQueue) WatchCalls(ctx context.Context, fn func(remote.Notification)) error {
	q.notifier.Watch(ctx, fn)
	return nil
}

// PutWorker implements [remote.WorkerIndex].
func (q *callQueue) PutWorker(ctx context.Context, w *remote.Worker, ttl time.Duration) error {
	changed, row := ttl <= 0, clone(*w) // a removed worker may have expired, but watchers still list it
	err := q.begin(ctx, "keep a worker", readWrite, func(rows Rows, now time.Time) error {
		row.Since = now
		has, _, err := rows.Worker(row.ID)
		switch {
		case errors.Is(err, lathe.ErrNotFound):
			changed = true
		case err != nil:
			return err
		default:
			row.Since = has.Since
			changed = changed || !slices.EqualFunc(has.Tools, row.Tools, func(a, b remote.Tool) bool { return a.Definition() == b.Definition() })
		}
		return rows.PutWorker(&row, now.Add(ttl))
	})
	if err == nil && changed {
		q.notifier.Notify(remote.Notification{})
	}
	return err
}

// ShortenWorker implements [remote.WorkerIndex].
func (q *callQueue) ShortenWorker(ctx context.Context, id string, ttl time.Duration) error {
	return q.begin(ctx, "shorten the time of a worker", readWrite, func(rows Rows, now time.Time) error {
		w, until, err := rows.Worker(id)
		switch {
		case errors.Is(err, lathe.ErrNotFound):
			return nil
		case err == nil && now.Add(ttl).Before(until):
			return rows.PutWorker(w, now.Add(ttl))
		}
		return err
	})
}

// Workers implements [remote.WorkerIndex].
func (q *callQueue) Workers(ctx context.Context) (out []remote.Worker, err error) {
	err = q.begin(ctx, "list workers", readOnly, func(rows Rows, _ time.Time) error {
		out, err = rows.Workers()
		return err
	})
	return out, err
}
