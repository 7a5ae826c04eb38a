package postgres

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lathe-run/lathe"
)

// patience is the time after a broken connection during which statements are retried: a restart of the
// server, or the promotion of a standby, often takes no longer.
const patience = 3 * time.Second

// An outage is the time since the database became unreachable. Once it is longer than patience, statements
// are tried only once.
type outage struct {
	mu    sync.Mutex
	since time.Time
}

func (o *outage) over() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.since = time.Time{}
}

// goesOn reports whether to try again.
func (o *outage) goesOn() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() {
		o.since = time.Now()
	}
	return time.Since(o.since) < patience
}

// again calls try until it returns anything but the error of a broken connection. An earlier attempt may have been
// committed although its answer was lost: try must allow for that.
func (d *database) again(ctx context.Context, try func(ctx context.Context) error) error {
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 200*time.Millisecond) {
		one, cancel := context.WithTimeout(ctx, tryTimeout)
		err := try(one)
		cancel()
		if err == nil || !broken(err) {
			d.outage.over()
			return err
		}
		if ctx.Err() != nil || !d.outage.goesOn() {
			return err
		}
		d.pool.Reset() // the others are likely to be broken, too
		select {
		case <-ctx.Done():
			return err
		case <-d.stop:
			return err
		case <-time.After(wait):
		}
	}
}

// broken reports whether err leaves open what became of a statement, or says that there was no
// connection to send it on.
func broken(err error) bool {
	var known *lathe.Error
	var refused *pgconn.PgError
	switch {
	case err == nil, errors.As(err, &known), errors.Is(err, pgx.ErrNoRows):
		return false
	case errors.As(err, &refused):
		if refused.Code == "25006" { // it was the primary
			return true
		}
		final := refused.SeverityUnlocalized == "FATAL" || refused.SeverityUnlocalized == "PANIC"
		return final && !slices.Contains([]string{"28", "3D", "42"}, class(refused.Code)) // who may not come in will not the next time
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

func class(code string) string { return code[:min(2, len(code))] }

// unwritable reports whether the server cannot keep such data, wherever and whenever.
func unwritable(err error) bool { return class(sqlState(err)) == "22" || sqlState(err) == "54000" }
