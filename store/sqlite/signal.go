package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"encoding/json"
	"errors"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/store"
)

//go:embed migrations/0002_signals.sql
var signalTable string

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
			return 0, &lathe.Error{Code: lathe.CodeNotFound, Op: op, Err: lathe.ErrNotFound}
		case err != nil:
			return 0, err
		case status != "running" && status != "parked":
			return 0, &lathe.Error{Code: lathe.CodeConflict, Op: op, Err: lathe.ErrConflict}
		}
		done, err := tx.ExecContext(ctx, `INSERT INTO fact (run_id, seq, kind, key, body, time)
			SELECT ?1, coalesce(max(seq), 0) + 1, ?2, ?3, ?4, ?5 FROM fact WHERE run_id = ?1 ON CONFLICT (run_id, kind, key) DO NOTHING`,
			f.RunID, f.Kind, f.Key, []byte(f.Body), time.Now().UnixNano())
		if err != nil {
			return 0, err
		}
		n, err := done.RowsAffected()
		if err == nil && n == 0 {
			err = &lathe.Error{Code: lathe.CodeConflict, Op: op, Err: lathe.ErrConflict}
		}
		return n, err
	})
	if err != nil {
		return failure(ctx, op, err)
	}
	return nil
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

// addSignalTable updates a file of version 1 to version 2, which has signals, and whose lists have the time at which a
// suspended run resumes by itself.
func addSignalTable(ctx context.Context, tx *sql.Tx) error {
	if _, err := tx.ExecContext(ctx, signalTable); err != nil {
		return err
	}
	parked, err := parkedRuns(ctx, tx)
	if err != nil {
		return err
	}
	for id, last := range parked {
		var sums summaries
		sum, err := sums.take(ctx, tx, id, last)
		if err != nil {
			return err
		}
		row, err := json.Marshal(&sum.Run)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "UPDATE run SET summary = ? WHERE run_id = ?", row, id); err != nil {
			return err
		}
	}
	return nil
}

// parkedRuns returns the last ids of the runs that wait.
func parkedRuns(ctx context.Context, tx *sql.Tx) (map[string]int64, error) {
	rows, err := tx.QueryContext(ctx, "SELECT run_id, last_id FROM run WHERE status = 'parked'")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Err reports what matters
	out := map[string]int64{}
	for rows.Next() {
		var id string
		var last int64
		if err := rows.Scan(&id, &last); err != nil {
			return nil, err
		}
		out[id] = last
	}
	return out, rows.Err()
}
