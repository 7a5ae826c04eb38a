package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// Read implements [store.Store]. It fetches all events before it yields the first: the caller gets the log as of that time, and a slow
// caller occupies no connection.
func (s *Store) Read(ctx context.Context, runID string, after int64) iter.Seq2[event.Event, error] {
	const op = "postgres: read"
	return func(yield func(event.Event, error) bool) {
		bodies, err := s.fetch(ctx, op, runID, after)
		if err != nil {
			yield(event.Event{}, failure(ctx, op, err))
			return
		}
		for i, body := range bodies {
			var e event.Event
			err := ctx.Err()
			if err == nil {
				err = json.Unmarshal(body, &e)
			}
			if err != nil {
				yield(event.Event{}, failure(ctx, op, err))
				return
			}
			bodies[i] = nil // frees the memory: the caller may need long for the events
			if !yield(e, nil) {
				return
			}
		}
	}
}

// fetch returns all events after the given one, or an error.
func (s *Store) fetch(ctx context.Context, op, runID string, after int64) ([][]byte, error) {
	if after < 0 {
		return nil, notFound(op)
	}
	var last int64
	var bodies [][]byte
	there := false
	err := s.again(ctx, func(ctx context.Context) error {
		bodies, there = nil, false
		rows, err := s.pool.Query(ctx, `SELECT r.last_id, e.id, e.body FROM run r LEFT JOIN event e ON e.run_id = r.run_id AND e.id > $2 WHERE r.run_id = $1 ORDER BY e.id`, runID, after)
		if err != nil {
			return err
		}
		var id *int64
		var body []byte
		_, err = pgx.ForEachRow(rows, []any{&last, &id, &body}, func() error {
			there = true
			if id == nil {
				return nil
			}
			bodies = append(bodies, body)
			body = nil
			if want := after + int64(len(bodies)); *id != want {
				return &lathe.Error{Code: lathe.CodeInternal, Op: op, Err: fmt.Errorf("the log has event %d where %d is next", *id, want)}
			}
			return nil
		})
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case !there:
		if err = s.missing(ctx, runID); errors.Is(err, lathe.ErrNotFound) {
			err = &lathe.Error{Code: lathe.CodeNotFound, Op: op, Err: err}
		}
		return nil, err
	case after > last:
		return nil, notFound(op)
	case after+int64(len(bodies)) != last:
		return nil, &lathe.Error{Code: lathe.CodeInternal, Op: op, Err: fmt.Errorf("the log has %d of its %d events", len(bodies), last-after)}
	}
	return bodies, nil
}
