package sqlite

import (
	"context"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/conversation"
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

// Compact implements [store.Compactor]. After it returns, neither the file nor its WAL contains the removed content.
func (s *Store) Compact(ctx context.Context, runID string, shrink func(event.Event) event.Event) error {
	const op = "sqlite: compact"
	// Events that an earlier version stored with all their messages: they are stored again with references.
	unshared, err := collect(ctx, s.read, func(scan scanner) (id int64, err error) { return id, scan(&id) },
		"SELECT id FROM event WHERE run_id = ?1 AND id = 1 AND length(body) >= ?2 AND NOT EXISTS (SELECT 1 FROM conversation WHERE run_id = ?1)", runID, conversation.MinBytes)
	if err != nil {
		return failure(ctx, op, err)
	}
	c, err := store.PlanCompaction(ctx, op, runID, s.Read, shrink, unshared...)
	if err != nil || c == nil {
		return failure(ctx, op, err)
	}
	encoded, err := conversation.EncodeAll(&c.Sum.Run, c.Events)
	if err != nil {
		return failure(ctx, op, err)
	}
	_, err = s.submit(ctx, func(ctx context.Context, tx querier) (int64, error) {
		return 0, rewrite(ctx, tx, runID, c, encoded) // the number is not used here
	})
	if err == nil {
		err = s.checkpoint(ctx)
	}
	return failure(ctx, op, err)
}

// rewrite stores the row of the run and its changed events. An event refers to its last message, and each message to the one before it: see
// messages.go. Messages to which nothing refers any more are deleted at the end.
func rewrite(ctx context.Context, tx querier, runID string, c *store.Compaction, encoded []conversation.Event) error {
	done, err := tx.ExecContext(ctx, "UPDATE run SET summary = ? WHERE run_id = ?", c.Row, runID)
	if err != nil {
		return err
	}
	// The run has ended, so only a deletion can change it since the read, and then no row is updated.
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return err
	}
	var released [][]byte
	for i := range encoded {
		e, id := &encoded[i], c.Events[i].ID
		lastMessages, err := deleteReferences(ctx, tx, "run_id = ? AND event_id = ?", runID, id)
		if err == nil {
			err = addReference(ctx, tx, runID, id, e)
		}
		if err == nil {
			err = put(ctx, tx, "UPDATE event SET body = ? WHERE run_id = ? AND id = ?", e.Body, runID, id)
		}
		if err != nil {
			return err
		}
		released = append(released, lastMessages...)
	}
	return dropMessages(ctx, tx, released)
}

// Shrink rewrites the file without its free pages if they are at least a quarter of the file, and returns the number of bytes by which the
// file became smaller. Meanwhile appends are blocked, and the disk needs space for a second file.
func (s *Store) Shrink(ctx context.Context) (bytes int64, err error) {
	const op = "sqlite: shrink"
	if s.write == nil {
		return 0, lathe.CodeInvalidRequest.Wrap(op, errReadOnly)
	}
	pages := func() (all, free int64, err error) {
		err = s.write.QueryRowContext(ctx, "SELECT page_count * page_size, freelist_count * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size").Scan(&all, &free)
		return all, free, err
	}
	before, free, err := pages()
	if err != nil || free*4 < before || free == 0 {
		return 0, failure(ctx, op, err)
	}
	if err = put(ctx, s.write, "VACUUM"); err == nil {
		err = s.checkpoint(ctx)
	}
	if err != nil {
		return 0, failure(ctx, op, err)
	}
	after, _, err := pages()
	return before - after, failure(ctx, op, err)
}
