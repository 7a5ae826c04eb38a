package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/conversation"
)

// Read implements [store.Store]. It fetches all events before it yields the first: the caller gets the log as of that time, and a slow
// caller occupies no connection.
func (s *Store) Read(ctx context.Context, runID string, after int64) iter.Seq2[event.Event, error] {
	const op = "postgres: read"
	return func(yield func(event.Event, error) bool) {
		log, events, err := s.fetch(ctx, op, runID, after)
		if errors.Is(err, conversation.ErrMissing) { // the run may have been deleted after its events were read
			log, events, err = s.fetch(ctx, op, runID, after)
		}
		if err != nil {
			yield(event.Event{}, failure(ctx, op, err))
			return
		}
		for i := range events {
			stored := &events[i]
			e, err := log.Decode(after+int64(i)+1, stored.body, stored.digest, stored.messages)
			if ctx.Err() != nil { // decoding from memory does not notice it
				err = ctx.Err()
			}
			if err != nil {
				yield(event.Event{}, failure(ctx, op, err))
				return
			}
			*stored = storedEvent{} // frees the memory: the caller may need long for the events
			if !yield(e, nil) {
				return
			}
		}
	}
}

// A storedEvent is an event as it is stored, with its messages if its body does not contain them.
type storedEvent struct {
	body, digest []byte // digest is that of the last message
	messages     [][]byte
}

// A storedLog is the end of a log, as it is stored.
type storedLog struct {
	lastID  int64  // 0: the run does not exist
	summary []byte // of the run; nil: there are no events
	events  []storedEvent
}

// fetch returns all events after the given one and the log that decodes them, or an error.
func (s *Store) fetch(ctx context.Context, op, runID string, after int64) (log conversation.Log, events []storedEvent, err error) {
	if after < 0 {
		return log, nil, notFound(op)
	}
	var stored storedLog
	err = s.retry(ctx, func(ctx context.Context) (err error) {
		stored, err = s.query(ctx, op, runID, after)
		return err
	})
	events = stored.events
	switch {
	case err != nil:
		return log, nil, err
	case stored.lastID == 0:
		if err = s.missing(ctx, runID); errors.Is(err, lathe.ErrNotFound) {
			err = lathe.CodeNotFound.Wrap(op, err)
		}
		return log, nil, err
	case after > stored.lastID:
		return log, nil, notFound(op)
	case after+int64(len(events)) != stored.lastID:
		return log, nil, lathe.CodeInternal.Errorf(op, "the log has %d of its %d events", len(events), stored.lastID-after)
	}
	if stored.summary != nil {
		err = json.Unmarshal(stored.summary, &log.Run)
	}
	log.Run.RunID = runID
	return log, events, err
}

// query makes one attempt to read the events after the given one.
func (d *database) query(ctx context.Context, op, runID string, after int64) (log storedLog, err error) {
	// One row for each event; one row without an event if the run has none after it. The row of the first event alone has the summary.
	rows, err := d.pool.Query(ctx, `SELECT r.last_id, CASE WHEN e.id = $2 + 1 THEN r.summary END, e.id, e.body, c.last FROM run r LEFT JOIN event e ON e.run_id = r.run_id AND e.id > $2
		LEFT JOIN conversation c ON c.run_id = e.run_id AND c.event_id = e.id WHERE r.run_id = $1 ORDER BY e.id`, runID, after)
	if err != nil {
		return log, err
	}
	var id *int64
	var summary, body, digest []byte
	_, err = pgx.ForEachRow(rows, []any{&log.lastID, &summary, &id, &body, &digest}, func() error {
		if id == nil {
			return nil
		}
		if summary != nil {
			log.summary = summary
		}
		log.events = append(log.events, storedEvent{body: body, digest: digest})
		body, digest = nil, nil // the event has them now: the next row is read into new memory
		if want := after + int64(len(log.events)); *id != want {
			return lathe.CodeInternal.Errorf(op, "the log has event %d where %d is next", *id, want)
		}
		return nil
	})
	for i := range log.events {
		if e := &log.events[i]; err == nil && e.digest != nil {
			e.messages, err = d.readMessages(ctx, e.digest)
		}
	}
	return log, err
}
