package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/store"
)

var _ lathe.RequestStore = (*Store)(nil)

// maxPruned bounds the old records that one PutRequest removes.
const maxPruned = 100

// PutRequest implements [lathe.RequestStore].
func (s *Store) PutRequest(ctx context.Context, digest lathe.RequestDigest, runID string) error {
	err := s.again(ctx, func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, `WITH old AS (
			SELECT digest FROM request WHERE at < now() - $3 * interval '1 microsecond' AND digest <> $1 LIMIT $4 FOR UPDATE SKIP LOCKED
		), pruned AS (
			DELETE FROM request WHERE digest IN (SELECT digest FROM old)
		) INSERT INTO request (digest, run_id, at) VALUES ($1, $2, now())
		ON CONFLICT (digest) DO UPDATE SET run_id = excluded.run_id, at = excluded.at, delivered = NULL`,
			digest[:], runID, store.RequestsKept.Microseconds(), maxPruned)
		return err
	})
	if err != nil {
		return failure(ctx, "postgres: put the request", err)
	}
	return nil
}

// FindRequest implements [lathe.RequestStore].
func (s *Store) FindRequest(ctx context.Context, digest lathe.RequestDigest) (lathe.RequestRecord, error) {
	const op = "postgres: find the request"
	var r lathe.RequestRecord
	var age int64
	var delivered *int64
	err := s.again(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, `SELECT run_id, (extract(epoch FROM now() - at) * 1000000)::bigint, (extract(epoch FROM now() - delivered) * 1000000)::bigint
			FROM request WHERE digest = $1`, digest[:]).Scan(&r.RunID, &age, &delivered)
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return lathe.RequestRecord{}, &lathe.Error{Code: lathe.CodeNotFound, Op: op, Err: lathe.ErrNotFound}
	case err != nil:
		return lathe.RequestRecord{}, failure(ctx, op, err)
	}
	r.Age = time.Duration(age) * time.Microsecond
	if delivered != nil {
		r.Delivered, r.DeliveredAge = true, time.Duration(*delivered)*time.Microsecond
	}
	return r, nil
}

// DeliverRequest implements [lathe.RequestStore].
func (s *Store) DeliverRequest(ctx context.Context, digest lathe.RequestDigest, runID string, ago time.Duration) error {
	began := time.Now().Add(-ago)
	err := s.again(ctx, func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, "UPDATE request SET delivered = now() - $3 * interval '1 microsecond' WHERE digest = $1 AND run_id = $2 AND delivered IS NULL",
			digest[:], runID, time.Since(began).Microseconds())
		return err
	})
	if err != nil {
		return failure(ctx, "postgres: deliver the request", err)
	}
	return nil
}
