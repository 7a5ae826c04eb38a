package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/store"
)

// rows implements [store.Rows] for a file: in one transaction if writes is true, and without one if not.
type rows struct {
	session
	op     string
	now    time.Time
	writes bool
	schema int
}

// records returns the records in the file.
func (d *database) records() *store.Records {
	return store.NewRecords(func(ctx context.Context, op string, write bool, fn func(store.Rows, time.Time) error) error {
		op = "sqlite: " + op
		do := func(ctx context.Context, db querier) error {
			r := &rows{session{ctx, db}, op, time.Now(), write, d.schema}
			return fn(r, r.now)
		}
		if !write {
			return failure(ctx, op, do(ctx, d.read))
		}
		_, err := d.submit(ctx, func(ctx context.Context, tx querier) (int64, error) { return 0, do(ctx, tx) })
		return failure(ctx, op, err)
	})
}

// A session contains the context for methods without a context argument.
type session struct {
	ctx context.Context
	db  querier
}

// exec executes a statement and returns the number of changed rows.
func (s *session) exec(statement string, args ...any) (int64, error) {
	done, err := s.db.ExecContext(s.ctx, statement, args...)
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}

// put executes a statement.
func (s *session) put(statement string, args ...any) error {
	return put(s.ctx, s.db, statement, args...)
}

// one returns a scanner for the first row of a query. The scanner returns [lathe.ErrNotFound] if there is no row.
func (s *session) one(query string, args ...any) scanner {
	row := s.db.QueryRowContext(s.ctx, query, args...)
	return func(to ...any) error {
		err := row.Scan(to...)
		if errors.Is(err, sql.ErrNoRows) {
			err = lathe.ErrNotFound
		}
		return err
	}
}

func (r *rows) Request(digest store.RequestDigest) (runID string, at, delivered time.Time, err error) {
	if r.schema < requestsVersion { // a read-only file of an earlier version without request records
		return "", at, delivered, lathe.ErrNotFound
	}
	var recorded, sent int64
	err = r.one(findRequest, digest[:])(&runID, &recorded, &sent)
	return runID, timeOf(recorded), timeOf(sent), err
}

func (r *rows) PutRequest(digest store.RequestDigest, runID string, at, delivered time.Time) error {
	return r.put(addRequest, digest[:], runID, nanos(at), nanos(delivered))
}

func (r *rows) ForgetRequests(before time.Time) error {
	return r.put(forgetRequests, before.UnixNano())
}

// Value implements [store.Rows]. It reads the table of secrets, which also contains the named values.
func (r *rows) Value(name string) (value []byte, err error) {
	err = r.one("SELECT value FROM secret WHERE name = ?", name)(&value)
	if errors.Is(err, lathe.ErrNotFound) {
		err = nil
	}
	return value, err
}

func (r *rows) PutValue(name string, value []byte) error {
	if len(value) == 0 {
		return r.put("DELETE FROM secret WHERE name = ?", name)
	}
	return r.put("INSERT INTO secret (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", name, value)
}

func (r *rows) Values(prefix string, limit int) (map[string][]byte, error) {
	out := map[string][]byte{}
	err := each(r.ctx, r.db, func(scan scanner) error {
		var name string
		var value []byte
		err := scan(&name, &value)
		out[name] = value
		return err
	}, "SELECT name, value FROM secret WHERE name >= ?1 AND substr(name, 1, length(?1)) = ?1 ORDER BY name LIMIT ?2", prefix, limit)
	return out, err
}

func (r *rows) PutSignal(f *store.Signal) error {
	var status string
	if err := r.one("SELECT status FROM run WHERE run_id = ?", f.RunID)(&status); err != nil {
		return err
	}
	if status != "running" && status != "parked" {
		return lathe.ErrConflict
	}
	n, err := r.exec(`INSERT INTO fact (run_id, seq, kind, key, body, time)
		SELECT ?1, coalesce(max(seq), 0) + 1, ?2, ?3, ?4, ?5 FROM fact WHERE run_id = ?1 ON CONFLICT (run_id, kind, key) DO NOTHING`,
		f.RunID, f.Kind, f.Key, []byte(f.Body), nanos(f.Time))
	if err == nil && n == 0 {
		err = lathe.ErrConflict
	}
	return err
}

func (r *rows) Signals(runID string) ([]store.Signal, error) {
	if r.schema < signalsVersion { // a read-only file of an earlier version without signals
		return nil, nil
	}
	return collect(r.ctx, r.db, func(scan scanner) (store.Signal, error) {
		f := store.Signal{RunID: runID}
		var at int64
		err := scan(&f.Kind, &f.Key, (*[]byte)(&f.Body), &at)
		f.Time = timeOf(at)
		return f, err
	}, "SELECT kind, key, body, time FROM fact WHERE run_id = ? ORDER BY seq", runID)
}
