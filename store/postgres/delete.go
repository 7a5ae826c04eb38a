package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// maxDeleted is the maximum number of runs that one transaction deletes.
const maxDeleted = 50

// The columns by whose value runs are deleted.
const (
	runColumn       = "run_id"
	sessionColumn   = "session_id"
	principalColumn = "principal"
)

// Delete implements [store.Store]. After it returns, the store cannot read the run. PostgreSQL frees the space and erases the content when
// it vacuums; its WAL and backups contain the content until they expire.
func (s *Store) Delete(ctx context.Context, runID string) error {
	return s.remove(ctx, runColumn, runID)
}

// DeleteSession implements [store.Retainer].
func (s *Store) DeleteSession(ctx context.Context, sessionID string) error {
	return s.remove(ctx, sessionColumn, sessionID)
}

// DeletePrincipal implements [store.Retainer].
func (s *Store) DeletePrincipal(ctx context.Context, principal string) error {
	return s.remove(ctx, principalColumn, principal)
}

// remove deletes the runs that have the value in the column, up to maxDeleted per transaction, and the records of earlier removals.
func (s *Store) remove(ctx context.Context, column, value string) error {
	const op = "postgres: delete"
	if err := ctx.Err(); err != nil {
		return failure(ctx, op, err)
	}
	if value == "" {
		return nil
	}
	for {
		ids, err := collect(ctx, s.database, op, pgx.RowTo[string], "SELECT run_id FROM run WHERE "+column+" = $1 ORDER BY run_id LIMIT $2", value, maxDeleted)
		if err == nil {
			err = s.retry(ctx, func(ctx context.Context) error {
				b := &pgx.Batch{}
				if column != sessionColumn { // the records have no session
					b.Queue("DELETE FROM request WHERE run_id IN (SELECT run_id FROM gone WHERE "+column+" = $1)", value)
					b.Queue("DELETE FROM gone WHERE "+column+" = $1", value)
				}
				b.Queue("DELETE FROM request WHERE run_id = ANY($1)", ids)
				deleteRuns(b, ids, column+" = $2", value)
				return s.pool.SendBatch(ctx, b).Close()
			})
		}
		if err != nil {
			return failure(ctx, op, err)
		}
		s.memory.forget(ids)
		if len(ids) < maxDeleted {
			return nil
		}
	}
}

// deleteRuns queues statements that delete those of the runs that still meet the condition, in which args are the parameters from $2. Each
// statement sees what was committed before it. The row of the run is locked first, so no append can add events between the deletion of the
// run and of its events.
func deleteRuns(b *pgx.Batch, ids []string, condition string, args ...any) {
	b.Queue(lockMessages)
	b.Queue("SELECT FROM run WHERE run_id = ANY($1) ORDER BY run_id FOR UPDATE", ids)
	b.Queue("DELETE FROM run WHERE run_id = ANY($1) AND "+condition, append([]any{ids}, args...)...)
	for _, table := range []string{"event", "model_call", "fact", "call"} {
		b.Queue("DELETE FROM "+table+" t WHERE run_id = ANY($1) AND NOT EXISTS (SELECT FROM run WHERE run.run_id = t.run_id)", ids)
	}
}
