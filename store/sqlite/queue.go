package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/remote"
	"github.com/lathe-run/lathe/store"
)

var (
	_ remote.Queue = (*CallQueue)(nil)
	_ remote.Queue = (*Store)(nil)
)

const callColumns = "key, run_id, call_id, request_id, session_id, depth, traceparent, tracestate, tool, definition, effect, args, state, attempt, worker, deadline, cancelled, decided, result"

// A CallQueue is the part of a [Store] that stores calls for workers, and lists the workers. It implements
// [remote.Queue].
type CallQueue struct {
	db       *database
	notifier store.CallNotifier
}

// scanner is a row, or rows.
type scanner interface{ Scan(...any) error }

func scanCall(row scanner, now time.Time) (*remote.Call, error) {
	c := &remote.Call{}
	var args, result []byte
	var deadline int64
	if err := row.Scan(&c.Key, &c.RunID, &c.CallID, &c.RequestID, &c.SessionID, &c.Depth, &c.Trace.Parent, &c.Trace.State, &c.Tool, &c.Definition, &c.Effect, &args,
		&c.State, &c.Attempt, &c.Worker, &deadline, &c.Cancelled, &c.Decided, &result); err != nil {
		return nil, err
	}
	c.Arguments, c.Left = args, time.Unix(0, deadline).Sub(now)
	if result != nil {
		c.Result = &remote.Result{}
		return c, json.Unmarshal(result, c.Result)
	}
	return c, nil
}

func findCall(ctx context.Context, tx *sql.Tx, op, key string, now time.Time) (*remote.Call, error) {
	c, err := scanCall(tx.QueryRowContext(ctx, "SELECT "+callColumns+" FROM call WHERE key = ?", key), now)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, store.NoCall(op)
	}
	return c, err
}

// changeCall executes do in a transaction, and returns the row of the key as it is afterwards.
func (q *CallQueue) changeCall(ctx context.Context, op, key string, do func(context.Context, *sql.Tx, time.Time) error) (*remote.Call, error) {
	var row *remote.Call
	_, err := q.db.submit(ctx, func(ctx context.Context, tx *sql.Tx) (_ int64, err error) {
		now := time.Now()
		if err := do(ctx, tx, now); err != nil {
			return 0, err
		}
		row, err = findCall(ctx, tx, op, key, now)
		return 0, err
	})
	if err != nil {
		return nil, failure(ctx, op, err)
	}
	return row, nil
}

// PutCall implements [remote.Queue].
func (q *CallQueue) PutCall(ctx context.Context, c *remote.Call, within time.Duration) (*remote.Call, error) {
	const op = "sqlite: queue a call"
	if err := store.CallMisfit(op, c); err != nil {
		return nil, err
	}
	hash := store.ArgumentsHash(c)
	row, err := q.changeCall(ctx, op, c.Key, func(ctx context.Context, tx *sql.Tx, now time.Time) error {
		if _, err := tx.ExecContext(ctx, `INSERT INTO call (key, run_id, call_id, request_id, session_id, depth, traceparent, tracestate, tool, definition, effect, args, args_hash, state, deadline)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'queued', ?) ON CONFLICT (key) DO NOTHING`,
			c.Key, c.RunID, c.CallID, c.RequestID, c.SessionID, c.Depth, c.Trace.Parent, c.Trace.State, c.Tool, c.Definition, c.Effect, []byte(c.Arguments), hash, now.Add(within).UnixNano()); err != nil {
			return err
		}
		var same bool
		if err := tx.QueryRowContext(ctx, "SELECT tool = ? AND args_hash = ? FROM call WHERE key = ?", c.Tool, hash, c.Key).Scan(&same); err != nil {
			return err
		}
		if !same {
			return store.NotClaimed(op)
		}
		return nil
	})
	if err == nil && row.State == remote.Queued {
		q.notifier.Notify(remote.Notification{Key: c.Key, Definition: row.Definition})
	}
	return row, err
}

// FindCall implements [remote.Queue].
func (q *CallQueue) FindCall(ctx context.Context, key string) (*remote.Call, error) {
	const op = "sqlite: find a call"
	row, err := scanCall(q.db.read.QueryRowContext(ctx, "SELECT "+callColumns+" FROM call WHERE key = ?", key), time.Now())
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, store.NoCall(op)
	case err != nil:
		return nil, failure(ctx, op, err)
	}
	return row, nil
}

