package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/conversation"
	"github.com/lathe-run/lathe/store"
)

// errStopped means that the caller of Read has stopped.
var errStopped = errors.New("the caller reads no further")

// Read implements [store.Store]. It reads the log as it is when Read begins, and does not block appends.
func (s *Store) Read(ctx context.Context, runID string, after int64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		err := s.snapshot(ctx, func(tx *sql.Tx) error {
			var log conversation.Log
			var err error
			log.Run, err = readRun(ctx, tx, runID)
			log.Run.RunID = runID
			switch {
			case errors.Is(err, sql.ErrNoRows):
				return s.missing(ctx, tx, runID)
			case err != nil:
				return err
			case after < 0 || after > log.Run.LastID:
				return lathe.ErrNotFound
			}
			return each(ctx, tx, func(scan scanner) error {
				e, err := scanEvent(&log, scan, func(last []byte) ([][]byte, error) { return readMessages(ctx, tx, last) })
				if err == nil {
					err = ctx.Err()
				}
				if err == nil && !yield(e, nil) {
					err = errStopped
				}
				return err
			}, s.events()+" WHERE event.run_id = ? AND id > ? ORDER BY id", runID, after)
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(event.Event{}, failure(ctx, "sqlite: read", err))
		}
	}
}

// readRun returns the row of a run.
func readRun(ctx context.Context, db querier, runID string) (store.RunSummary, error) {
	return scanJSON[store.RunSummary](db.QueryRowContext(ctx, "SELECT summary FROM run WHERE run_id = ?", runID).Scan)
}

// Runs implements [store.RunIndex].
func (s *Store) Runs(ctx context.Context, f *store.RunFilter) ([]store.RunSummary, string, error) {
	if f != nil && f.Signaled && s.schema < signalsVersion { // a read-only file of an earlier version without signals
		return nil, "", nil
	}
	return list(ctx, s.read, "SELECT summary FROM run WHERE 1", []string{"started", "run_id"}, f, (*store.RunSummary).Cursor)
}

// The tables of the model calls of a principal: SQLite joins in the order of a CROSS JOIN. The calls of a principal with at most fewRuns
// runs are looked up by run. For other principals, all calls are read in their order and the run of each is looked up.
const (
	fewRuns     = 2_000
	callsByRun  = "run CROSS JOIN model_call c"
	callsByTime = "model_call c CROSS JOIN run"
)

// ModelCalls implements [store.RunIndex].
func (s *Store) ModelCalls(ctx context.Context, f *store.RunFilter) ([]store.CallSummary, string, error) {
	from := "model_call c JOIN run"
	if f != nil && f.Principal != "" && f.RunID == "" && f.SessionID == "" {
		var n int
		if err := s.read.QueryRowContext(ctx, "SELECT count(*) FROM (SELECT 1 FROM run WHERE principal = ? LIMIT ?)", f.Principal, fewRuns+1).Scan(&n); err != nil {
			return nil, "", failure(ctx, "sqlite: list", err)
		}
		from = callsByRun
		if n > fewRuns {
			from = callsByTime
		}
	}
	return list(ctx, s.read, "SELECT c.summary FROM "+from+" USING (run_id) WHERE 1", []string{"c.time", "run_id", "c.event_id"}, f, (*store.CallSummary).Cursor)
}

// hasUnreadSignals selects parked runs with a relevant signal: one for a call that they wait for, or for any call if the row names none, or
// a cancel request. It looks up the signals of each such run.
const hasUnreadSignals = ` AND status = 'parked' AND EXISTS (SELECT 1 FROM fact WHERE fact.run_id = run.run_id AND (
	kind = '` + store.SignalCancel + `' OR json_type(CAST(run.summary AS TEXT), '$.pending') IS NULL
	OR key IN (SELECT value FROM json_each(CAST(run.summary AS TEXT), '$.pending'))))`

// list returns one page of the rows of query that match the filter, and the cursor of the next page. order are the columns of the order,
// newest first: the time, the run and, for model calls, the event.
func list[T any](ctx context.Context, db *sql.DB, query string, order []string, f *store.RunFilter, place func(*T) store.Cursor) ([]T, string, error) {
	const op = "sqlite: list"
	var q strings.Builder
	q.WriteString(query)
	var args []any
	if f != nil {
		for _, c := range []struct{ column, value string }{{"run_id", f.RunID}, {"session_id", f.SessionID}, {"principal", f.Principal}, {"status", f.Status}} {
			if c.value != "" {
				q.WriteString(" AND " + c.column + " = ?")
				args = append(args, c.value)
			}
		}
		for _, bound := range []struct {
			operator string
			at       time.Time
		}{{" >= ?", f.Since}, {" < ?", f.Until}} {
			if !bound.at.IsZero() {
				q.WriteString(" AND " + order[0] + bound.operator)
				args = append(args, bound.at.UnixNano())
			}
		}
		if f.Signaled {
			q.WriteString(hasUnreadSignals)
		}
		if f.After != "" {
			c, err := store.ParseCursor(f.After)
			if err != nil {
				return nil, "", err
			}
			q.WriteString(" AND (" + strings.Join(order, ", ") + ") < (?" + strings.Repeat(", ?", len(order)-1) + ")")
			args = append(args, []any{c.Nanos, c.RunID, c.EventID}[:len(order)]...)
		}
	}
	n := store.Page(f)
	q.WriteString(" ORDER BY " + strings.Join(order, " DESC, ") + " DESC LIMIT ?")
	out, err := collect(ctx, db, scanJSON[T], q.String(), append(args, n+1)...)
	if err != nil {
		return nil, "", failure(ctx, op, err)
	}
	if len(out) > n {
		return out[:n], place(&out[n-1]).String(), nil
	}
	return out, "", nil
}
