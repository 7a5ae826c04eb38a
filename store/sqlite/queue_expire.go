package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/remote"
)

// expiries are the statements that expire calls, in order. ?1 is the time, ?2 a result; each returns what has changed.
var expiries = []string{
	requeue + ", worker = '' WHERE state = 'claimed' AND ended = 0 AND lease_until <= ?1 AND ?2 <> ''",
	`UPDATE call SET state = 'unknown', ended = ?1, args = NULL WHERE state = 'started' AND ended = 0 AND lease_until <= ?1 AND effect NOT IN (1, 2) AND ?2 <> ''`,
	`UPDATE call SET state = 'done', ended = ?1, args = NULL, result = ?2 WHERE state = 'started' AND ended = 0 AND lease_until <= ?1 AND starts >= ?3`,
	requeue + " WHERE state = 'started' AND ended = 0 AND lease_until <= ?1 AND ?2 <> ''",
	`UPDATE call SET state = 'cancelled', ended = ?1, args = NULL WHERE state = 'queued' AND ended = 0 AND deadline <= ?1 AND ?2 <> ''`,
}

// ExpireCalls implements [remote.Queue].
func (q *CallQueue) ExpireCalls(ctx context.Context) (int, error) {
	const op = "sqlite: expire calls"
	due, err := q.callsDue(ctx)
	if err != nil {
		return 0, failure(ctx, op, err)
	}
	if !due {
		return 0, nil
	}
	gaveUp, err := (&remote.Result{IsError: true, Code: lathe.CodeUnavailable}).MarshalJSON()
	if err != nil {
		return 0, failure(ctx, op, err)
	}
	var notifications []remote.Notification
	n, err := q.db.submit(ctx, func(ctx context.Context, tx *sql.Tx) (n int64, err error) {
		now := time.Now()
		for _, statement := range expiries {
			changed, err := expire(ctx, tx, statement, now, gaveUp)
			if err != nil {
				return 0, err
			}
			notifications, n = append(notifications, changed...), n+int64(len(changed))
		}
		for _, forget := range []struct {
			statement    string
			before       time.Time
			notification *remote.Notification
		}{
			{"DELETE FROM call WHERE ended > 0 AND ended < ? AND NOT EXISTS (SELECT 1 FROM run WHERE run.run_id = call.run_id AND status IN ('running', 'parked'))",
				now.Add(-remote.CallsKept), nil},
			{"DELETE FROM worker WHERE until <= ?", now, &remote.Notification{}},
		} {
			done, err := tx.ExecContext(ctx, forget.statement, forget.before.UnixNano())
			if err != nil {
				return 0, err
			}
			gone, err := done.RowsAffected()
			if err != nil {
				return 0, err
			}
			if forget.notification == nil {
				n += gone
			} else if gone > 0 {
				notifications = append(notifications, *forget.notification)
			}
		}
		return n, nil
	})
	if err != nil {
		return 0, failure(ctx, op, err)
	}
	for _, h := range notifications {
		q.notifier.Notify(h)
	}
	return int(n), nil
}

