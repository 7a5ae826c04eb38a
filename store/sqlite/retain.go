package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/store"
)

var _ store.Retainer = (*Store)(nil)

const (
	// maxGone is the maximum number of records of removed runs.
	maxGone = 100_000
	// retireBatch is the maximum number of runs that are removed at once, and so limits the time that appends wait.
	retireBatch = 100
)

// This file removes runs: those that a caller names, and the oldest ended ones if retention limits the age or the size. The table gone has a
// record of each run that retention has removed, for [store.GoneError].

// The columns by whose value runs are deleted.
const (
	runColumn       = "run_id"
	sessionColumn   = "session_id"
	principalColumn = "principal"
)

// Delete implements [store.Store]. After it returns, no file of the store contains the run.
func (s *Store) Delete(ctx context.Context, runID string) error {
	return s.remove(ctx, runColumn, runID)
}

// DeleteSession implements [store.Retainer].
func (s *Store) DeleteSession(ctx context.Context, sessionID string) error {
	return s.remove(ctx, sessionColumn, sessionID)
}

// DeletePrincipal implements [store.Retainer].
func (s *Store) DeletePrincipal(ctx context.Context, principal string) error {
	return s.remove(ctx, principalColumn, principal)
}

// remove deletes the runs that have the value in the column, and their records in the tables gone and request. It deletes nothing for "".
func (s *Store) remove(ctx context.Context, column, value string) error {
	where := column + " = ? AND " + column + " <> ''"
	_, err := s.submit(ctx, func(ctx context.Context, tx querier) (int64, error) {
		if column != sessionColumn { // the table gone has no sessions
			if err := put(ctx, tx, "DELETE FROM request WHERE run_id IN (SELECT run_id FROM gone WHERE "+where+")", value); err != nil {
				return 0, err
			}
			if err := put(ctx, tx, "DELETE FROM gone WHERE "+where, value); err != nil {
				return 0, err
			}
		}
		if err := put(ctx, tx, "DELETE FROM request WHERE run_id IN (SELECT run_id FROM run WHERE "+where+")", value); err != nil {
			return 0, err
		}
		return s.drop(ctx, tx, where, value)
	})
	if err == nil {
		err = s.checkpoint(ctx)
	}
	return failure(ctx, "sqlite: delete", err)
}

// drop deletes the rows of the runs that meet the SQL condition where, in which args are the values of the placeholders. It returns the number
// of runs.
func (s *Store) drop(ctx context.Context, tx querier, where string, args ...any) (int64, error) {
	ofRuns := "run_id IN (SELECT run_id FROM run WHERE " + where + ")"
	lastMessages, err := deleteReferences(ctx, tx, ofRuns, args...)
	if err != nil {
		return 0, err
	}
	for _, table := range []string{"event", "model_call", "fact", "call"} {
		if err := put(ctx, tx, "DELETE FROM "+table+" WHERE "+ofRuns, args...); err != nil {
			return 0, err
		}
	}
	runs, err := tx.ExecContext(ctx, "DELETE FROM run WHERE "+where, args...)
	if err != nil {
		return 0, err
	}
	s.runs.clear()
	if err := dropMessages(ctx, tx, lastMessages); err != nil {
		return 0, err
	}
	return runs.RowsAffected()
}

// checkpoint moves the write-ahead log into the file, because the log contains deleted data until then.
func (s *Store) checkpoint(ctx context.Context) error {
	return put(ctx, s.write, "PRAGMA wal_checkpoint(TRUNCATE)")
}

// DeleteBefore implements [store.Retainer].
func (s *Store) DeleteBefore(ctx context.Context, t time.Time) error {
	return s.retire(ctx, func(context.Context) (bool, error) { return true, nil }, t.UnixNano())
}

// Trim implements [store.Retainer]. maxBytes limits the size of the file without its free pages, which SQLite reuses. The file itself does
// not become smaller: see [Store.Shrink].
func (s *Store) Trim(ctx context.Context, maxBytes int64) error {
	over := func(ctx context.Context) (bool, error) {
		var used int64
		err := s.read.QueryRowContext(ctx, "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size").Scan(&used)
		return used > maxBytes, err
	}
	return s.retire(ctx, over, math.MaxInt64)
}

// retire removes the ended runs whose last event is older than before, a time in Unix nanoseconds. It removes the oldest first, while more
// returns true.
func (s *Store) retire(ctx context.Context, more func(context.Context) (bool, error), before int64) error {
	removed := false
	again, err := more(ctx)
	for again && err == nil {
		var n int64
		if n, err = s.retireOldest(ctx, before); err != nil || n == 0 {
			break
		}
		removed = true
		again, err = more(ctx)
	}
	if removed {
		err = errors.Join(err, s.checkpoint(ctx))
	}
	return failure(ctx, "sqlite: retain", err)
}

// retireOldest removes and records the retireBatch oldest of the runs that retire removes. It returns their number.
func (s *Store) retireOldest(ctx context.Context, before int64) (int64, error) {
	const where = "run_id IN (SELECT run_id FROM run WHERE updated < ? AND status NOT IN ('running', 'parked') ORDER BY updated LIMIT ?)"
	return s.submit(ctx, func(ctx context.Context, tx querier) (int64, error) {
		if err := put(ctx, tx, "INSERT OR REPLACE INTO gone (run_id, principal, time) SELECT run_id, principal, ? FROM run WHERE "+where,
			time.Now().UnixNano(), before, retireBatch); err != nil {
			return 0, err
		}
		if err := put(ctx, tx, "DELETE FROM gone WHERE time < (SELECT time FROM gone ORDER BY time DESC LIMIT 1 OFFSET ?)", maxGone); err != nil {
			return 0, err
		}
		return s.drop(ctx, tx, where, before, retireBatch)
	})
}

// missing returns a [store.GoneError] if retention has removed the run, and [lathe.ErrNotFound] if not.
func (s *Store) missing(ctx context.Context, tx *sql.Tx, runID string) error {
	if s.schema < goneVersion { // a read-only file of an earlier version
		return lathe.ErrNotFound
	}
	e := &store.GoneError{RunID: runID}
	var at int64
	switch err := tx.QueryRowContext(ctx, "SELECT principal, time FROM gone WHERE run_id = ?", runID).Scan(&e.Principal, &at); {
	case errors.Is(err, sql.ErrNoRows):
		return lathe.ErrNotFound
	case err != nil:
		return err
	}
	e.Time = time.Unix(0, at).UTC()
	return e
}
