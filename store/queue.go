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

var _ remote.Queue = (*CallQueue)(nil)

// A CallQueue is a [remote.Queue] over [CallRows]. [Memory] and store/sqlite have one; store/postgres, whose changes are one statement
// each, has the same rules in SQL.
type CallQueue struct {
	begin    func(ctx context.Context, op string, write bool, fn func(rows CallRows, now time.Time) error) error
	notifier CallNotifier
}

// NewCallQueue returns a queue. begin executes fn with the rows of a store and the time of its clock, in one transaction, which changes
// nothing if fn returns an error or write is false. If ctx is done, begin may return while fn is executed: what fn sets counts only if begin
// returns nil. fn's errors may be [lathe.ErrConflict] and [lathe.ErrNotFound]; begin returns a *[lathe.Error].
func NewCallQueue(begin func(ctx context.Context, op string, write bool, fn func(rows CallRows, now time.Time) error) error) *CallQueue {
	return &CallQueue{begin: begin}
}

// CallRows are the rows of a [CallQueue] in one transaction. What the methods return is changed by the caller, and stored by a Put.
type CallRows interface {
	// Call returns the row of a key, or [lathe.ErrNotFound].
	Call(key string) (*QueuedCall, error)
	// PutCall stores a row. A new one is the last in the order of calls.
	PutCall(c *QueuedCall) error
	// QueuedCalls returns at most limit calls of these definitions that are queued and whose time is not up, in order.
	QueuedCalls(definitions []string, limit int) ([]*QueuedCall, error)
	// DueCalls returns the calls whose lease, or time to start, has ended while they wait for it. It may leave some for the next time.
	DueCalls() ([]*QueuedCall, error)
	// ForgetCalls removes the calls that ended before that time and whose run has ended or does not exist. A transaction that does not
	// write counts them.
	ForgetCalls(before time.Time) (int, error)

	// Worker returns a worker that has not expired, or [lathe.ErrNotFound].
	Worker(id string) (w *remote.Worker, until time.Time, err error)
	// PutWorker stores a worker until that time; a time that is not after now removes it. The workers with the same Since keep their order.
	PutWorker(w *remote.Worker, until time.Time) error
	// Workers returns the workers that have not expired, in the order of Since.
	Workers() ([]remote.Worker, error)
	// ForgetWorkers removes the workers that have expired. A transaction that does not write counts them.
	ForgetWorkers() (int, error)
}

// A QueuedCall is one row of a [CallQueue]: the call without Left, and what the queue alone uses.
type QueuedCall struct {
	remote.Call
	Hash            string // of the arguments: see [remote.Call.ArgumentsHash]
	Starts          int
	Deadline, Lease time.Time
	Ended           time.Time // zero until the call has ended
}

// row returns a copy of the call for the caller.
func (c *QueuedCall) row(now time.Time) *remote.Call {
	out := c.Call
	out.Arguments, out.Left = bytes.Clone(c.Arguments), c.Deadline.Sub(now)
	if c.Result != nil {
		out.Result = cloneResult(c.Result)
	}
	return &out
}

func cloneResult(r *remote.Result) *remote.Result {
	out := *r
	out.Data, out.Blobs = bytes.Clone(r.Data), cloneBlobs(r.Blobs)
	return &out
}

func cloneWorker(w *remote.Worker) remote.Worker {
	out := *w
	out.Tools = slices.Clone(w.Tools)
	for i := range out.Tools {
		t := &out.Tools[i]
		t.Schema, t.OutputSchema = bytes.Clone(t.Schema), bytes.Clone(t.OutputSchema)
		t.Allowlist, t.Target, t.Labels, t.Principals = slices.Clone(t.Allowlist), slices.Clone(t.Target), slices.Clone(t.Labels), slices.Clone(t.Principals)
	}
	return out
}

// end ends the call and removes its arguments.
func (c *QueuedCall) end(state remote.State, now time.Time) {
	c.State, c.Arguments, c.Ended = state, nil, now
}

// requeue queues the call once more, or ends it if it was cancelled or its time is up.
func (c *QueuedCall) requeue(now time.Time) {
	if c.State = remote.Queued; c.Cancelled || !now.Before(c.Deadline) {
		c.end(remote.Cancelled, now)
	}
}

// due reports whether the call waits for something whose time has ended: its start, or the end of a lease.
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