// CancelCall implements [remote.Queue].
func (q *CallQueue) CancelCall(ctx context.Context, key string) (*remote.Call, error) {
	row, err := q.changeCall(ctx, "sqlite: cancel a call", key, func(ctx context.Context, tx *sql.Tx, now time.Time) error {
		_, err := tx.ExecContext(ctx, `UPDATE call SET cancelled = 1, args = CASE state WHEN 'started' THEN args END,
			ended = CASE state WHEN 'started' THEN 0 ELSE ?1 END, state = CASE state WHEN 'started' THEN state ELSE 'cancelled' END
			WHERE key = ?2 AND state IN ('queued', 'claimed', 'started')`, now.UnixNano(), key)
		return err
	})
	if err == nil {
		q.notifier.Notify(remote.Notification{Key: key, Cancelled: row.State == remote.Started})
	}
	return row, err
}

// DecideCall implements [remote.Queue].
func (q *CallQueue) DecideCall(ctx context.Context, key string) (*remote.Call, error) {
	return q.changeCall(ctx, "sqlite: decide a call", key, func(ctx context.Context, tx *sql.Tx, _ time.Time) error {
		_, err := tx.ExecContext(ctx, "UPDATE call SET decided = 1 WHERE key = ? AND state = 'unknown'", key)
		return err
	})
}

// ClaimCalls implements [remote.Queue].
func (q *CallQueue) ClaimCalls(ctx context.Context, worker string, definitions []string, lease time.Duration, limit int) ([]remote.Call, error) {
	const op = "sqlite: claim calls"
	list, err := json.Marshal(definitions)
	if err != nil {
		return nil, failure(ctx, op, err)
	}
	if limit <= 0 || len(definitions) == 0 {
		return nil, nil
	}
	var out []remote.Call
	waits, err := q.callsWait(ctx, list)
	if err != nil {
		return nil, failure(ctx, op, err)
	}
	if !waits {
		return nil, nil
	}
	_, err = q.db.submit(ctx, func(ctx context.Context, tx *sql.Tx) (int64, error) {
		now := time.Now()
		rows, err := tx.QueryContext(ctx, `SELECT key FROM call WHERE state = 'queued' AND definition IN (SELECT value FROM json_each(?)) AND deadline > ? ORDER BY seq LIMIT ?`,
			string(list), now.UnixNano(), limit)
		if err != nil {
			return 0, err
		}
		keys, err := texts(rows)
		if err != nil {
			return 0, err
		}
		for _, key := range keys {
			if _, err := tx.ExecContext(ctx, "UPDATE call SET state = 'claimed', attempt = attempt + 1, worker = ?, lease_until = ? WHERE key = ?",
				worker, now.Add(lease).UnixNano(), key); err != nil {
				return 0, err
			}
			c, err := findCall(ctx, tx, op, key, now)
			if err != nil {
				return 0, err
			}
			out = append(out, *c)
		}
		return 0, nil
	})
	if err != nil {
		return nil, failure(ctx, op, err)
	}
	return out, nil
}

// callsWait looks, without writing, whether there is anything to claim: mostly there is not.
func (q *CallQueue) callsWait(ctx context.Context, list []byte) (waits bool, err error) {
	err = q.db.read.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM call WHERE state = 'queued' AND definition IN (SELECT value FROM json_each(?)))", string(list)).Scan(&waits)
	return waits, err
}

func texts(rows *sql.Rows) (out []string, err error) {
	defer func() { _ = rows.Close() }() // Err reports what matters
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, rows.Err()
}

// withClaim executes one statement about an attempt. If no row matches, the attempt no longer holds the call.
func (q *CallQueue) withClaim(ctx context.Context, op string, ref remote.Ref, do func(time.Time) (statement string, args []any)) error {
	_, err := q.db.submit(ctx, func(ctx context.Context, tx *sql.Tx) (int64, error) {
		statement, args := do(time.Now())
		done, err := tx.ExecContext(ctx, statement+" AND key = ? AND attempt = ? AND worker = ? AND worker <> ''", append(args, ref.Key, ref.Attempt, ref.Worker)...)
		if err != nil {
			return 0, err
		}
		n, err := done.RowsAffected()
		if err == nil && n == 0 {
			if err = store.NotClaimed(op); !there(ctx, tx, ref.Key) {
				err = store.NoCall(op)
			}
		}
		return n, err
	})
	if err != nil {
		return failure(ctx, op, err)
	}
	q.notifier.Notify(remote.Notification{Key: ref.Key})
	return nil
}