// callsDue looks, without writing, whether any call has expired: mostly none has.
func (q *CallQueue) callsDue(ctx context.Context) (due bool, err error) {
	now := time.Now()
	err = q.db.read.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM call WHERE ended = 0 AND state IN ('claimed', 'started') AND lease_until <= ?1)
		OR EXISTS (SELECT 1 FROM call WHERE ended = 0 AND state = 'queued' AND deadline <= ?1)
		OR EXISTS (SELECT 1 FROM call WHERE ended > 0 AND ended < ?2) OR EXISTS (SELECT 1 FROM worker WHERE until <= ?1)`,
		now.UnixNano(), now.Add(-remote.CallsKept).UnixNano()).Scan(&due)
	return due, err
}

func expire(ctx context.Context, tx *sql.Tx, statement string, now time.Time, gaveUp []byte) (notifications []remote.Notification, err error) {
	rows, err := tx.QueryContext(ctx, statement+" RETURNING key, definition, state", now.UnixNano(), gaveUp, remote.MaxStarts)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Err reports what matters
	for rows.Next() {
		var h remote.Notification
		var state remote.State
		if err := rows.Scan(&h.Key, &h.Definition, &state); err != nil {
			return nil, err
		}
		if state != remote.Queued {
			h.Definition = ""
		}
		notifications = append(notifications, h)
	}
	return notifications, rows.Err()
}

// WatchCalls implements [remote.Queue].
func (q *CallQueue) WatchCalls(ctx context.Context, fn func(remote.Notification)) error {
	q.notifier.Watch(ctx, fn)
	return nil
}

// PutWorker implements [remote.WorkerIndex].
func (q *CallQueue) PutWorker(ctx context.Context, w *remote.Worker, ttl time.Duration) error {
	const op = "sqlite: keep a worker"
	tools, err := json.Marshal(w.Tools)
	if err != nil {
		return &lathe.Error{Code: lathe.CodeInvalidRequest, Op: op, Err: err}
	}
	changed := false
	_, err = q.db.submit(ctx, func(ctx context.Context, tx *sql.Tx) (int64, error) {
		now := time.Now()
		changed = false
		if ttl <= 0 {
			changed = true
			_, err := tx.ExecContext(ctx, "DELETE FROM worker WHERE id = ?", w.ID)
			return 0, err
		}
		var had []byte
		err := tx.QueryRowContext(ctx, "SELECT tools FROM worker WHERE id = ? AND until > ?", w.ID, now.UnixNano()).Scan(&had)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			changed = true
			_, err = tx.ExecContext(ctx, `INSERT OR REPLACE INTO worker (id, fleet, tools, seq, since, until) SELECT ?, ?, ?, coalesce(max(seq), 0) + 1, ?, ? FROM worker`,
				w.ID, w.Pool, tools, now.UnixNano(), now.Add(ttl).UnixNano())
		case err == nil:
			changed = !slices.Equal(had, tools)
			_, err = tx.ExecContext(ctx, "UPDATE worker SET fleet = ?, tools = ?, until = ? WHERE id = ?", w.Pool, tools, now.Add(ttl).UnixNano(), w.ID)
		}
		return 0, err
	})
	if err != nil {
		return failure(ctx, op, err)
	}
	if changed {
		q.notifier.Notify(remote.Notification{})
	}
	return nil
}

// ShortenWorker implements [remote.WorkerIndex].
func (q *CallQueue) ShortenWorker(ctx context.Context, id string, ttl time.Duration) error {
	_, err := q.db.submit(ctx, func(ctx context.Context, tx *sql.Tx) (int64, error) {
		_, err := tx.ExecContext(ctx, "UPDATE worker SET until = min(until, ?) WHERE id = ?", time.Now().Add(ttl).UnixNano(), id)
		return 0, err
	})
	if err != nil {
		return failure(ctx, "sqlite: shorten the time of a worker", err)
	}
	return nil
}

// Workers implements [remote.WorkerIndex].
func (q *CallQueue) Workers(ctx context.Context) ([]remote.Worker, error) {
	const op = "sqlite: list workers"
	rows, err := q.db.read.QueryContext(ctx, "SELECT id, fleet, tools, since FROM worker WHERE until > ? ORDER BY seq", time.Now().UnixNano())
	if err != nil {
		return nil, failure(ctx, op, err)
	}
	defer func() { _ = rows.Close() }() // Err reports what matters
	var out []remote.Worker
	for rows.Next() {
		var w remote.Worker
		var tools []byte
		var since int64
		if err := rows.Scan(&w.ID, &w.Pool, &tools, &since); err != nil {
			return nil, failure(ctx, op, err)
		}
		if err := json.Unmarshal(tools, &w.Tools); err != nil {
			return nil, failure(ctx, op, err)
		}
		w.Since = time.Unix(0, since)
		out = append(out, w)
	}
	if err := rows.Err(); err != nil {
		return nil, failure(ctx, op, err)
	}
	return out, nil
}
