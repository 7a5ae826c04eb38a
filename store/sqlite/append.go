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
	bodies, briefs := make([][]byte, len(events)), make([]lathe.Event, len(events))
	for i := range events {
		var err error
		if bodies[i], err = events[i].MarshalJSON(); err != nil {
			return 0, &lathe.Error{Code: lathe.CodeInvalidRequest, Op: op, Err: err}
		}
		briefs[i] = store.Brief(&events[i])
	}
	end, err := s.submit(ctx, func(ctx context.Context, tx *sql.Tx) (int64, error) {
		has, err := s.lastOf(ctx, tx, runID, last)
		if err != nil {
			return 0, err
		}
		if has != last {
			return has, &lathe.Error{Code: lathe.CodeConflict, Op: op, Err: lathe.ErrConflict}
		}
		if len(events) == 0 {
			return has, nil
		}
		for i, body := range bodies {
			if err := s.does.exec(ctx, tx, addEvent, runID, last+int64(i)+1, body); err != nil {
				return 0, err
			}
		}
		return last + int64(len(events)), s.index(ctx, tx, runID, last, briefs)
	})
	if err != nil {
		return end, failure(ctx, op, err)
	}
	return end, nil
}

// lastOf returns the last id of the run's log. It need not look where the writer knows the run up to last.
func (s *Store) lastOf(ctx context.Context, tx *sql.Tx, runID string, last int64) (has int64, err error) {
	if s.runs.knows(runID, last) {
		return last, nil
	}
	err = s.does.query(ctx, tx, lastEvent, runID).Scan(&has)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return has, err
}

// index brings the rows of the lists up to the events that were added after last.
func (s *Store) index(ctx context.Context, tx *sql.Tx, runID string, last int64, events []lathe.Event) error {
	sum, err := s.runs.take(ctx, tx, runID, last)
	if err != nil {
		return err
	}
	before, status := len(sum.Calls), sum.Run.Status
	if before > 0 {
		before-- // the time of its tools may have grown
	}
	for i := range events {
		sum.Apply(&events[i])
	}
	row, err := json.Marshal(&sum.Run)
	if err != nil {
		return err
	}
	r := &sum.Run
	switch {
	case last == 0:
		err = s.does.exec(ctx, tx, addRun, runID, r.LastID, r.Started.UnixNano(), r.Updated.UnixNano(), r.SessionID, r.Principal, r.Status, row)
	case r.Status == status: // its place in the index of those is the same, and is not written
		err = s.does.exec(ctx, tx, moveRun, r.LastID, r.Updated.UnixNano(), row, runID)
	default:
		err = s.does.exec(ctx, tx, turnRun, r.LastID, r.Updated.UnixNano(), row, r.Status, runID)
	}
	if err != nil {
		return err
	}
	for i := before; i < len(sum.Calls); i++ {
		c := &sum.Calls[i]
		row, err := json.Marshal(c)
		if err != nil {
			return err
		}
		if err := s.does.exec(ctx, tx, addCall, runID, c.EventID, c.Time.UnixNano(), row); err != nil {
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
		if err := s.files.check(); err != nil {
			return err
		}
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
			if len(batch) == 1 { // its failure can undo everything
				if answers[i].end, answers[i].err = r.do(ctx, tx); answers[i].err != nil {
					return nil
				}
				break
			}
			if answers[i], err = s.apart(ctx, tx, r.do); err != nil {
				return err
			}
		}
		if err := tx.Commit(); err != nil {
			return err
		}
		return s.files.check() // a file that went meanwhile does not have it
	}()
	if err != nil {
		s.runs.clear() // they may say more than the file does
		err = fmt.Errorf("the file could not be written: %w", cause(err))
	}
	failed := err
	for i := range batch {
		if answers[i].err == nil {
			answers[i].err = err
		} else if answers[i].err = cause(answers[i].err); ofDisk(answers[i].err) {
			failed = answers[i].err
		}
	}
	s.files.wrote(failed) // before a caller can ask
	for i, r := range batch {
		r.done <- answers[i]
	}
}

// apart carries out do so that its failure undoes nothing but its own. fatal is set when the whole
// transaction is lost.
func (s *Store) apart(ctx context.Context, tx *sql.Tx, do func(context.Context, *sql.Tx) (int64, error)) (a answer, fatal error) {
	if err := s.does.exec(ctx, tx, setApart); err != nil {
		return answer{err: err}, err
	}
	if a.end, a.err = do(ctx, tx); a.err != nil {
		if _, err := tx.ExecContext(ctx, "ROLLBACK TO one"); err != nil {
			return a, err
		}
	}
	return a, s.does.exec(ctx, tx, joinAgain)
}
