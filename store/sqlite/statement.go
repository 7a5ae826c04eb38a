package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"
)

// The statements of most transactions, which are prepared once.
const (
	lastEvent = "SELECT last_id FROM run WHERE run_id = ?"
	addEvent  = "INSERT INTO event (run_id, id, body) VALUES (?, ?, ?)"
	addRun    = "INSERT INTO run (run_id, last_id, started, updated, session_id, principal, status, summary) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run_id) DO NOTHING"
	// moveRun and moveRunStatus update a run whose log ends at ?5. Only moveRunStatus changes the status, and so writes the index on it.
	moveRun       = "UPDATE run SET last_id = ?1, updated = ?2, summary = ?3 WHERE run_id = ?4 AND last_id = ?5"
	moveRunStatus = "UPDATE run SET last_id = ?1, updated = ?2, summary = ?3, status = ?6 WHERE run_id = ?4 AND last_id = ?5"
	addCall       = `INSERT INTO model_call (run_id, event_id, time, summary) VALUES (?, ?, ?, ?)
		ON CONFLICT (run_id, event_id) DO UPDATE SET summary = excluded.summary`
	addConversation = "INSERT INTO conversation (run_id, event_id, last) VALUES (?, ?, ?)"
	hasMessage      = "SELECT 1 FROM message WHERE digest = ?"
	addMessage      = "INSERT INTO message (digest, previous, body) VALUES (?, ?, ?)"
	findRequest     = "SELECT run_id, time, coalesce(delivered, 0) FROM request WHERE digest = ?"
	addRequest      = `INSERT INTO request (digest, run_id, time, delivered) VALUES (?, ?, ?, nullif(?, 0))
		ON CONFLICT (digest) DO UPDATE SET run_id = excluded.run_id, time = excluded.time, delivered = excluded.delivered`
	forgetRequests = "DELETE FROM request WHERE time < ?"
	setPoint       = "SAVEPOINT one"
	releasePoint   = "RELEASE one"
)

// statements are the prepared statements of the writer, by their text.
type statements map[string]*sql.Stmt

// prepare prepares the statements. They are closed with the file.
func (d *database) prepare(ctx context.Context) error {
	d.prepared = statements{}
	for _, query := range []string{lastEvent, addEvent, addRun, moveRun, moveRunStatus, addCall, addConversation, hasMessage, addMessage, findRequest, addRequest, forgetRequests, setPoint, releasePoint} {
		st, err := d.write.PrepareContext(ctx, query)
		if err != nil {
			return err
		}
		d.prepared[query] = st
	}
	return nil
}

// prepared is a transaction that executes prepared statements where there are any.
type prepared struct {
	*sql.Tx
	statements statements
}

// ExecContext implements [querier].
func (p prepared) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if st := p.statements[query]; st != nil {
		return p.StmtContext(ctx, st).ExecContext(ctx, args...)
	}
	return p.Tx.ExecContext(ctx, query, args...)
}

// QueryRowContext implements [querier].
func (p prepared) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if st := p.statements[query]; st != nil {
		return p.StmtContext(ctx, st).QueryRowContext(ctx, args...)
	}
	return p.Tx.QueryRowContext(ctx, query, args...)
}

// A querier is a transaction or a database.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// A scanner is the Scan method of one row.
type scanner func(to ...any) error

// put executes a statement.
func put(ctx context.Context, db querier, query string, args ...any) error {
	_, err := db.ExecContext(ctx, query, args...)
	return err
}

// each calls row for each row of a query, until it returns an error.
func each(ctx context.Context, db querier, row func(scanner) error, query string, args ...any) error {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err returns the relevant error
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// collect returns the results of scan for the rows of a query.
func collect[T any](ctx context.Context, db querier, scan func(scanner) (T, error), query string, args ...any) (out []T, err error) {
	err = each(ctx, db, func(s scanner) error {
		v, err := scan(s)
		out = append(out, v)
		return err
	}, query, args...)
	return out, err
}

// scanJSON scans a row with one column that contains JSON.
func scanJSON[T any](scan scanner) (v T, err error) {
	var raw []byte
	if err = scan(&raw); err == nil {
		err = json.Unmarshal(raw, &v)
	}
	return v, err
}

// nanos returns the stored form of a time; 0 for the zero time.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// timeOf returns the time of a stored form; the zero time for 0.
func timeOf(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n)
}
