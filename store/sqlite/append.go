package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/conversation"
	"github.com/lathe-run/lathe/store"
)

// Append implements [store.Store]. If ctx is done while the write is in progress, the events may or may not be stored.
func (s *Store) Append(ctx context.Context, runID string, last int64, events ...event.Event) (int64, error) {
	const op = "sqlite: append"
	if err := store.CheckAppend(runID, last, events); err != nil {
		return 0, lathe.CodeInvalidRequest.Wrap(op, err)
	}
	a := &appendRows{run: runID, last: last}
	if len(events) > 0 {
		sum, err := s.summary(ctx, runID, last)
		if err != nil {
			return 0, failure(ctx, op, err)
		}
		if err := a.encode(sum, events); err != nil {
			return 0, lathe.CodeInvalidRequest.Wrap(op, err)
		}
	}
	end, err := s.submit(ctx, a.write)
	if err == nil && a.sum != nil {
		s.runs.put(runID, a.sum)
	}
	return end, failure(ctx, op, err)
}

// appendRows are the rows that an append writes. The caller of Append makes them; the writer executes write.
type appendRows struct {
	run    string
	last   int64
	sum    *store.Summary // of the run after the append; nil: the append has no events
	status string         // of the run before it
	events []conversation.Event
	row    []byte // JSON of the row of the run
	calls  []call // rows of the model calls that are new or have changed
}

type call struct {
	id, time int64
	summary  []byte
}

// encode sets the rows of an append to the run with the summary sum, which it changes.
func (a *appendRows) encode(sum *store.Summary, events []event.Event) (err error) {
	if a.events, err = conversation.EncodeAll(&sum.Run, events); err != nil {
		return err
	}
	before := max(0, len(sum.Calls)-1) // the tool latency of the last call may have changed
	a.sum, a.status = sum, sum.Run.Status
	for i := range events {
		e := events[i]
		e.Time = e.Time.Round(0).UTC() // the form in which it is read
		sum.Apply(&e)
	}
	changed := sum.Calls[before:]
	for i := range changed {
		c := &changed[i]
		b, err := json.Marshal(c)
		if err != nil {
			return err
		}
		a.calls = append(a.calls, call{c.EventID, c.Time.UnixNano(), b})
	}
	a.row, err = json.Marshal(&sum.Run)
	return err
}

// write writes the rows, unless the log does not end at last. It returns the end of the log.
func (a *appendRows) write(ctx context.Context, tx querier) (int64, error) {
	if a.sum == nil {
		return a.end(ctx, tx)
	}
	moved, err := a.move(ctx, tx)
	if err != nil {
		return 0, err
	}
	if !moved {
		end, err := a.end(ctx, tx)
		return end, cmp.Or(err, lathe.ErrConflict)
	}
	for i := range a.events {
		id, e := a.last+int64(i)+1, &a.events[i]
		if err := put(ctx, tx, addEvent, a.run, id, e.Body); err != nil {
			return 0, err
		}
		if err := addReference(ctx, tx, a.run, id, e); err != nil {
			return 0, err
		}
	}
	for _, c := range a.calls {
		if err := put(ctx, tx, addCall, a.run, c.id, c.time, c.summary); err != nil {
			return 0, err
		}
	}
	return a.sum.Run.LastID, nil
}

// move inserts or updates the row of the run if the log ends at last, and reports whether it does.
func (a *appendRows) move(ctx context.Context, tx querier) (moved bool, err error) {
	r := &a.sum.Run
	var done sql.Result
	switch {
	case a.last == 0:
		done, err = tx.ExecContext(ctx, addRun, a.run, r.LastID, r.Started.UnixNano(), r.Updated.UnixNano(), r.SessionID, r.Principal, r.Status, a.row)
	case r.Status == a.status:
		done, err = tx.ExecContext(ctx, moveRun, r.LastID, r.Updated.UnixNano(), a.row, a.run, a.last)
	default:
		done, err = tx.ExecContext(ctx, moveRunStatus, r.LastID, r.Updated.UnixNano(), a.row, a.run, a.last, r.Status)
	}
	if err != nil {
		return false, err
	}
	n, err := done.RowsAffected()
	return n > 0, err
}

// end returns the last ID of the log, and [lathe.ErrConflict] if it is not last.
func (a *appendRows) end(ctx context.Context, tx querier) (end int64, err error) {
	err = tx.QueryRowContext(ctx, lastEvent, a.run).Scan(&end)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	if err == nil && end != a.last {
		err = lathe.ErrConflict
	}
	return end, err
}
