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
			e, err := log.Decode(after+int64(i)+1, b.body, b.last, b.messages)
			if ctx.Err() != nil {
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
	body, last []byte
	messages   [][]byte
}

// fetch returns all events after the given one and the log that decodes them, or an error.
func (s *Store) fetch(ctx context.Context, op, runID string, after int64) (log conversation.Log, _ []storedEvent, _ error) {
	if after < 0 {
		return log, nil, notFound(op)
	}
	var last int64
	var row []byte
	var bodies []storedEvent
	there := false
	err := s.again(ctx, func(ctx context.Context) error {
		bodies, there = nil, false
		rows, err := s.pool.Query(ctx, `SELECT r.last_id, CASE WHEN e.id = $2 + 1 THEN r.summary END, e.id, e.body, c.last FROM run r LEFT JOIN event e ON e.run_id = r.run_id AND e.id > $2
			LEFT JOIN conversation c ON c.run_id = e.run_id AND c.event_id = e.id WHERE r.run_id = $1 ORDER BY e.id`, runID, after)
		if err != nil {
			return err
		}
		var id *int64
		var summary, body, messages []byte
		_, err = pgx.ForEachRow(rows, []any{&last, &summary, &id, &body, &messages}, func() error {
			there = true
			if summary != nil {
				row = summary
			}
			if id == nil {
				return nil
			}
			bodies = append(bodies, storedEvent{body: body, last: messages})
			body, messages = nil, nil
			if want := after + int64(len(bodies)); *id != want {
				return lathe.CodeInternal.Errorf(op, "the log has event %d where %d is next", *id, want)
			}
			return nil
		})
		for i := range bodies {
			if b := &bodies[i]; err == nil && b.last != nil {
				b.messages, err = s.readMessages(ctx, b.last)
			}
		}
		return err
	})
	switch {
	case err != nil:
		return log, nil, err
	case !there:
		if err = s.missing(ctx, runID); errors.Is(err, lathe.ErrNotFound) {
			err = lathe.CodeNotFound.Wrap(op, err)
		}
		return log, nil, err
	case after > last:
		return log, nil, notFound(op)
	case after+int64(len(bodies)) != last:
		return log, nil, lathe.CodeInternal.Errorf(op, "the log has %d of its %d events", len(bodies), last-after)
	}
	if row != nil {
		err = json.Unmarshal(row, &log.Run)
	}
	log.Run.RunID = runID
	return log, bodies, err
}
