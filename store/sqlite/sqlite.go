// Package sqlite keeps the logs of runs in one SQLite file, for keeps: what Append has returned
// survives the end of the process and of the machine. The file is in WAL mode with synchronous FULL.
//
// One process writes a file at a time; a lock beside it keeps others out. Appends that come together
// are committed together.
package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"sync"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/store"
)

var (
	_ lathe.RunIndex  = (*Store)(nil)
	_ lathe.FactStore = (*Store)(nil)
)

//go:embed schema.sql
var schema string

// version is that of the schema that this package writes. Older ones are brought forward when a file
// is opened; newer ones are refused.
const version = 7

// A Store is one open file. Its methods may be called from several goroutines at once. Errors are
// *[lathe.Error] with the codes of every store: conflict, not_found, invalid_request, unavailable
// where the file cannot be written, cancelled and timeout.
type Store struct {
	write *sql.DB // one connection: that of the writer
	read  *sql.DB
	lock  *lock

	requests  chan *request
	stop      chan struct{}
	stopped   sync.WaitGroup
	closing   sync.Once
	runs      summaries
	does      statements
	files     files
	tightened []string // see Tightened
	schema    int      // of the file; less than version where it is open for reading only
	calls     store.CallHints
}

// Options say how a file is opened.
type Options struct {
	// ReadOnly opens the file beside the process that writes it. It is not made, and not brought
	// forward; appends and deletes are refused.
	ReadOnly bool
}

// Open opens the file at path, and makes it where it is not there, readable by its owner alone. The folder
// must be there. The rights that others have to a file of the store are taken from them; see [Store.Tightened].
// It fails with code conflict when another process has the file open for writing.
func Open(path string, opts *Options) (*Store, error) {
	const op = "sqlite: open"
	fail := func(code lathe.Code, err error) (*Store, error) {
		return nil, &lathe.Error{Code: code, Op: op, Err: err}
	}
	readOnly := opts != nil && opts.ReadOnly
	ctx := context.Background() // a file is opened at once or not
	path, err := filepath.Abs(path)
	if err != nil {
		return fail(lathe.CodeInvalidRequest, err)
	}
	s := &Store{requests: make(chan *request), stop: make(chan struct{})}
	if !readOnly {
		if s.lock, err = takeLock(path + ".lock"); err != nil {
			return fail(lathe.CodeConflict, err)
		}
		if s.tightened, err = restrict(path); err != nil {
			s.lock.release()
			return fail(lathe.CodeUnavailable, err)
		}
		if s.write, err = sql.Open("sqlite", source(path, "rwc", "_txlock=immediate")); err != nil {
			s.lock.release()
			return fail(lathe.CodeUnavailable, err)
		}
		s.write.SetMaxOpenConns(1)
		if err = s.migrate(ctx); err == nil {
			err = s.prepare(ctx)
		}
		if err != nil {
			_ = s.write.Close()
			s.lock.release()
			return fail(lathe.CodeUnavailable, err)
		}
	}
	if s.read, err = sql.Open("sqlite", source(path, "ro", "")); err == nil {
		s.read.SetMaxOpenConns(8)
		err = s.known(ctx)
	}
	if err != nil {
		for _, db := range []*sql.DB{s.read, s.write} {
			if db != nil {
				_ = db.Close()
			}
		}
		s.lock.release()
		return fail(lathe.CodeUnavailable, err)
	}
	if !readOnly {
		s.files.watch(path, s.lock)
		s.stopped.Go(s.serve)
	}
	return s, nil
}

// source names the file and what each connection is set to.
func source(path, mode, more string) string {
	q := "mode=" + mode + "&_pragma=busy_timeout(10000)&_pragma=synchronous(2)&_pragma=secure_delete(1)&_pragma=trusted_schema(0)"
	if mode != "ro" {
		q += "&_pragma=journal_mode(WAL)"
	}
	if more != "" {
		q += "&" + more
	}
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: q}).String()
}

// migrate brings the file to the schema of this version, and refuses settings that lose what was kept.
func (s *Store) migrate(ctx context.Context) error {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	var has int
	if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&has); err != nil {
		return err
	}
	if has > version {
		return tooNew(has)
	}
	if has == 0 {
		var tables int
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master").Scan(&tables); err != nil {
			return err
		}
		if tables > 0 {
			return errors.New("the file is a database of something else")
		}
		if _, err := tx.ExecContext(ctx, schema); err != nil {
			return err
		}
	}
	if has < 2 {
		if err := s.addFacts(ctx, tx); err != nil {
			return err
		}
	}
	if has < 3 {
		if _, err := tx.ExecContext(ctx, queueTables); err != nil {
			return err
		}
	}
	if has < 4 {
		if _, err := tx.ExecContext(ctx, goneTable); err != nil {
			return err
		}
	}
	if has < 5 {
		if _, err := tx.ExecContext(ctx, traceColumns); err != nil {
			return err
		}
	}
	if has < 6 {
		if _, err := tx.ExecContext(ctx, endedIndex); err != nil {
			return err
		}
	}
	if has < 7 {
		if _, err := tx.ExecContext(ctx, requestTable); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", version)); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	var mode string
	var sync int
	if err := s.write.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return err
	}
	if err := s.write.QueryRowContext(ctx, "PRAGMA synchronous").Scan(&sync); err != nil {
		return err
	}
	if mode != "wal" || sync < 2 {
		return fmt.Errorf("the file is in mode %s with synchronous %d, where wal and 2 are needed to keep what was written", mode, sync)
	}
	return nil
}

func tooNew(has int) error {
	return fmt.Errorf("the file was written by a newer version (schema %d, known is %d)", has, version)
}

// known reports an error for a file that this version cannot read.
func (s *Store) known(ctx context.Context) error {
	if err := s.read.QueryRowContext(ctx, "PRAGMA user_version").Scan(&s.schema); err != nil {
		return err
	}
	switch {
	case s.schema == 0:
		return errors.New("the file is no store of runs")
	case s.schema > version:
		return tooNew(s.schema)
	}
	return nil
}

// Close ends the writer, once what was handed to it is committed, and closes the file.
func (s *Store) Close() error {
	var err error
	s.closing.Do(func() {
		close(s.stop)
		s.stopped.Wait()
		err = s.read.Close()
		if s.write != nil {
			err = errors.Join(err, s.write.Close())
		}
		s.lock.release()
	})
	return err
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
	}
	return &lathe.Error{Code: lathe.CodeUnavailable, Op: op, Err: err}
}
