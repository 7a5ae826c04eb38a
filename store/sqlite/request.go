package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/store"
)

var (
	_ store.RequestStore = (*RequestRecords)(nil)
	_ store.RequestStore = (*Store)(nil)
)

// RequestRecords is the part of a [Store] that implements [store.RequestStore].
type RequestRecords struct{ db *database }

// PutRequest implements [store.RequestStore].
func (q *RequestRecords) PutRequest(ctx context.Context, digest store.RequestDigest, runID, instead string) error {
	const op = "sqlite: put the request"
	_, err := q.db.submit(ctx, func(ctx context.Context, tx *sql.Tx) (int64, error) {
		now := time.Now()
		if _, err := tx.ExecContext(ctx, "DELETE FROM request WHERE time < ?", now.Add(-store.RequestsKept).UnixNano()); err != nil {
			return 0, err
		}
		res, err := tx.ExecContext(ctx, `INSERT INTO request (digest, run_id, time) VALUES (?, ?, ?)
			ON CONFLICT (digest) DO UPDATE SET run_id = excluded.run_id, time = excluded.time, delivered = NULL
			WHERE request.run_id IN (excluded.run_id, ?)`, digest[:], runID, now.UnixNano(), instead)
		if err != nil {
			return 0, err
		}
		put, err := res.RowsAffected()
		if err == nil && put == 0 {
			err = lathe.ErrConflict
		}
		return 0, err
	})
	return failure(ctx, op, err)
}

// FindRequest implements [store.RequestStore].
func (q *RequestRecords) FindRequest(ctx context.Context, digest store.RequestDigest) (store.RequestRecord, error) {
	const op = "sqlite: find the request"
	notFound := failure(ctx, op, lathe.ErrNotFound)
	if q.db.schema < 7 {
		return store.RequestRecord{}, notFound
	}
	var r store.RequestRecord
	var at int64
	var delivered sql.NullInt64
	err := q.db.read.QueryRowContext(ctx, "SELECT run_id, time, delivered FROM request WHERE digest = ?", digest[:]).Scan(&r.RunID, &at, &delivered)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return store.RequestRecord{}, notFound
	case err != nil:
		return store.RequestRecord{}, failure(ctx, op, err)
	}
	now := time.Now()
	r.Age, r.Delivered = now.Sub(time.Unix(0, at)), delivered.Valid
	if r.Delivered {
		r.DeliveredAge = now.Sub(time.Unix(0, delivered.Int64))
	}
	return r, nil
}

// DeliverRequest implements [store.RequestStore].
func (q *RequestRecords) DeliverRequest(ctx context.Context, digest store.RequestDigest, runID string, ago time.Duration) error {
	at := time.Now().Add(-ago) // not when the writer comes to it
	_, err := q.db.submit(ctx, func(ctx context.Context, tx *sql.Tx) (int64, error) {
		_, err := tx.ExecContext(ctx, "UPDATE request SET delivered = ? WHERE digest = ? AND run_id = ? AND delivered IS NULL",
			at.UnixNano(), digest[:], runID)
		return 0, err
	})
	return failure(ctx, "sqlite: deliver the request", err)
}