func there(ctx context.Context, tx *sql.Tx, key string) bool {
	var one int
	return tx.QueryRowContext(ctx, "SELECT 1 FROM call WHERE key = ?", key).Scan(&one) == nil
}

// StartCall implements [remote.Queue].
func (q *CallQueue) StartCall(ctx context.Context, ref remote.Ref, lease time.Duration) error {
	return q.withClaim(ctx, "sqlite: start a call", ref, func(now time.Time) (string, []any) {
		return "UPDATE call SET state = 'started', starts = starts + 1, lease_until = ? WHERE state = 'claimed' AND lease_until > ? AND deadline > ?",
			[]any{now.Add(lease).UnixNano(), now.UnixNano(), now.UnixNano()}
	})
}

// FinishCall implements [remote.Queue].
func (q *CallQueue) FinishCall(ctx context.Context, ref remote.Ref, r *remote.Result) error {
	const op = "sqlite: finish a call"
	result, err := r.MarshalJSON()
	if err != nil {
		return &lathe.Error{Code: lathe.CodeInvalidRequest, Op: op, Err: err}
	}
	return q.withClaim(ctx, op, ref, func(now time.Time) (string, []any) {
		return `UPDATE call SET result = coalesce(result, ?), ended = CASE state WHEN 'done' THEN ended ELSE ? END, state = 'done', args = NULL
			WHERE (state IN ('started', 'queued', 'done') OR state = 'unknown' AND decided = 0)`, []any{result, now.UnixNano()}
	})
}

// ReturnCall implements [remote.Queue].
func (q *CallQueue) ReturnCall(ctx context.Context, ref remote.Ref) error {
	err := q.withClaim(ctx, "sqlite: return a call", ref, func(now time.Time) (string, []any) {
		return requeue + ", worker = '' WHERE state IN ('claimed', 'started')", []any{now.UnixNano()}
	})
	if err == nil {
		q.notifyQueued(ctx, ref.Key)
	}
	return err
}

// requeue queues a call again, or cancels it if its run has cancelled it or its deadline is at or before ?1.
const requeue = `UPDATE call SET state = CASE WHEN cancelled = 1 OR deadline <= ?1 THEN 'cancelled' ELSE 'queued' END,
	ended = CASE WHEN cancelled = 1 OR deadline <= ?1 THEN ?1 ELSE 0 END, args = CASE WHEN cancelled = 1 OR deadline <= ?1 THEN NULL ELSE args END`

func (q *CallQueue) notifyQueued(ctx context.Context, key string) {
	if c, err := q.FindCall(ctx, key); err == nil && c.State == remote.Queued {
		q.notifier.Notify(remote.Notification{Key: key, Definition: c.Definition})
	}
}

// RenewCalls implements [remote.Queue].
func (q *CallQueue) RenewCalls(ctx context.Context, worker string, held []remote.Ref, lease time.Duration) (stop []remote.Ref, err error) {
	if len(held) == 0 {
		return nil, nil
	}
	_, err = q.db.submit(ctx, func(ctx context.Context, tx *sql.Tx) (int64, error) {
		until := time.Now().Add(lease).UnixNano()
		for _, ref := range held {
			var cancelled bool
			err := tx.QueryRowContext(ctx, "UPDATE call SET lease_until = ? WHERE key = ? AND attempt = ? AND worker = ? AND state IN ('claimed', 'started') RETURNING cancelled",
				until, ref.Key, ref.Attempt, worker).Scan(&cancelled)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return 0, err
			}
			if err != nil || cancelled {
				stop = append(stop, ref)
			}
		}
		return 0, nil
	})
	if err != nil {
		return nil, failure(ctx, "sqlite: renew calls", err)
	}
	return stop, nil
}
