package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"strings"
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

// Delete implements [store.Store]. After it returns, no file of the store contains the run.
func (s *Store) Delete(ctx context.Context, runID string) error {
	return s.remove(ctx, "run_id = ?", runID)
}

// DeleteSession implements [store.Retainer].
func (s *Store) DeleteSession(ctx context.Context, sessionID string) error {
	return s.remove(ctx, "session_id = ? AND session_id <> ''", sessionID)
}

// DeletePrincipal implements [store.Retainer].
func (s *Store) DeletePrincipal(ctx context.Context, principal string) error {
	return s.remove(ctx, "principal = ? AND principal <> ''", principal)
}

// remove deletes the runs that match which, and the records of earlier removals.
func (s *Store) remove(ctx context.Context, which string, arg any) error {
	_, err := s.submit(ctx, func(ctx context.Context, tx querier) (int64, error) {
		if !strings.HasPrefix(which, "session") { // the records have no session
			if err := put(ctx, tx, "DELETE FROM request WHERE run_id IN (SELECT run_id FROM gone WHERE "+which+")", arg); err != nil {
				return 0, err
			}
			if err := put(ctx, tx, "DELETE FROM gone WHERE "+which, arg); err != nil {
				return 0, err
			}
		}
		if err := put(ctx, tx, "DELETE FROM request WHERE run_id IN (SELECT run_id FROM run WHERE "+which+")", arg); err != nil {
			return 0, err
		}
		return s.drop(ctx, tx, which, arg)
	})
	if err == nil {
		err = s.checkpoint(ctx)
	}
	return failure(ctx, "sqlite: delete", err)
}

// drop deletes the rows of the runs that match which, and returns their number.
func (s *Store) drop(ctx context.Context, tx querier, which string, args ...any) (int64, error) {
	last, err := deleteReferences(ctx, tx, "run_id IN (SELECT run_id FROM run WHERE "+which+")", args...)
	if err != nil {
		return 0, err
	}
	for _, table := range []string{"event", "model_call", "fact", "call"} {
		if err := put(ctx, tx, "DELETE FROM "+table+" WHERE run_id IN (SELECT run_id FROM run WHERE "+which+")", args...); err != nil {
			return 0, err
		}
	}
	done, err := tx.ExecContext(ctx, "DELETE FROM run WHERE "+which, args...)
	if err != nil {
		return 0, err
	}
	s.runs.clear()
	if err := dropMessages(ctx, tx, last); err != nil {
		return 0, err
	}
	return done.RowsAffected()
}

// checkpoint moves the write-ahead log into the file, because the log contains deleted data until then.
func (s *Store) checkpoint(ctx context.Context) error {
	return put(ctx, s.write, "PRAGMA wal_checkpoint(TRUNCATE)")
}

// DeleteBefore implements [store.Retainer].
func (s *Store) DeleteBefore(ctx context.Context, t time.Time) error {
	return s.retire(ctx, func(context.Context) (bool, error) { return true, nil }, "updated < ? AND ", t.UnixNano())
}

// Trim implements [store.Retainer]. maxBytes limits the size of the file without its free pages, which SQLite reuses. The file itself does
// not become smaller: see [Store.Shrink].
func (s *Store) Trim(ctx context.Context, maxBytes int64) error {
	over := func(ctx context.Context) (bool, error) {
		var used int64
		err := s.read.QueryRowContext(ctx, "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size").Scan(&used)
		return used > maxBytes, err
	}
	return s.retire(ctx, over, "")
}

// retire removes ended runs in the order of their last events while more returns true, and records the removals.
func (s *Store) retire(ctx context.Context, more func(context.Context) (bool, error), which string, args ...any) error {
	which = "run_id IN (SELECT run_id FROM run WHERE " + which + "status NOT IN ('running', 'parked') ORDER BY updated LIMIT ?)"
	args = append(args, retireBatch)
	removed := false
	err := func() error {
		for {
			if again, err := more(ctx); err != nil || !again {
				return err
			}
			n, err := s.submit(ctx, func(ctx context.Context, tx querier) (int64, error) {
				if err := put(ctx, tx, "INSERT OR REPLACE INTO gone (run_id, principal, time) SELECT run_id, principal, ? FROM run WHERE "+which,
					append([]any{time.Now().UnixNano()}, args...)...); err != nil {
					return 0, err
				}
				if err := put(ctx, tx, "DELETE FROM gone WHERE time < (SELECT time FROM gone ORDER BY time DESC LIMIT 1 OFFSET ?)", maxGone); err != nil {
					return 0, err
				}
				return s.drop(ctx, tx, which, args...)
			})
			if err != nil || n == 0 {
				return err
			}
			removed = true
		}
	}()
	if removed {
		err = errors.Join(err, s.checkpoint(ctx))
	}
	return failure(ctx, "sqlite: retain", err)
}

// missing returns a [store.GoneError] if retention has removed the run, and [lathe.ErrNotFound] if not.
func (s *Store) missing(ctx context.Context, tx *sql.Tx, runID string) error {
	if s.schema < 4 {
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
