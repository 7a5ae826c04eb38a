package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/lathe-run/lathe"
)

// reaps are the statements of a reaping, in order. ?1 is the time, ?2 a result; each returns what has changed.
var reaps = []string{
	requeue + ", worker = '' WHERE state = 'claimed' AND ended = 0 AND lease_until <= ?1 AND ?2 <> ''",
	`UPDATE call SET state = 'unknown', ended = ?1, args = NULL WHERE state = 'started' AND ended = 0 AND lease_until <= ?1 AND effect NOT IN (1, 2) AND ?2 <> ''`,
	`UPDATE call SET state = 'done', ended = ?1, args = NULL, result = ?2 WHERE state = 'started' AND ended = 0 AND lease_until <= ?1 AND starts >= ?3`,
	requeue + " WHERE state = 'started' AND ended = 0 AND lease_until <= ?1 AND ?2 <> ''",
	`UPDATE call SET state = 'cancelled', ended = ?1, args = NULL WHERE state = 'queued' AND ended = 0 AND deadline <= ?1 AND ?2 <> ''`,
}

// ReapCalls implements [lathe.CallQueue].
func (s *Store) ReapCalls(ctx context.Context) (int, error) {
	const op = "sqlite: reap calls"
	due, err := s.callsDue(ctx)
	if err != nil {
		return 0, failure(ctx, op, err)
	}
	if !due {
		return 0, nil
	}
	gaveUp, err := (&lathe.CallResult{IsError: true, Code: lathe.CodeUnavailable}).MarshalJSON()
	if err != nil {
		return 0, failure(ctx, op, err)
	}
	var hints []lathe.CallHint
	n, err := s.submit(ctx, func(ctx context.Context, tx *sql.Tx) (n int64, err error) {
		now := time.Now()
		for _, statement := range reaps {
			changed, err := reap(ctx, tx, statement, now, gaveUp)
			if err != nil {
				return 0, err
			}
			hints, n = append(hints, changed...), n+int64(len(changed))
		}
		for _, forget := range []struct {
			statement string
			before    time.Time
			hint      *lathe.CallHint
		}{
			{"DELETE FROM call WHERE ended > 0 AND ended < ? AND NOT EXISTS (SELECT 1 FROM run WHERE run.run_id = call.run_id AND status IN ('running', 'parked'))",
				now.Add(-lathe.CallsKept), nil},
			{"DELETE FROM worker WHERE until <= ?", now, &lathe.CallHint{}},
		} {
			done, err := tx.ExecContext(ctx, forget.statement, forget.before.UnixNano())
			if err != nil {
				return 0, err
			}
			gone, err := done.RowsAffected()
			if err != nil {
				return 0, err
			}
			if forget.hint == nil {
				n += gone
			} else if gone > 0 {
				hints = append(hints, *forget.hint)
			}
		}
		return n, nil
	})
	if err != nil {
		return 0, failure(ctx, op, err)
	}
	for _, h := range hints {
		s.calls.Tell(h)
	}
	return int(n), nil
}

// callsDue looks, without writing, whether there is anything to reap: mostly there is not.
func (s *Store) callsDue(ctx context.Context) (due bool, err error) {
	now := time.Now()
	err = s.read.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM call WHERE ended = 0 AND state IN ('claimed', 'started') AND lease_until <= ?1)
		OR EXISTS (SELECT 1 FROM call WHERE ended = 0 AND state = 'queued' AND deadline <= ?1)
		OR EXISTS (SELECT 1 FROM call WHERE ended > 0 AND ended < ?2) OR EXISTS (SELECT 1 FROM worker WHERE until <= ?1)`,
		now.UnixNano(), now.Add(-lathe.CallsKept).UnixNano()).Scan(&due)
	return due, err
}

func reap(ctx context.Context, tx *sql.Tx, statement string, now time.Time, gaveUp []byte) (hints []lathe.CallHint, err error) {
	rows, err := tx.QueryContext(ctx, statement+" RETURNING key, definition, state", now.UnixNano(), gaveUp, lathe.MaxStarts)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Err tells what matters
	for rows.Next() {
		var h lathe.CallHint
		var state lathe.CallState
		if err := rows.Scan(&h.Key, &h.Definition, &state); err != nil {
			return nil, err
		}
		if state != lathe.CallQueued {
			h.Definition = ""
		}
		hints = append(hints, h)
	}
	return hints, rows.Err()
}

// WatchCalls implements [lathe.CallQueue].
func (s *Store) WatchCalls(ctx context.Context, fn func(lathe.CallHint)) error {
	s.calls.Watch(ctx, fn)
	return nil
}

// PutWorker implements [lathe.WorkerIndex].
func (s *Store) PutWorker(ctx context.Context, w *lathe.Worker, ttl time.Duration) error {
	const op = "sqlite: keep a worker"
	tools, err := json.Marshal(w.Tools)
	if err != nil {
		return &lathe.Error{Code: lathe.CodeInvalidRequest, Op: op, Err: err}
	}
	changed := false
	_, err = s.submit(ctx, func(ctx context.Context, tx *sql.Tx) (int64, error) {
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
				w.ID, w.Fleet, tools, now.UnixNano(), now.Add(ttl).UnixNano())
		case err == nil:
			changed = !slices.Equal(had, tools)
			_, err = tx.ExecContext(ctx, "UPDATE worker SET fleet = ?, tools = ?, until = ? WHERE id = ?", w.Fleet, tools, now.Add(ttl).UnixNano(), w.ID)
		}
		return 0, err
	})
	if err != nil {
		return failure(ctx, op, err)
	}
	if changed {
		s.calls.Tell(lathe.CallHint{})
	}
	return nil
}

// ShortenWorker implements [lathe.WorkerIndex].
func (s *Store) ShortenWorker(ctx context.Context, id string, ttl time.Duration) error {
	_, err := s.submit(ctx, func(ctx context.Context, tx *sql.Tx) (int64, error) {
		_, err := tx.ExecContext(ctx, "UPDATE worker SET until = min(until, ?) WHERE id = ?", time.Now().Add(ttl).UnixNano(), id)
		return 0, err
	})
	if err != nil {
		return failure(ctx, "sqlite: shorten the time of a worker", err)
	}
	return nil
}

// Workers implements [lathe.WorkerIndex].
func (s *Store) Workers(ctx context.Context) ([]lathe.Worker, error) {
	const op = "sqlite: list workers"
	rows, err := s.read.QueryContext(ctx, "SELECT id, fleet, tools, since FROM worker WHERE until > ? ORDER BY seq", time.Now().UnixNano())
	if err != nil {
		return nil, failure(ctx, op, err)
	}
	defer func() { _ = rows.Close() }() // Err tells what matters
	var out []lathe.Worker
	for rows.Next() {
		var w lathe.Worker
		var tools []byte
		var since int64
		if err := rows.Scan(&w.ID, &w.Fleet, &tools, &since); err != nil {
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
