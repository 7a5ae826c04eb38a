// Package sqlite stores the logs of runs in one SQLite file. Events that Append has confirmed survive a
// crash of the process and of the machine. The file is in WAL mode with synchronous FULL.
//
// One process at a time writes a file; a lock file excludes others. Concurrent appends are committed in one transaction.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/store"
)

// A Store stores runs in an SQLite file. Its methods may be called from several goroutines at once. Errors are *[lathe.Error] with the
// codes conflict, not_found, invalid_request, unavailable (the file cannot be written), cancelled and timeout. Its Records are in the same
// file.
type Store struct {
	*store.Records
	*database
	tightened []string // see Tightened
}

// Options configure [Open].
type Options struct {
	// ReadOnly opens an existing file, which another process may be writing, for reading only. Open does not migrate the file, and writes
	// return an error of code invalid_request. SQLite creates files with the suffixes -wal and -shm also for readers; only their owner can
	// read them.
	ReadOnly bool
}

// Open opens the store in the file at path. If there is no file, Open creates one in an existing directory; only its owner can read it. An
// older schema is migrated. Open removes the permissions of group and others from the store's files: see [Store.Tightened]. If path is a
// symbolic link, the other files of the store are beside its target.
//
// The error has the code conflict if this or another process has the file open for writing, invalid_request for an invalid path, and
// otherwise unavailable, for example if the schema is newer than [SchemaVersion]. opts may be nil; the caller must call Close.
func Open(path string, opts *Options) (*Store, error) {
	const op = "sqlite: open"
	path, err := resolve(path)
	if err != nil {
		return nil, lathe.CodeInvalidRequest.Wrap(op, opening(err))
	}
	d := &database{requests: make(chan *request), stop: make(chan struct{})}
	s := &Store{Records: d.records(), database: d}
	if err := s.open(path, opts != nil && opts.ReadOnly); err != nil {
		_ = s.close()
		return nil, lockCode(err).Wrap(op, opening(err))
	}
	return s, nil
}

// open opens the file. After an error, the caller must call close.
func (s *Store) open(path string, readOnly bool) (err error) {
	ctx := context.Background() // no limit: opening a file does not block
	if !readOnly {
		if s.lock, err = takeLock(path + ".lock"); err != nil {
			return err
		}
		if s.tightened, err = restrict(path); err != nil {
			return err
		}
		if s.write, err = sql.Open("sqlite", source(path, "rwc", "_txlock=immediate")); err != nil {
			return err
		}
		s.write.SetMaxOpenConns(1)
		if err := s.migrate(ctx); err != nil {
			return err
		}
		if err := s.prepare(ctx); err != nil {
			return err
		}
	}
	if s.read, err = sql.Open("sqlite", source(path, "ro", "")); err != nil {
		return err
	}
	s.read.SetMaxOpenConns(8)
	if s.schema, err = readVersion(ctx, s.read); err != nil {
		return err
	}
	if readOnly {
		return restrictLog(path)
	}
	s.files.watch(path, s.lock)
	s.stopped.Go(s.serve)
	return nil
}

// close closes what is open, and releases the lock.
func (d *database) close() (err error) {
	for _, db := range []*sql.DB{d.read, d.write} {
		if db != nil {
			err = errors.Join(err, db.Close())
		}
	}
	d.lock.release()
	return err
}

// Close waits until queued appends are committed and closes the file. Further calls return nil.
func (s *Store) Close() (err error) {
	s.closing.Do(func() {
		close(s.stop)
		s.stopped.Wait()
		err = s.close()
	})
	return err
}

// failure returns the *[lathe.Error] for an error of the database or of package lathe; nil for nil.
func failure(ctx context.Context, op string, err error) error {
	var known *lathe.Error
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case errors.Is(err, lathe.ErrConflict):
		return lathe.CodeConflict.Wrap(op, err)
	case errors.Is(err, lathe.ErrNotFound):
		return lathe.CodeNotFound.Wrap(op, err)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return lathe.CodeTimeout.Wrap(op, ctx.Err())
	case ctx.Err() != nil:
		return lathe.CodeCancelled.Wrap(op, ctx.Err())
	}
	if strings.Contains(err.Error(), "database is closed") { // package sql exports no error for this
		err = errClosed
	}
	return lathe.CodeUnavailable.Wrap(op, err)
}

var errClosed = errors.New("the store is closed: close it after everything that uses it, such as an agent")
