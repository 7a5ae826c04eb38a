package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/store"
)

var _ store.Compactor = (*Store)(nil)

// Ended implements [store.Compactor].
func (s *Store) Ended(ctx context.Context, after *store.RunSummary, before time.Time, limit int) ([]store.RunSummary, error) {
	const op = "sqlite: list"
	since, id := int64(-1<<63), ""
	if after != nil {
		since, id = after.Updated.UnixNano(), after.RunID
	}
	out, err := collect(ctx, s.read, scanJSON[store.RunSummary], `SELECT summary FROM run WHERE status NOT IN ('running', 'parked')
		AND (updated, run_id) > (?, ?) AND updated < ? ORDER BY updated, run_id LIMIT ?`, since, id, before.UnixNano(), limit)
	return out, failure(ctx, op, err)
}

// Compact implements [store.Compactor]. After it, neither the file nor its WAL contains the removed content.
func (s *Store) Compact(ctx context.Context, runID string, shrink func(event.Event) event.Event) error {
	const op = "sqlite: compact"
	c, err := store.PlanCompaction(ctx, op, runID, s.Read, shrink)
	if err != nil || c == nil {
		return failure(ctx, op, err)
	}
	// The run has ended, so only a deletion can change it since the read, and then no row is updated.
	_, err = s.submit(ctx, func(ctx context.Context, tx *sql.Tx) (int64, error) {
		for i, body := range c.Bodies {
			if _, err := tx.ExecContext(ctx, "UPDATE event SET body = ? WHERE run_id = ? AND id = ?", body, runID, c.Events[i].ID); err != nil {
				return 0, err
			}
		}
		_, err := tx.ExecContext(ctx, "UPDATE run SET summary = ? WHERE run_id = ?", c.Row, runID)
		return 0, err
	})
	if err == nil {
		err = s.checkpoint(ctx)
	}
	return failure(ctx, op, err)
}
