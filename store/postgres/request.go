package postgres

import (
	"context"
	"time"

	"github.com/lathe-run/lathe/store"
)

// requestRecords implements [store.RequestStore].
type requestRecords struct{ *database }

// maxPruned is the maximum number of old records that one PutRequest removes.
const maxPruned = 100

// PutRequest implements [store.RequestStore].
func (q *requestRecords) PutRequest(ctx context.Context, digest store.RequestDigest, runID, instead string) error {
	const op = "postgres: put the request"
	err := q.retry(ctx, func(ctx context.Context) error {
		tag, err := q.pool.Exec(ctx, `WITH old AS (
			SELECT digest FROM request WHERE at < now() - $3 * interval '1 microsecond' AND digest <> $1 LIMIT $4 FOR UPDATE SKIP LOCKED
		), pruned AS (
			DELETE FROM request WHERE digest IN (SELECT digest FROM old)
		) INSERT INTO request (digest, run_id, at) VALUES ($1, $2, now())
		ON CONFLICT (digest) DO UPDATE SET run_id = excluded.run_id, at = excluded.at, delivered = NULL
		WHERE request.run_id IN (excluded.run_id, $5)`,
			digest[:], runID, store.RequestsKept.Microseconds(), maxPruned, instead)
		if err == nil && tag.RowsAffected() == 0 {
			return conflict(op)
		}
		return err
	})
	return failure(ctx, op, err)
}

// FindRequest implements [store.RequestStore].
func (q *requestRecords) FindRequest(ctx context.Context, digest store.RequestDigest) (store.RequestRecord, error) {
	const op = "postgres: find the request"
	var r store.RequestRecord
	var age int64
	var delivered *int64
	found, err := q.one(ctx, `SELECT run_id, (extract(epoch FROM now() - at) * 1000000)::bigint, (extract(epoch FROM now() - delivered) * 1000000)::bigint
		FROM request WHERE digest = $1`, []any{digest[:]}, &r.RunID, &age, &delivered)
	switch {
	case err != nil:
		return store.RequestRecord{}, failure(ctx, op, err)
	case !found:
		return store.RequestRecord{}, notFound(op)
	}
	r.Age = time.Duration(age) * time.Microsecond
	if delivered != nil {
		r.Delivered, r.DeliveredAge = true, time.Duration(*delivered)*time.Microsecond
	}
	return r, nil
}

// DeliverRequest implements [store.RequestStore].
func (q *requestRecords) DeliverRequest(ctx context.Context, digest store.RequestDigest, runID string, at time.Time) error {
	err := q.retry(ctx, func(ctx context.Context) error {
		_, err := q.pool.Exec(ctx, "UPDATE request SET delivered = now() - $3 * interval '1 microsecond' WHERE digest = $1 AND run_id = $2 AND delivered IS NULL",
			digest[:], runID, time.Since(at).Microseconds())
		return err
	})
	return failure(ctx, "postgres: deliver the request", err)
}
