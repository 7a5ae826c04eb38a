package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/store"
)

var _ store.Compactor = (*Store)(nil)

// Ended implements [store.Compactor].
func (s *Store) Ended(ctx context.Context, after *store.RunSummary, before time.Time, limit int) ([]store.RunSummary, error) {
	const op = "postgres: list"
	since, id := int64(-1<<63), ""
	if after != nil {
		since, id = after.Updated.UnixNano(), after.RunID
	}
	return collect(ctx, s.database, op, scanJSON[store.RunSummary], `SELECT summary FROM run WHERE ended_at IS NOT NULL AND (ended_at, run_id) > ($1, $2) AND ended_at < $3
		ORDER BY ended_at, run_id LIMIT $4`, since, id, before.UnixNano(), limit)
}

// Compact implements [store.Compactor]. The store can no longer read the content. PostgreSQL frees the space and erases the content when it
// vacuums; its WAL and backups contain the content until they expire.
func (s *Store) Compact(ctx context.Context, runID string, shrink func(event.Event) event.Event) error {
	const op = "postgres: compact"
	c, err := store.PlanCompaction(ctx, op, runID, s.Read, shrink)
	if err != nil || c == nil {
		return failure(ctx, op, err)
	}
	// The run has ended, so only a deletion can change it since the read, and then no row is updated. Two processes that compact one run
	// write the same content.
	err = s.again(ctx, func(ctx context.Context) error {
		b := &pgx.Batch{} // one transaction
		b.Queue("SELECT FROM run WHERE run_id = $1 AND ended FOR UPDATE", runID)
		for i, body := range c.Bodies {
			b.Queue("UPDATE event SET body = $3 WHERE run_id = $1 AND id = $2", runID, c.Events[i].ID, body)
		}
		b.Queue(`UPDATE run SET summary = $2, bytes = (SELECT coalesce(sum(octet_length(body)), 0) FROM event WHERE run_id = $1) WHERE run_id = $1 AND ended`, runID, c.Row)
		return s.pool.SendBatch(ctx, b).Close()
	})
	return failure(ctx, op, err)
}
