package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/conversation"
	"github.com/lathe-run/lathe/store"
)

// Append implements [store.Store]. If ctx is done while the write is in progress, the events may be stored or not.
func (s *Store) Append(ctx context.Context, runID string, last int64, events ...event.Event) (int64, error) {
	const op = "sqlite: append"
	if err := store.CheckAppend(runID, last, events); err != nil {
		return 0, lathe.CodeInvalidRequest.Wrap(op, err)
	}
	run, err := s.row(ctx, runID, last)
	if err != nil {
		return 0, failure(ctx, op, err)
	}
	encoded, err := conversation.EncodeAll(&run, events)
	if err != nil {
		return 0, lathe.CodeInvalidRequest.Wrap(op, err)
	}
	copies := make([]event.Event, len(events))
	for i := range events {
		copies[i] = store.Copy(events[i])
		copies[i].Time = events[i].Time.Round(0).UTC() // the form in which it is read
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
		for i := range encoded {
			e := &encoded[i]
			if err := s.does.exec(ctx, tx, addEvent, runID, last+int64(i)+1, e.Body); err != nil {
				return 0, err
			}
			if err := s.refer(ctx, tx, runID, last+int64(i)+1, e); err != nil {
				return 0, err
			}
		}
		return last + int64(len(events)), s.index(ctx, tx, runID, last, copies)
	})
	return end, failure(ctx, op, err)
}

// row returns the row of the run before an append after last, or the zero value if the run does not exist.
func (s *Store) row(ctx context.Context, runID string, last int64) (store.RunSummary, error) {
	if last == 0 {
		return store.RunSummary{}, nil
	}
	if row, ok := s.runs.row(runID); ok {
		return row, nil
	}
	row, err := readRun(ctx, s.read, runID)
	if errors.Is(err, sql.ErrNoRows) { // the append will not find the run
		err = nil
	}
	return row, err
}

// lastOf returns the last ID of the run's log. It does not read the file if the summary up to last is in memory.
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

// index updates the rows of the run and its model calls for the events after last.
func (s *Store) index(ctx context.Context, tx *sql.Tx, runID string, last int64, events []event.Event) error {
	sum, err := s.runs.take(ctx, tx, runID, last)
	if err != nil {
		return err
	}
	before, status := len(sum.Calls), sum.Run.Status
	if before > 0 {
		before-- // the tool latency of the last call may have changed
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
	case r.Status == status: // the index on the status need not be written
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