// expire ends or requeues a call that is due. A call that was started is queued again only if its effect allows it to run twice: for any
// other, whether it ran is unknown.
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
func (q *CallQueue) PutCall(ctx context.Context, c *remote.Call, within time.Duration) (*remote.Call, error) {
	const op = "queue a call"
	if err := c.Check("store: " + op); err != nil {
		return nil, err
	}
	added := &QueuedCall{Call: *c, Hash: c.ArgumentsHash()}
	added.Arguments = bytes.Clone(c.Arguments)
	added.State, added.Attempt, added.Worker, added.Cancelled, added.Decided, added.Result = remote.Queued, 0, "", false, false, nil
	var row *remote.Call
	err := q.begin(ctx, op, true, func(rows CallRows, now time.Time) error {
		has, err := rows.Call(c.Key)
		switch {
		case errors.Is(err, lathe.ErrNotFound):
			has, added.Deadline = added, now.Add(within)
			err = rows.PutCall(added)
		case err == nil && (has.Tool != c.Tool || has.Hash != added.Hash):
			return lathe.ErrConflict
		}
		if err == nil {
			row = has.row(now)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	q.notify(row)
	return row, nil
}

// notify delivers what may have changed of a call.
func (q *CallQueue) notify(c *remote.Call) {
	n := remote.Notification{Key: c.Key, Cancelled: c.Cancelled && c.State == remote.Started}
	if c.State == remote.Queued {
		n.Definition = c.Definition
	}
	q.notifier.Notify(n)
}

// FindCall implements [remote.Queue].
func (q *CallQueue) FindCall(ctx context.Context, key string) (row *remote.Call, err error) {
	err = q.begin(ctx, "find a call", false, func(rows CallRows, now time.Time) error {
		c, err := rows.Call(key)
		if err == nil {
			row = c.row(now)
		}
		return err
	})
	return row, err
}

// change calls do with the call of that key, stores it, and returns its row afterwards.
func (q *CallQueue) change(ctx context.Context, op, key string, do func(*QueuedCall, time.Time) error) (*remote.Call, error) {
	var row *remote.Call
	err := q.begin(ctx, op, true, func(rows CallRows, now time.Time) error {
		c, err := rows.Call(key)
		if err == nil {
			err = do(c, now)
		}
		if err == nil {
			row = c.row(now)
			err = rows.PutCall(c)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	q.notify(row)
	return row, nil
}

// CancelCall implements [remote.Queue].
func (q *CallQueue) CancelCall(ctx context.Context, key string) (*remote.Call, error) {
	return q.change(ctx, "cancel a call", key, func(c *QueuedCall, now time.Time) error {
		if !c.State.Ended() {
			if c.Cancelled = true; c.State != remote.Started {
				c.end(remote.Cancelled, now)
			}
		}
		return nil
	})
}

// DecideCall implements [remote.Queue].
func (q *CallQueue) DecideCall(ctx context.Context, key string) (*remote.Call, error) {
	return q.change(ctx, "decide a call", key, func(c *QueuedCall, _ time.Time) error {
		c.Decided = c.Decided || c.State == remote.Unknown
		return nil
	})
}

// withClaim calls do with the call if the worker holds it in that attempt. do returns false if the call is in a state that does
// not allow the operation.
func (q *CallQueue) withClaim(ctx context.Context, op string, ref remote.Ref, do func(*QueuedCall, time.Time) bool) error {
	_, err := q.change(ctx, op, ref.Key, func(c *QueuedCall, now time.Time) error {
		if c.Attempt != ref.Attempt || c.Worker != ref.Worker || ref.Worker == "" || !do(c, now) {
			return lathe.ErrConflict
		}
		return nil
	})
	return err
}

// StartCall implements [remote.Queue].
func (q *CallQueue) StartCall(ctx context.Context, ref remote.Ref, lease time.Duration) error {
	return q.withClaim(ctx, "start a call", ref, func(c *QueuedCall, now time.Time) bool {
		if c.State != remote.Claimed || c.due(now) || !now.Before(c.Deadline) {
			return false
		}
		c.State, c.Lease = remote.Started, now.Add(lease)
		c.Starts++
		return true
	})
}

// FinishCall implements [remote.Queue].
func (q *CallQueue) FinishCall(ctx context.Context, ref remote.Ref, r *remote.Result) error {
	r = cloneResult(r)
	return q.withClaim(ctx, "finish a call", ref, func(c *QueuedCall, now time.Time) bool {
		switch {
		case c.State == remote.Done:
			return true
		case c.State == remote.Claimed || c.State == remote.Cancelled || c.State == remote.Unknown && c.Decided:
			return false
		}
		c.Result = r // a call that was queued again after it was started has its worker until the next claim
		c.end(remote.Done, now)
		return true
	})
}

// ReturnCall implements [remote.Queue].
func (q *CallQueue) ReturnCall(ctx context.Context, ref remote.Ref) error {
	return q.withClaim(ctx, "return a call", ref, func(c *QueuedCall, now time.Time) bool {
		if c.State != remote.Claimed && c.State != remote.Started {
			return false
		}
		c.Worker = ""
		c.requeue(now)
		return true
	})
}

// ClaimCalls implements [remote.Queue]. It looks first without writing: mostly there is nothing to claim.
func (q *CallQueue) ClaimCalls(ctx context.Context, worker string, definitions []string, lease time.Duration, limit int) ([]remote.Call, error) {
	const op = "claim calls"
	var some bool
	err := q.begin(ctx, op, false, func(rows CallRows, _ time.Time) error {
		calls, err := rows.QueuedCalls(definitions, min(limit, 1))
		some = len(calls) > 0
		return err
	})
	if err != nil || !some {
		return nil, err
	}
	var out []remote.Call
	err = q.begin(ctx, op, true, func(rows CallRows, now time.Time) error {
		calls, err := rows.QueuedCalls(definitions, limit)
		for i := 0; i < len(calls) && err == nil; i++ {
			c := calls[i]
			c.State, c.Worker, c.Lease = remote.Claimed, worker, now.Add(lease)
			c.Attempt++
			out = append(out, *c.row(now))
			err = rows.PutCall(c)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// RenewCalls implements [remote.Queue].
func (q *CallQueue) RenewCalls(ctx context.Context, worker string, held []remote.Ref, lease time.Duration) ([]remote.Ref, error) {
	var stop []remote.Ref
	err := q.begin(ctx, "renew calls", len(held) > 0, func(rows CallRows, now time.Time) error {
		for _, ref := range held {
			c, err := rows.Call(ref.Key)
			mine := err == nil && c.Attempt == ref.Attempt && c.Worker == worker && (c.State == remote.Claimed || c.State == remote.Started)
			if mine {
				c.Lease = now.Add(lease)
				err = rows.PutCall(c)
			}
			if err != nil && !errors.Is(err, lathe.ErrNotFound) {
				return err
			}
			if !mine || c.Cancelled {
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

// ExpireCalls implements [remote.Queue]. It looks first without writing: mostly nothing has expired.
func (q *CallQueue) ExpireCalls(ctx context.Context) (int, error) {
	const op = "expire calls"
	var due []*QueuedCall
	var forgotten, workers int
	look := func(rows CallRows, now time.Time) (err error) {
		if due, err = rows.DueCalls(); err != nil {
			return err
		}
		if forgotten, err = rows.ForgetCalls(now.Add(-remote.CallsKept)); err != nil {
			return err
		}
		workers, err = rows.ForgetWorkers()
		return err
	}
	if err := q.begin(ctx, op, false, look); err != nil || len(due)+forgotten+workers == 0 {
		return 0, err
	}
	var changed []*remote.Call
	err := q.begin(ctx, op, true, func(rows CallRows, now time.Time) error {
		err := look(rows, now)
		for i := 0; i < len(due) && err == nil; i++ {
			due[i].expire(now)
			changed = append(changed, due[i].row(now))
			err = rows.PutCall(due[i])
		}
		return err
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
func (q *CallQueue) WatchCalls(ctx context.Context, fn func(remote.Notification)) error {
	q.notifier.Watch(ctx, fn)
	return nil
}

// PutWorker implements [remote.WorkerIndex].
func (q *CallQueue) PutWorker(ctx context.Context, w *remote.Worker, ttl time.Duration) error {
	changed, row := false, cloneWorker(w)
	err := q.begin(ctx, "keep a worker", true, func(rows CallRows, now time.Time) error {
		row.Since = now
		has, _, err := rows.Worker(row.ID)
		switch {
		case errors.Is(err, lathe.ErrNotFound):
			changed = ttl > 0
		case err != nil:
			return err
		default:
			row.Since = has.Since
			changed = ttl <= 0 || !slices.EqualFunc(has.Tools, row.Tools, func(a, b remote.Tool) bool { return a.Definition() == b.Definition() })
		}
		return rows.PutWorker(&row, now.Add(ttl))
	})
	if err == nil && changed {
		q.notifier.Notify(remote.Notification{})
	}
	return err
}

// ShortenWorker implements [remote.WorkerIndex].
func (q *CallQueue) ShortenWorker(ctx context.Context, id string, ttl time.Duration) error {
	return q.begin(ctx, "shorten the time of a worker", true, func(rows CallRows, now time.Time) error {
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
func (q *CallQueue) Workers(ctx context.Context) (out []remote.Worker, err error) {
	err = q.begin(ctx, "list workers", false, func(rows CallRows, _ time.Time) error {
		out, err = rows.Workers()
		return err
	})
	return out, err
}
