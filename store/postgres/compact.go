package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/conversation"
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

// eventBytes is the size of the events of the run $1.
const eventBytes = "(SELECT coalesce(sum(octet_length(body)), 0) FROM event WHERE run_id = $1)"

// Compact implements [store.Compactor]. After it returns, the store cannot read the removed content. PostgreSQL frees the space and erases
// the content when it vacuums; its WAL and backups contain the content until they expire.
func (s *Store) Compact(ctx context.Context, runID string, shrink func(event.Event) event.Event) error {
	const op = "postgres: compact"
	// Earlier versions stored the first event of a run with its messages: it is written again without them.
	withMessages, err := collect(ctx, s.database, op, pgx.RowTo[int64], `SELECT id FROM event WHERE run_id = $1 AND id = 1 AND octet_length(body) >= $2
		AND NOT EXISTS (SELECT FROM conversation WHERE run_id = $1)`, runID, conversation.MinBytes)
	if err != nil {
		return err
	}
	c, err := store.PlanCompaction(ctx, op, runID, s.Read, shrink, withMessages...)
	if err != nil || c == nil {
		return failure(ctx, op, err)
	}
	encoded, err := conversation.EncodeAll(&c.Sum.Run, c.Events)
	if err != nil {
		return failure(ctx, op, err)
	}
	var messages []conversation.Message
	for i := range encoded {
		messages = append(messages, encoded[i].Messages...)
	}
	if messages, err = s.unstored(ctx, messages); err != nil {
		return failure(ctx, op, err)
	}
	added := 0
	for _, m := range messages {
		added += len(m.Body)
	}
	// The run has ended, so only a deletion can change it since the read, and then no row is updated. Two processes that compact one run
	// write the same content.
	err = s.retry(ctx, func(ctx context.Context) error {
		b := &pgx.Batch{} // one transaction
		b.Queue(lockMessages)
		b.Queue("SELECT FROM run WHERE run_id = $1 AND ended FOR UPDATE", runID)
		b.Queue("UPDATE run SET bytes = bytes + $2 - "+eventBytes+" WHERE run_id = $1 AND ended", runID, added)
		for _, m := range messages {
			b.Queue("INSERT INTO message (digest, previous, body) VALUES ($1, $2, $3) ON CONFLICT (digest) DO NOTHING", m.Digest, m.Before, m.Body)
		}
		for i := range encoded {
			e, id := &encoded[i], c.Events[i].ID
			b.Queue("UPDATE event SET body = $3 WHERE run_id = $1 AND id = $2", runID, id, e.Body)
			if last := e.Last(); last != nil {
				b.Queue(`INSERT INTO conversation (run_id, event_id, last) SELECT run_id, $2, $3 FROM run WHERE run_id = $1 AND ended
					ON CONFLICT (run_id, event_id) DO UPDATE SET last = excluded.last`, runID, id, last)
			} else {
				b.Queue("DELETE FROM conversation WHERE run_id = $1 AND event_id = $2", runID, id)
			}
		}
		b.Queue("UPDATE run SET summary = $2, bytes = bytes + "+eventBytes+" WHERE run_id = $1 AND ended", runID, c.Row)
		return s.pool.SendBatch(ctx, b).Close()
	})
	return failure(ctx, op, err)
}
