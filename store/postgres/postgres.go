// Package postgres stores the logs of runs in a PostgreSQL database that several processes share. Events that Append has confirmed survive
// a crash of any process and of the database server. It requires PostgreSQL 14 or later.
//
// Each statement is its own transaction, so that a process that stops at any point has no lock. Leases use the server's clock; no statement
// takes a time from the caller.
package postgres

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/remote"
	"github.com/lathe-run/lathe/store"
)

const (
	defaultConns = 12
	minConns     = 4
	watches      = 2 // number of connections that only listen
)

// A Store stores runs in a PostgreSQL database. Its methods may be called from several goroutines at once. Errors are *[lathe.Error] with
// the codes conflict, not_found, invalid_request, unavailable (the database cannot be reached or refuses the write), cancelled and timeout.
//
// If a connection breaks during a write, the store finds out whether the write was committed: it neither stores data twice nor reports its
// own write as a conflict. If it cannot find out in time, the error is unavailable, and the data may or may not be stored.
type Store struct {
	remote.Queue
	store.Ledger
	store.RequestStore
	store.SecretKeeper
	store.ValueKeeper
	*database

	requests chan *request
	stopped  sync.WaitGroup
	closing  sync.Once

	states states
	memory memory
}

// A database contains the connections and the state of retries and notifications.
type database struct {
	pool    *pgxpool.Pool
	channel string                       // name of the channel for notifications
	stop    chan struct{}                // closed by Close
	runs    *outbox[string]              // runs with new events or signals, to notify
	calls   *outbox[remote.Notification] // calls with a new state, to notify
	outage  outage
}

// Options configure [Open].
type Options struct {
	// MaxConns is the maximum number of connections of a process that has one Watch and one WatchCalls in progress; 0: 12. A value below 4
	// is an error. Statements use at most MaxConns - 2 connections, and each Watch or WatchCalls in progress uses one of its own.
	MaxConns int
	// AllowUnsafeDurability accepts a server that may lose confirmed events: one whose setting fsync, full_page_writes or
	// synchronous_commit is off. If it is false, Open refuses such a server.
	AllowUnsafeDurability bool
}

// Open connects to the database at url, such as "postgres://app@db:5432/tools?sslmode=verify-full". It creates the tables in the first
// schema of the search_path, or migrates older ones; tables of a newer version are an error. If url names several hosts, Open uses the
// primary. The error has the code invalid_request for an invalid url or invalid options, and otherwise one of the codes of [Store]. opts
// may be nil; the caller must call Close.
func Open(ctx context.Context, url string, opts *Options) (*Store, error) {
	const op = "postgres: open"
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.MaxConns == 0 {
		o.MaxConns = defaultConns
	}
	d := &database{stop: make(chan struct{}), runs: newOutbox[string](), calls: newOutbox[remote.Notification]()}
	s := &Store{database: d, requests: make(chan *request), states: states{byRun: map[string]state{}}, memory: memory{ends: map[string]logEnd{}},
		Queue: &callQueue{database: d}, Ledger: &ledger{d}, RequestStore: &requestRecords{d}, SecretKeeper: &named{d}, ValueKeeper: &named{d}}
	cfg, err := s.configure(url, &o)
	if err != nil {
		return nil, lathe.CodeInvalidRequest.Wrap(op, err)
	}
	if s.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return nil, failure(ctx, op, err)
	}
	if err := s.prepare(ctx); err != nil {
		s.pool.Close()
		return nil, failure(ctx, op, err)
	}
	for range writers {
		s.stopped.Go(s.serve)
	}
	s.stopped.Go(func() {
		s.runs.deliver(s.stop, runNotifyEvery, func(lists []string) { s.notify(s.channel, lists) })
	})
	s.stopped.Go(func() {
		s.calls.deliver(s.stop, callNotifyEvery, func(lists []string) { s.notify(s.channel+ofCalls, lists) })
	})
	return s, nil
}

// prepare creates or migrates the tables.
func (s *Store) prepare(ctx context.Context) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if err := schema.Update(ctx, &migration{conn.Conn(), s.pool.Acquire}); err != nil {
		return err
	}
	return conn.QueryRow(ctx, "SELECT 'lathe_' || md5(current_schema())").Scan(&s.channel)
}

// Close waits until queued appends are written and closes the connections. It does not end a Watch in progress, which ends when its context
// is done. It may be called more than once and returns nil.
func (s *Store) Close() error {
	s.closing.Do(func() {
		close(s.stop)
		s.stopped.Wait()
		s.pool.Close()
	})
	return nil
}

// failure returns the *[lathe.Error] for an error of the database; nil for nil.
func failure(ctx context.Context, op string, err error) error {
	var known *lathe.Error
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return lathe.CodeTimeout.Wrap(op, ctx.Err())
	case ctx.Err() != nil:
		return lathe.CodeCancelled.Wrap(op, ctx.Err())
	case strings.Contains(err.Error(), "closed pool"): // pgx exports no error for this
		return lathe.CodeUnavailable.Wrap(op, errClosed)
	case unwritable(err):
		return lathe.CodeInvalidRequest.Wrap(op, err)
	}
	return lathe.CodeUnavailable.Wrap(op, oneLine{err})
}

var errClosed = errors.New("the store is closed: close it after everything that uses it, such as an agent")

func conflict(op string) error {
	return lathe.CodeConflict.Wrap(op, lathe.ErrConflict)
}

func notFound(op string) error {
	return lathe.CodeNotFound.Wrap(op, lathe.ErrNotFound)
}

// oneLine is an error whose text is one line, even if a connection was tried in several ways.
type oneLine struct{ err error }

func (e oneLine) Error() string { return strings.Join(strings.Fields(e.err.Error()), " ") }
func (e oneLine) Unwrap() error { return e.err }

// micros returns a duration in microseconds, at most maxLease.
func micros(d time.Duration) int64 { return min(d, maxLease).Microseconds() }
