package postgres

import (
	"context"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/store"
)

var _ store.Retainer = (*Store)(nil)

// maxGone is the maximum number of records of removed runs.
const maxGone = 100_000

// DeleteBefore implements [store.Retainer].
func (s *Store) DeleteBefore(ctx context.Context, t time.Time) error {
	return s.retire(ctx, "SELECT run_id FROM run WHERE ended_at < $1 ORDER BY ended_at, run_id LIMIT $2", t.UnixNano(), maxDeleted)
}

// trimTimeout is the statement timeout for the sum of the sizes of all runs, which reads all rows of the table.
const trimTimeout = 5 * time.Minute

// trimPage is the number of runs that trimTo reads at once.
const trimPage = 1_000

// A runEnd is the position of a run in the order of the ends, with its size.
type runEnd struct {
	At    int64
	ID    string
	Bytes int64
}

// trimTo returns the last run to remove so that the size of all runs is at most maxBytes. found is false if no run must be removed, or none
// has ended. It reads one snapshot, so that processes that trim concurrently remove the same runs.
func (s *Store) trimTo(ctx context.Context, maxBytes int64) (last runEnd, found bool, err error) {
	err = pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT set_config('statement_timeout', $1, true)", milliseconds(trimTimeout)); err != nil {
			return err
		}
		var excess int64
		if err := tx.QueryRow(ctx, "SELECT coalesce(sum(bytes), 0)::bigint - $1 FROM run", maxBytes).Scan(&excess); err != nil {
			return err
		}
		last.At = math.MinInt64
		for excess > 0 {
			rows, err := tx.Query(ctx, "SELECT ended_at, run_id, bytes FROM run WHERE ended_at IS NOT NULL AND (ended_at, run_id) > ($1, $2) ORDER BY ended_at, run_id LIMIT $3", last.At, last.ID, trimPage)
			if err != nil {
				return err
			}
			page, err := pgx.CollectRows(rows, pgx.RowToStructByPos[runEnd])
			if err != nil || len(page) == 0 {
				return err
			}
			for _, r := range page {
				if excess <= 0 {
					break
				}
				last, found, excess = r, true, excess-r.Bytes
			}
		}
		return nil
	})
	return last, found, err
}

// Trim implements [store.Retainer]. The size of a run is that of its events as JSON, before compression by the server. Trim computes the
// sum of the sizes of all runs once.
func (s *Store) Trim(ctx context.Context, maxBytes int64) error {
	last, found, err := s.trimTo(ctx, maxBytes)
	if err != nil || !found {
		return failure(ctx, "postgres: retain", err)
	}
	return s.retire(ctx, "SELECT run_id FROM run WHERE ended_at IS NOT NULL AND (ended_at, run_id) <= ($1, $2) ORDER BY ended_at, run_id LIMIT $3", last.At, last.ID, maxDeleted)
}

// retire removes the ended runs whose ids the query returns, until it returns none, and records the removals. Several processes may do so
// concurrently, because each repeats the query after each batch.
func (s *Store) retire(ctx context.Context, query string, args ...any) error {
	const op = "postgres: retain"
	for {
		ids, err := collect(ctx, s.database, op, pgx.RowTo[string], query, args...)
		if err == nil && len(ids) > 0 {
			err = s.retry(ctx, func(ctx context.Context) error {
				b := &pgx.Batch{}
				b.Queue("INSERT INTO gone (run_id, principal, time) SELECT run_id, principal, now() FROM run WHERE ended AND run_id = ANY($1) ORDER BY run_id ON CONFLICT (run_id) DO UPDATE SET principal = excluded.principal, time = excluded.time", ids)
				b.Queue("DELETE FROM gone WHERE time < (SELECT time FROM gone ORDER BY time DESC LIMIT 1 OFFSET $1)", maxGone)
				deleteRuns(b, ids, "ended")
				return s.pool.SendBatch(ctx, b).Close()
			})
		}
		if err != nil || len(ids) == 0 {
			return failure(ctx, op, err)
		}
	}
}

// missing returns a [store.GoneError] if retention has removed the run, and [lathe.ErrNotFound] if not.
func (s *Store) missing(ctx context.Context, runID string) error {
	e := &store.GoneError{RunID: runID}
	found, err := s.one(ctx, "SELECT principal, time FROM gone WHERE run_id = $1", []any{runID}, &e.Principal, &e.Time)
	switch {
	case err != nil:
		return err
	case !found:
		return lathe.ErrNotFound
	}
	e.Time = e.Time.UTC()
	return e
}
