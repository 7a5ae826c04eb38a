package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"sort"

	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/conversation"
)

// The beginnings of the queries that read events.
const (
	selectEvents = "SELECT id, body, last FROM event LEFT JOIN conversation c ON c.run_id = event.run_id AND c.event_id = event.id"
	selectBodies = "SELECT id, body, NULL FROM event" // of schemas before version 11, which have all messages in the body
)

// events returns the beginning of the query that reads the events of the file.
func (d *database) events() string {
	if d.schema < messagesVersion { // open for reading only
		return selectBodies
	}
	return selectEvents
}

// scanEvent scans a row of events. read returns the messages that are stored apart, up to the one with the digest last; nil: the event is
// decoded without them.
func scanEvent(log *conversation.Log, scan scanner, read func(last []byte) ([][]byte, error)) (e event.Event, err error) {
	var id int64
	var body, last []byte
	var messages [][]byte
	err = scan(&id, &body, &last)
	if err == nil && last != nil && read != nil {
		messages, err = read(last)
	}
	if err != nil {
		return e, err
	}
	return log.Decode(id, body, last, messages)
}

// readMessages returns the bodies of the messages up to the one with the digest last.
func readMessages(ctx context.Context, tx *sql.Tx, last []byte) ([][]byte, error) {
	read, err := collect(ctx, tx, func(scan scanner) (m conversation.Message, err error) {
		return m, scan(&m.Digest, &m.Before, &m.Body)
	}, `WITH RECURSIVE up (digest, previous, body, n) AS (
		SELECT digest, previous, body, 0 FROM message WHERE digest = ?
		UNION ALL SELECT m.digest, m.previous, m.body, n + 1 FROM up JOIN message m ON m.digest = up.previous
	) SELECT digest, previous, body FROM up ORDER BY n`, last)
	if err != nil {
		return nil, err
	}
	return conversation.Chain(last, read)
}

// addMessages stores the messages that are not stored yet. If a message is stored, the ones before it are, so a binary search finds the first
// one that is not.
func addMessages(ctx context.Context, tx querier, messages []conversation.Message) error {
	var failed error
	stored := sort.Search(len(messages), func(i int) (isMissing bool) {
		var one int
		err := tx.QueryRowContext(ctx, hasMessage, messages[i].Digest).Scan(&one)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			failed = err
		}
		return err != nil
	})
	if failed != nil {
		return failed
	}
	for _, m := range messages[stored:] {
		if err := put(ctx, tx, addMessage, m.Digest, orNull(m.Before), m.Body); err != nil {
			return err
		}
	}
	return nil
}

// orNull returns the argument for a value; NULL for nil.
func orNull(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}

// addReference records the last message of an event.
func addReference(ctx context.Context, tx querier, runID string, id int64, e *conversation.Event) error {
	if e.Messages == nil {
		return nil
	}
	if err := addMessages(ctx, tx, e.Messages); err != nil {
		return err
	}
	return put(ctx, tx, addConversation, runID, id, e.Last())
}

// deleteReferences deletes the records of the last messages of the runs that match where, and returns these messages.
func deleteReferences(ctx context.Context, tx querier, where string, args ...any) ([][]byte, error) {
	return collect(ctx, tx, func(scan scanner) (digest []byte, err error) { return digest, scan(&digest) },
		"DELETE FROM conversation WHERE "+where+" RETURNING last", args...)
}

// dropMessages deletes those of the messages, and of the messages before them, to which no run and no other message refers.
func dropMessages(ctx context.Context, tx querier, last [][]byte) error {
	for _, digest := range last {
		for digest != nil {
			err := tx.QueryRowContext(ctx, `DELETE FROM message WHERE digest = ?1 AND NOT EXISTS (SELECT 1 FROM conversation WHERE last = ?1)
				AND NOT EXISTS (SELECT 1 FROM message WHERE previous = ?1) RETURNING previous`, digest).Scan(&digest)
			if errors.Is(err, sql.ErrNoRows) {
				break
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
