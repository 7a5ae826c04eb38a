// Package postgres keeps the logs of runs in a PostgreSQL database, for several processes at once:
// what Append has returned survives the end of any process, and of the database server's. PostgreSQL 14
// or later is needed.
//
// Each statement is a transaction of its own, so that no process, stopped wherever it may be, holds a
// lock. The server's clock decides over leases; no statement takes the time of a caller.
package postgres

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/store"
)

var _ lathe.SharedStore = (*Store)(nil)

const (
	defaultConns = 12
	minConns     = 4
	watches      = 2 // connections that only listen
)

// A Store is one database. Its methods may be called from several goroutines at once. Errors are
// *[lathe.Error] with the codes of every store: conflict, not_found, invalid_request, unavailable
// where the database cannot be reached or does not take what it is given, cancelled and timeout.
//
// Where a connection breaks while something is on its way, the store finds out what became of it: what
// was kept is not reported as a conflict to whoever wrote it, and never kept twice. Where it cannot find
// out in time, the error is unavailable, and the events may be kept or not.
type Store struct {
	pool    *pgxpool.Pool
	channel string // of hints

	requests chan *request
	stop     chan struct{}
	stopped  sync.WaitGroup
	closing  sync.Once

	states states
	hints  hints
	calls  store.CallHints // for watchers of this process
	outage outage
	memory memory
}

// Options say how a database is used.
type Options struct {
	// MaxConns bounds the connections: 12. At least 4; two of them are for hints.
	MaxConns int
	// AllowUnsafeDurability accepts a server that may lose what it has confirmed: one with fsync,
	// full_page_writes or synchronous_commit off.
	AllowUnsafeDurability bool
}

// Open opens the database at url, such as "postgres://app@db:5432/tools?sslmode=verify-full", and makes
// or updates its tables where they are not those of this version; one that a newer version has made is
// refused. The tables are in the schema that is first in the search_path. Of several hosts the primary
// is used.
func Open(ctx context.Context, url string, opts *Options) (*Store, error) {
	const op = "postgres: open"
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.MaxConns == 0 {
		o.MaxConns = defaultConns
	}
	s := &Store{requests: make(chan *request), stop: make(chan struct{})}
	cfg, err := s.configure(url, &o)
	if err != nil {
		return nil, &lathe.Error{Code: lathe.CodeInvalidRequest, Op: op, Err: err}
	}
	if s.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return nil, failure(ctx, op, err)
	}
	s.hints.ready = make(chan struct{}, 1)
	if err := s.prepare(ctx); err != nil {
		s.pool.Close()
		return nil, failure(ctx, op, err)
	}
	for range lanes {
		s.stopped.Go(s.serve)
	}
	s.stopped.Go(s.tell)
	return s, nil
}

// prepare makes the tables.
func (s *Store) prepare(ctx context.Context) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if err := migrate(ctx, conn.Conn()); err != nil {
		return err
	}
	return conn.QueryRow(ctx, "SELECT 'lathe_' || md5(current_schema())").Scan(&s.channel)
}

// Close ends the store, once what was handed to it is answered, and closes its connections. Watches end
// with their context.
func (s *Store) Close() error {
	s.closing.Do(func() {
		close(s.stop)
		s.stopped.Wait()
		s.pool.Close()
	})
	return nil
}

// failure says what an error of the database is to the caller.
func failure(ctx context.Context, op string, err error) error {
	var known *lathe.Error
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &lathe.Error{Code: lathe.CodeTimeout, Op: op, Err: ctx.Err()}
	case ctx.Err() != nil:
		return &lathe.Error{Code: lathe.CodeCancelled, Op: op, Err: ctx.Err()}
	case unwritable(err):
		return &lathe.Error{Code: lathe.CodeInvalidRequest, Op: op, Err: err}
	}
	return &lathe.Error{Code: lathe.CodeUnavailable, Op: op, Err: oneLine{err}}
}

// oneLine is an error whose text is one line, also where a connection was tried in several ways.
type oneLine struct{ err error }

func (e oneLine) Error() string { return strings.Join(strings.Fields(e.err.Error()), " ") }
func (e oneLine) Unwrap() error { return e.err }

// micros is the form in which statements take a duration.
func micros(d time.Duration) int64 { return min(d, maxLease).Microseconds() }
