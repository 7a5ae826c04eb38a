package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/store"
)

// maxBatch bounds the requests of one commit.
const maxBatch = 128

// A request waits to be committed.
type request struct {
	ctx  context.Context
	do   func(ctx context.Context, tx *sql.Tx) (int64, error)
	done chan answer // has room for it
}

type answer struct {
	end int64
	err error
}

// Append implements [lathe.Store]. When ctx ends while the events are on their way, they may be kept
// or not.
func (s *Store) Append(ctx context.Context, runID string, last int64, events ...lathe.Event) (int64, error) {
	const op = "sqlite: append"
	if err := store.Fits(runID, last, events); err != nil {
		return 0, &lathe.Error{Code: lathe.CodeInvalidRequest, Op: op, Err: err}
	}
	bodies := make([][]byte, len(events))
	for i := range events {
		var err error
		if bodies[i], err = events[i].MarshalJSON(); err != nil {
			return 0, &lathe.Error{Code: lathe.CodeInvalidRequest, Op: op, Err: err}
		}
	}
	end, err := s.submit(ctx, func(ctx context.Context, tx *sql.Tx) (int64, error) {
		var has int64
		if err := tx.QueryRowContext(ctx, "SELECT last_id FROM run WHERE run_id = ?", runID).Scan(&has); err != nil && !errors.Is(err, sql.ErrNoRows) {
			return 0, err
		}
		if has != last {
			return has, &lathe.Error{Code: lathe.CodeConflict, Op: op, Err: lathe.ErrConflict}
		}
		if len(events) == 0 {
			return has, nil
		}
		for i, body := range bodies {
			if _, err := tx.ExecContext(ctx, "INSERT INTO event (run_id, id, body) VALUES (?, ?, ?)", runID, last+int64(i)+1, body); err != nil {
				return 0, err
			}
		}
		return last + int64(len(events)), s.index(ctx, tx, runID, last, bodies)
	})
	if err != nil {
		return end, failure(ctx, op, err)
	}
	return end, nil
}

// index brings the rows of the lists up to the events that were added after last.
func (s *Store) index(ctx context.Context, tx *sql.Tx, runID string, last int64, bodies [][]byte) error {
	sum, err := s.runs.take(ctx, tx, runID, last)
	if err != nil {
		return err
	}
	before := len(sum.Calls)
	if before > 0 {
		before-- // the time of its tools may have grown
	}
	for _, body := range bodies {
		var e lathe.Event
		if err := json.Unmarshal(body, &e); err != nil {
			return err
		}
		sum.Apply(&e)
	}
	row, err := json.Marshal(&sum.Run)
	if err != nil {
		return err
	}
	r := &sum.Run
	if _, err := tx.ExecContext(ctx, `INSERT INTO run (run_id, last_id, started, updated, session_id, principal, status, summary) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (run_id) DO UPDATE SET last_id = excluded.last_id, updated = excluded.updated, status = excluded.status, summary = excluded.summary`,
		runID, r.LastID, r.Started.UnixNano(), r.Updated.UnixNano(), r.SessionID, r.Principal, r.Status, row); err != nil {
		return err
	}
	for i := before; i < len(sum.Calls); i++ {
		c := &sum.Calls[i]
		row, err := json.Marshal(c)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO model_call (run_id, event_id, time, summary) VALUES (?, ?, ?, ?) ON CONFLICT (run_id, event_id) DO UPDATE SET summary = excluded.summary",
			runID, c.EventID, c.Time.UnixNano(), row); err != nil {
			return err
		}
	}
	s.runs.put(runID, sum)
	return nil
}

// submit hands do to the writer and waits for the commit. The number that do returns is returned with
// its error.
func (s *Store) submit(ctx context.Context, do func(context.Context, *sql.Tx) (int64, error)) (int64, error) {
	if s.write == nil {
		return 0, &lathe.Error{Code: lathe.CodeInvalidRequest, Op: "sqlite: write", Err: errors.New("the file is open for reading only")}
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	r := &request{ctx: ctx, do: do, done: make(chan answer, 1)}
	select {
	case s.requests <- r:
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-s.stop:
		return 0, errors.New("the store is closed")
	}
	select {
	case a := <-r.done:
		return a.end, a.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// serve commits requests: all that have come while the one before was written go together.
func (s *Store) serve() {
	batch := make([]*request, 0, maxBatch)
	for {
		batch = batch[:0]
		select {
		case r := <-s.requests:
			batch = append(batch, r)
		case <-s.stop:
			return
		}
	gather:
		for len(batch) < maxBatch {
			select {
			case r := <-s.requests:
				batch = append(batch, r)
			default:
				break gather
			}
		}
		s.commit(batch)
	}
}

// commit carries out the requests of a batch, each for itself, and answers them when what they did
// is on the disk.
func (s *Store) commit(batch []*request) {
	answers := make([]answer, len(batch))
	ctx := context.Background() // a request that has begun is ended: the others of the batch stand on it
	err := func() error {
		tx, err := s.write.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // after a commit it does nothing
		for i, r := range batch {
			if err := r.ctx.Err(); err != nil {
				answers[i].err = err
				continue
			}
			if answers[i], err = apart(ctx, tx, r.do); err != nil {
				return err
			}
		}
		return tx.Commit()
	}()
	if err != nil {
		s.runs.clear() // they may say more than the file does
		err = fmt.Errorf("the file could not be written: %w", err)
	}
	for i, r := range batch {
		if answers[i].err == nil {
			answers[i].err = err
		}
		r.done <- answers[i]
	}
}

// apart carries out do so that its failure undoes nothing but its own. fatal is set when the whole
// transaction is lost.
func apart(ctx context.Context, tx *sql.Tx, do func(context.Context, *sql.Tx) (int64, error)) (a answer, fatal error) {
	if _, err := tx.ExecContext(ctx, "SAVEPOINT one"); err != nil {
		return answer{err: err}, err
	}
	if a.end, a.err = do(ctx, tx); a.err != nil {
		if _, err := tx.ExecContext(ctx, "ROLLBACK TO one"); err != nil {
			return a, err
		}
	}
	_, fatal = tx.ExecContext(ctx, "RELEASE one")
	return a, fatal
}
