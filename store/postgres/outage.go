package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lathe-run/lathe"
)

// patience is the time after a broken connection during which statements are retried: the usual maximum for a restart of the server or the
// promotion of a standby.
const patience = 3 * time.Second

// An outage is the time since the database became unreachable. After patience, statements are tried only once.
type outage struct {
	mu    sync.Mutex
	since time.Time
}

// over ends the outage.
func (o *outage) over() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.since = time.Time{}
}

// noteFailure starts the outage if none exists, and reports whether to try again.
func (o *outage) noteFailure() (again bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() {
		o.since = time.Now()
	}
	return time.Since(o.since) < patience
}

// maxDeadlocks is the maximum number of attempts of a statement that the server ends because of a deadlock. A deletion by a process
// of an earlier version, which does not lock the messages of conversations first, can be part of one.
const maxDeadlocks = 10

// retry calls try until it returns nil or an error other than that of a broken connection or of a deadlock. An earlier attempt may have
// been committed although its response was lost, so a repetition of try must be harmless.
func (d *database) retry(ctx context.Context, try func(ctx context.Context) error) error {
	wait, deadlocks := 5*time.Millisecond, 0
	for {
		attempt, cancel := context.WithTimeout(ctx, tryTimeout)
		err := try(attempt)
		cancel()
		switch {
		case sqlState(err) == "40P01" && deadlocks < maxDeadlocks: // a deadlock
			deadlocks++
			continue
		case !broken(err):
			d.outage.over()
			return err
		case ctx.Err() != nil || !d.outage.noteFailure():
			return err
		}
		d.pool.Reset() // other connections are probably broken, too
		select {
		case <-ctx.Done():
			return err
		case <-d.stop:
			return err
		case <-time.After(wait):
			wait = min(2*wait, 200*time.Millisecond)
		}
	}
}

// broken reports whether err means that the result of a statement is unknown, or that there was no connection.
func broken(err error) bool {
	var known *lathe.Error
	var refused *pgconn.PgError
	switch {
	case err == nil, errors.As(err, &known), errors.Is(err, pgx.ErrNoRows):
		return false
	case errors.As(err, &refused):
		if refused.Code == "25006" { // the server is read-only: it is no longer the primary
			return true
		}
		ended := refused.SeverityUnlocalized == "FATAL" || refused.SeverityUnlocalized == "PANIC" // the server has closed the connection
		return ended && !slices.Contains([]string{"28", "3D", "42"}, class(refused.Code))         // an error of authentication, of the database name or of access is not temporary
	}
	return true
}

// sqlState returns the code of an error of the server, "" for any other.
func sqlState(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// class returns the first two characters of a code, which are its class.
func class(code string) string { return code[:min(2, len(code))] }

// unwritable reports whether err means that the server can never store the data: a data exception, or a statement that is too complex.
func unwritable(err error) bool { return class(sqlState(err)) == "22" || sqlState(err) == "54000" }

// exec executes a statement, possibly twice if a connection breaks.
func (d *database) exec(ctx context.Context, op, statement string, args ...any) error {
	return failure(ctx, op, d.retry(ctx, func(ctx context.Context) error {
		_, err := d.pool.Exec(ctx, statement, args...)
		return err
	}))
}

// one scans the first row of a query. found is false if none exists.
func (d *database) one(ctx context.Context, query string, args []any, to ...any) (found bool, err error) {
	err = d.retry(ctx, func(ctx context.Context) error { return d.pool.QueryRow(ctx, query, args...).Scan(to...) })
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// collect returns the results of scan for the rows of a query. The query may change data if it may be executed twice.
func collect[T any](ctx context.Context, d *database, op string, scan pgx.RowToFunc[T], query string, args ...any) (out []T, err error) {
	err = d.retry(ctx, func(ctx context.Context) error {
		rows, err := d.pool.Query(ctx, query, args...)
		if err == nil {
			out, err = pgx.AppendRows([]T(nil), rows, scan)
		}
		return err
	})
	if err != nil {
		return nil, failure(ctx, op, err)
	}
	return out, nil
}

// scanJSON scans a row with one column that contains JSON.
func scanJSON[T any](r pgx.CollectableRow) (v T, err error) {
	var raw []byte
	if err = r.Scan(&raw); err != nil {
		return v, err
	}
	if err = json.Unmarshal(raw, &v); err != nil {
		err = lathe.CodeInternal.Wrap("postgres: list", err)
	}
	return v, err
}
