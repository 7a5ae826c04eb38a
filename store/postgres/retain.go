package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/store"
)

var _ store.Retainer = (*Store)(nil)

// maxGone bounds the runs of which it is remembered that they were removed.
const maxGone = 100_000

// DeleteBefore implements [store.Retainer].
func (s *Store) DeleteBefore(ctx context.Context, t time.Time) error {
	return s.retire(ctx, func(ctx context.Context) (ids []string, err error) {
		rows, err := s.pool.Query(ctx, "SELECT run_id FROM run WHERE ended_at < $1 ORDER BY ended_at, run_id LIMIT $2", t.UnixNano(), maxDeleted)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, pgx.RowTo[string])
	})
}

// Trim implements [store.Retainer]. What a run takes is the size of its events as JSON, before the server
// has compressed them.
func (s *Store) Trim(ctx context.Context, maxBytes int64) error {
	return s.retire(ctx, func(ctx context.Context) (ids []string, err error) {
		var over int64
		if err := s.pool.QueryRow(ctx, "SELECT coalesce(sum(bytes), 0)::bigint - $1 FROM run", maxBytes).Scan(&over); err != nil || over <= 0 {
			return nil, err
		}
		rows, err := s.pool.Query(ctx, "SELECT run_id, bytes FROM run WHERE ended_at IS NOT NULL ORDER BY ended_at, run_id LIMIT $1", maxDeleted)
		if err != nil {
			return nil, err
		}
		var id string
		var bytes int64
		_, err = pgx.ForEachRow(rows, []any{&id, &bytes}, func() error {
			if over > 0 {
				ids, over = append(ids, id), over-bytes
			}
			return nil
		})
		return ids, err
	})
}

// retire removes the runs that next names, which have ended, until it names none, and remembers that it
// did. Several processes may be at it at once: each looks again after every few.
func (s *Store) retire(ctx context.Context, next func(context.Context) ([]string, error)) error {
	const op = "postgres: retain"
	for {
		var ids []string
		err := s.again(ctx, func(ctx context.Context) (err error) {
			ids, err = next(ctx)
			return err
		})
		if err == nil && len(ids) > 0 {
			err = s.again(ctx, func(ctx context.Context) error {
				b := &pgx.Batch{}
				b.Queue("INSERT INTO gone (run_id, principal, time) SELECT run_id, principal, now() FROM run WHERE ended AND run_id = ANY($1) ORDER BY run_id ON CONFLICT (run_id) DO UPDATE SET principal = excluded.principal, time = excluded.time", ids)
				b.Queue("DELETE FROM gone WHERE time < (SELECT time FROM gone ORDER BY time DESC LIMIT 1 OFFSET $1)", maxGone)
				drop(b, ids, "ended")
				return s.pool.SendBatch(ctx, b).Close()
			})
		}
		if err != nil {
			return failure(ctx, op, err)
		}
		if len(ids) == 0 {
			return nil
		}
	}
}

// missing says why there is nothing to read of a run.
func (s *Store) missing(ctx context.Context, runID string) error {
	e := &store.GoneError{RunID: runID}
	err := s.again(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, "SELECT principal, time FROM gone WHERE run_id = $1", runID).Scan(&e.Principal, &e.Time)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return lathe.ErrNotFound
	}
	if err != nil {
		return err
	}
	e.Time = e.Time.UTC()
	return e
}
