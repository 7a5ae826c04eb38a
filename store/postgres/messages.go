package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/lathe-run/lathe/internal/conversation"
)

// readMessages returns the bodies of the messages up to the one with the digest last.
func (d *database) readMessages(ctx context.Context, last []byte) ([][]byte, error) {
	rows, err := d.pool.Query(ctx, `WITH RECURSIVE up (digest, previous, body, n) AS (
		SELECT digest, previous, body, 0 FROM message WHERE digest = $1
		UNION ALL SELECT m.digest, m.previous, m.body, n + 1 FROM up JOIN message m ON m.digest = up.previous
	) SELECT digest, previous, body FROM up ORDER BY n`, last)
	if err != nil {
		return nil, err
	}
	read, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (m conversation.Message, err error) {
		return m, r.Scan(&m.Digest, &m.Before, &m.Body)
	})
	if err != nil {
		return nil, err
	}
	return conversation.Chain(last, read)
}

// unstored returns those of the messages that are not stored.
func (d *database) unstored(ctx context.Context, messages []conversation.Message) ([]conversation.Message, error) {
	if len(messages) == 0 {
		return nil, nil
	}
	digests := make([][]byte, len(messages))
	for i := range messages {
		digests[i] = messages[i].Digest
	}
	stored := map[string]bool{}
	err := d.retry(ctx, func(ctx context.Context) error {
		rows, err := d.pool.Query(ctx, "SELECT digest FROM message WHERE digest = ANY($1)", digests)
		if err != nil {
			return err
		}
		var digest []byte
		_, err = pgx.ForEachRow(rows, []any{&digest}, func() error { stored[string(digest)] = true; return nil })
		return err
	})
	var out []conversation.Message
	for _, m := range messages {
		if !stored[string(m.Digest)] {
			out = append(out, m)
		}
	}
	return out, err
}

// foreignKey is the code of the error of an append whose messages another process has deleted since unstored has found them.
const foreignKey = "23503"

// Statements that lock the messages of all conversations until the end of a transaction. An append that refers to messages shares them, and a
// transaction that may delete messages has them alone, as in the trigger. Both lock them before the rows of runs, which excludes a deadlock
// between them.
const (
	// 1835365232 is the text "mesp" as a number, and the hash separates the schemas of one database.
	shareMessages = "SELECT pg_advisory_xact_lock_shared(1835365232, hashtext(current_schema()))"
	lockMessages  = "SELECT pg_advisory_xact_lock(1835365232, hashtext(current_schema()))"
)
