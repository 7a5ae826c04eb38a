package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// maxDeleted bounds the runs of one transaction.
const maxDeleted = 50

// Delete implements [lathe.Store]. What was deleted is out of reach at once; the server gives its space
// back, and forgets it, when it has cleaned up, and its backups and its log of writes later.
func (s *Store) Delete(ctx context.Context, runID string) error {
	return s.remove(ctx, "run_id = $1", runID)
}

// DeleteSession removes all runs of a session.
func (s *Store) DeleteSession(ctx context.Context, sessionID string) error {
	return s.remove(ctx, "session_id = $1 AND session_id <> ''", sessionID)
}

// DeletePrincipal removes all runs that were made for a principal.
func (s *Store) DeletePrincipal(ctx context.Context, principal string) error {
	return s.remove(ctx, "principal = $1 AND principal <> ''", principal)
}

// DeleteBefore removes the runs that have ended, and whose last event is older than t.
func (s *Store) DeleteBefore(ctx context.Context, t time.Time) error {
	return s.remove(ctx, "updated < $1 AND status NOT IN ('running', 'parked')", t.UnixNano())
}

// remove deletes the runs that fit, some at a time, each whole.
func (s *Store) remove(ctx context.Context, which string, arg any) error {
	const op = "postgres: delete"
	for {
		var ids []string
		err := s.again(ctx, func(ctx context.Context) error {
			rows, err := s.pool.Query(ctx, "SELECT run_id FROM run WHERE "+which+" ORDER BY run_id LIMIT $2", arg, maxDeleted)
			if err != nil {
				return err
			}
			ids, err = pgx.CollectRows(rows, pgx.RowTo[string])
			return err
		})
		if err == nil && len(ids) > 0 {
			err = s.again(ctx, func(ctx context.Context) error { return s.removeThese(ctx, which, arg, ids) })
		}
		if err != nil {
			return failure(ctx, op, err)
		}
		if len(ids) < maxDeleted {
			return nil
		}
	}
}

// removeThese deletes runs in one transaction, sent at once. Each statement sees what was committed
// before it: no append comes between the run, whose row is locked first, and its events.
func (s *Store) removeThese(ctx context.Context, which string, arg any, ids []string) error {
	b := &pgx.Batch{}
	b.Queue("SELECT FROM run WHERE run_id = ANY($1) ORDER BY run_id FOR UPDATE", ids)
	b.Queue("DELETE FROM run WHERE run_id = ANY($2) AND "+which, arg, ids)
	for _, table := range []string{"event", "model_call", "fact", "call"} {
		b.Queue("DELETE FROM "+table+" t WHERE run_id = ANY($1) AND NOT EXISTS (SELECT FROM run WHERE run.run_id = t.run_id)", ids)
	}
	return s.pool.SendBatch(ctx, b).Close()
}
