package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/store"
)

//go:embed request.sql
var requestTable string

var _ lathe.RequestStore = (*Store)(nil)

// PutRequest implements [lathe.RequestStore].
func (s *Store) PutRequest(ctx context.Context, digest lathe.RequestDigest, runID string) error {
	_, err := s.submit(ctx, func(ctx context.Context, tx *sql.Tx) (int64, error) {
		now := time.Now()
		if _, err := tx.ExecContext(ctx, "DELETE FROM request WHERE time < ?", now.Add(-store.RequestsKept).UnixNano()); err != nil {
			return 0, err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO request (digest, run_id, time) VALUES (?, ?, ?)
			ON CONFLICT (digest) DO UPDATE SET run_id = excluded.run_id, time = excluded.time, delivered = NULL`, digest[:], runID, now.UnixNano())
		return 0, err
	})
	if err != nil {
		return failure(ctx, "sqlite: put the request", err)
	}
	return nil
}

// FindRequest implements [lathe.RequestStore].
func (s *Store) FindRequest(ctx context.Context, digest lathe.RequestDigest) (lathe.RequestRecord, error) {
	const op = "sqlite: find the request"
	notFound := &lathe.Error{Code: lathe.CodeNotFound, Op: op, Err: lathe.ErrNotFound}
	if s.schema < 7 {
		return lathe.RequestRecord{}, notFound
	}
	var r lathe.RequestRecord
	var at int64
	var delivered sql.NullInt64
	err := s.read.QueryRowContext(ctx, "SELECT run_id, time, delivered FROM request WHERE digest = ?", digest[:]).Scan(&r.RunID, &at, &delivered)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return lathe.RequestRecord{}, notFound
	case err != nil:
		return lathe.RequestRecord{}, failure(ctx, op, err)
	}
	now := time.Now()
	r.Age, r.Delivered = now.Sub(time.Unix(0, at)), delivered.Valid
	if r.Delivered {
		r.DeliveredAge = now.Sub(time.Unix(0, delivered.Int64))
	}
	return r, nil
}

// DeliverRequest implements [lathe.RequestStore].
func (s *Store) DeliverRequest(ctx context.Context, digest lathe.RequestDigest, runID string, ago time.Duration) error {
	at := time.Now().Add(-ago) // not when the writer comes to it
	_, err := s.submit(ctx, func(ctx context.Context, tx *sql.Tx) (int64, error) {
		_, err := tx.ExecContext(ctx, "UPDATE request SET delivered = ? WHERE digest = ? AND run_id = ? AND delivered IS NULL",
			at.UnixNano(), digest[:], runID)
		return 0, err
	})
	if err != nil {
		return failure(ctx, "sqlite: deliver the request", err)
	}
	return nil
}
