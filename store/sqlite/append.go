package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/store"
)

// Append implements [store.Store]. If ctx ends while the write is in progress, the events may be stored
// or not.
func (s *Store) Append(ctx context.Context, runID string, last int64, events ...event.Event) (int64, error) {
	const op = "sqlite: append"
	if err := store.CheckAppend(runID, last, events); err != nil {
		return 0, &lathe.Error{Code: lathe.CodeInvalidRequest, Op: op, Err: err}
	}
	bodies, copies := make([][]byte, len(events)), make([]event.Event, len(events))
	for i := range events {
		var err error
		if bodies[i], err = events[i].MarshalJSON(); err != nil {
			return 0, &lathe.Error{Code: lathe.CodeInvalidRequest, Op: op, Err: err}
		}
		copies[i] = store.Copy(events[i])
		copies[i].Time = events[i].Time.Round(0).UTC() // as it is read again
	}
	end, err := s.submit(ctx, func(ctx context.Context, tx *sql.Tx) (int64, error) {
		has, err := s.lastOf(ctx, tx, runID, last)
		if err != nil {
			return 0, err
		}
		if has != last {
			return has, lathe.ErrConflict
		}
		if len(events) == 0 {
			return has, nil
		}
		for i, body := range bodies {
			if err := s.does.exec(ctx, tx, addEvent, runID, last+int64(i)+1, body); err != nil {
				return 0, err
			}
		}
		return last + int64(len(events)), s.index(ctx, tx, runID, last, copies)
	})
	return end, failure(ctx, op, err)
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
func (s *Store) index(ctx context.Context, tx *sql.Tx, runID string, last int64, events []event.Event) error {
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
