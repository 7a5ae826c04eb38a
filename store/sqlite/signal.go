package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/store"
)

// PutSignal implements [store.SignalStore].
func (s *Store) PutSignal(ctx context.Context, f store.Signal) error {
	const op = "sqlite: put signal"
	if err := store.CheckSignal(&f); err != nil {
		return &lathe.Error{Code: lathe.CodeInvalidRequest, Op: op, Err: err}
	}
	_, err := s.submit(ctx, func(ctx context.Context, tx *sql.Tx) (int64, error) {
		var status string
		err := tx.QueryRowContext(ctx, "SELECT status FROM run WHERE run_id = ?", f.RunID).Scan(&status)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return 0, lathe.ErrNotFound
		case err != nil:
			return 0, err
		case status != "running" && status != "parked":
			return 0, lathe.ErrConflict
		}
		done, err := tx.ExecContext(ctx, `INSERT INTO fact (run_id, seq, kind, key, body, time)
			SELECT ?1, coalesce(max(seq), 0) + 1, ?2, ?3, ?4, ?5 FROM fact WHERE run_id = ?1 ON CONFLICT (run_id, kind, key) DO NOTHING`,
			f.RunID, f.Kind, f.Key, []byte(f.Body), time.Now().UnixNano())
		if err != nil {
			return 0, err
		}
		n, err := done.RowsAffected()
		if err == nil && n == 0 {
			err = lathe.ErrConflict
		}
		return n, err
	})
	return failure(ctx, op, err)
}

// Signals implements [store.SignalStore].
func (s *Store) Signals(ctx context.Context, runID string) ([]store.Signal, error) {
	const op = "sqlite: signals"
	if s.schema < 2 {
		return nil, nil
	}
	rows, err := s.read.QueryContext(ctx, "SELECT kind, key, body, time FROM fact WHERE run_id = ? ORDER BY seq", runID)
	if err != nil {
		return nil, failure(ctx, op, err)
	}
	defer func() { _ = rows.Close() }() // Err reports what matters
	var out []store.Signal
	for rows.Next() {
		f := store.Signal{RunID: runID}
		var body []byte
		var nanos int64
		if err := rows.Scan(&f.Kind, &f.Key, &body, &nanos); err != nil {
			return nil, failure(ctx, op, err)
		}
		f.Body, f.Time = body, time.Unix(0, nanos)
		out = append(out, f)
	}
	if err := rows.Err(); err != nil {
		return nil, failure(ctx, op, err)
	}
	return out, nil
}
