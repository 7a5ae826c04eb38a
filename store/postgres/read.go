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
		log, bodies, err := s.fetch(ctx, op, runID, after)
		if errors.Is(err, conversation.ErrMissing) { // the run may have been deleted after its events were read
			log, bodies, err = s.fetch(ctx, op, runID, after)
		}
		if err != nil {
			yield(event.Event{}, failure(ctx, op, err))
			return
		}
		for i := range bodies {
			b := &bodies[i]
			e, err := log.Decode(after+int64(i)+1, b.body, b.digest, b.messages)
			if ctx.Err() != nil { // decoding from memory does not notice it
				err = ctx.Err()
			}
			if err != nil {
				yield(event.Event{}, failure(ctx, op, err))
				return
			}
			*b = storedEvent{} // frees the memory: the caller may need long for the events
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

// fetch returns all events after the given one and the log that decodes them, or an error.
func (s *Store) fetch(ctx context.Context, op, runID string, after int64) (log conversation.Log, bodies []storedEvent, err error) {
	if after < 0 {
		return log, nil, notFound(op)
	}
	var lastID int64
	var firstSummary []byte
	runExists := false
	// One row for each event; one row without an event if the run has none after it. The first row alone has the summary of the run.
	err = s.retry(ctx, func(ctx context.Context) error {
		bodies, runExists = nil, false
		rows, err := s.pool.Query(ctx, `SELECT r.last_id, CASE WHEN e.id = $2 + 1 THEN r.summary END, e.id, e.body, c.last FROM run r LEFT JOIN event e ON e.run_id = r.run_id AND e.id > $2
			LEFT JOIN conversation c ON c.run_id = e.run_id AND c.event_id = e.id WHERE r.run_id = $1 ORDER BY e.id`, runID, after)
		if err != nil {
			return err
		}
		var id *int64
		var summary, body, digest []byte
		_, err = pgx.ForEachRow(rows, []any{&lastID, &summary, &id, &body, &digest}, func() error {
			runExists = true
			if summary != nil {
				firstSummary = summary
			}
			if id == nil {
				return nil
			}
			bodies = append(bodies, storedEvent{body: body, digest: digest})
			body, digest = nil, nil
			if want := after + int64(len(bodies)); *id != want {
				return lathe.CodeInternal.Errorf(op, "the log has event %d where %d is next", *id, want)
			}
			return nil
		})
		for i := range bodies {
			if b := &bodies[i]; err == nil && b.digest != nil {
				b.messages, err = s.readMessages(ctx, b.digest)
			}
		}
		return err
	})
	switch {
	case err != nil:
		return log, nil, err
	case !runExists:
		if err = s.missing(ctx, runID); errors.Is(err, lathe.ErrNotFound) {
			err = lathe.CodeNotFound.Wrap(op, err)
		}
		return log, nil, err
	case after > lastID:
		return log, nil, notFound(op)
	case after+int64(len(bodies)) != lastID:
		return log, nil, lathe.CodeInternal.Errorf(op, "the log has %d of its %d events", len(bodies), lastID-after)
	}
	if firstSummary != nil {
		err = json.Unmarshal(firstSummary, &log.Run)
	}
	log.Run.RunID = runID
	return log, bodies, err
}
