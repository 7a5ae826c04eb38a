package postgres

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"
)

// maxDeleted bounds the runs that one transaction deletes.
const maxDeleted = 50

// Delete implements [store.Store]. The run can no longer be read once Delete returns. PostgreSQL frees the
// space and erases the content when it vacuums; its WAL and backups contain it until they expire.
func (s *Store) Delete(ctx context.Context, runID string) error {
	return s.remove(ctx, "run_id = $1", runID)
}

// DeleteSession implements [store.Retainer].
func (s *Store) DeleteSession(ctx context.Context, sessionID string) error {
	return s.remove(ctx, "session_id = $1", sessionID)
}

// DeletePrincipal implements [store.Retainer].
func (s *Store) DeletePrincipal(ctx context.Context, principal string) error {
	return s.remove(ctx, "principal = $1", principal)
}

// remove deletes the runs that fit, some at a time, each whole, and what is remembered of those that were
// removed before.
func (s *Store) remove(ctx context.Context, which, name string) error {
	const op = "postgres: delete"
	if err := ctx.Err(); err != nil {
		return failure(ctx, op, err)
	}
	if name == "" {
		return nil
	}
	for {
		ids, err := collect(ctx, s.database, op, pgx.RowTo[string], "SELECT run_id FROM run WHERE "+which+" ORDER BY run_id LIMIT $2", name, maxDeleted)
		if err == nil {
			err = s.again(ctx, func(ctx context.Context) error {
				b := &pgx.Batch{}
				if which != "session_id = $1" { // which is not remembered
					b.Queue("DELETE FROM request WHERE run_id IN (SELECT run_id FROM gone WHERE "+which+")", name)
					b.Queue("DELETE FROM gone WHERE "+which, name)
				}
				b.Queue("DELETE FROM request WHERE run_id = ANY($1)", ids)
				drop(b, ids, which, name)
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

// drop has a transaction, which is sent at once, delete those of the runs that still fit. Each of its
// statements sees what was committed before it: no append comes between the run, whose row is locked
// first, and its events.
func drop(b *pgx.Batch, ids []string, which string, args ...any) {
	b.Queue("SELECT FROM run WHERE run_id = ANY($1) ORDER BY run_id FOR UPDATE", ids)
	b.Queue("DELETE FROM run WHERE "+which+" AND run_id = ANY($"+strconv.Itoa(len(args)+1)+")", append(args, ids)...)
	for _, table := range []string{"event", "model_call", "fact", "call"} {
		b.Queue("DELETE FROM "+table+" t WHERE run_id = ANY($1) AND NOT EXISTS (SELECT FROM run WHERE run.run_id = t.run_id)", ids)
	}
}
