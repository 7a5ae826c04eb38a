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

var _ store.RunIndex = (*Store)(nil)

// A Store is an open SQLite file. Its methods may be called from several goroutines at once. Errors are *[lathe.Error] with the codes
// conflict, not_found, invalid_request, unavailable (the file cannot be written), cancelled and timeout. Its Records are in the same file.
type Store struct {
	*store.Records
	*database
	tightened []string // see Tightened
}

// Options configure [Open].
type Options struct {
	// ReadOnly opens a file that another process may be writing. The file is neither created nor migrated, and writes return an error.
	// SQLite creates the files -wal and -shm also for readers; they are readable by their owner only.
	ReadOnly bool
}

// Open opens the store in the file at path, or creates it, readable by its owner only, in an existing directory. An older schema is
// migrated. Open removes the permissions of group and others from the store's files: see [Store.Tightened]. If path is a symbolic link, the
// other files are beside its target. The error has the code conflict if another process has the file open for writing. opts may be nil; the
// caller must call Close.
func Open(path string, opts *Options) (*Store, error) {
	const op = "sqlite: open"
	fail := func(code lathe.Code, err error) (*Store, error) {
		return nil, code.Wrap(op, opening(err))
	}
	readOnly := opts != nil && opts.ReadOnly
	ctx := context.Background() // no limit: opening a file does not block
	path, err := resolve(path)
	if err != nil {
		return fail(lathe.CodeInvalidRequest, err)
	}
	d := &database{requests: make(chan *request), stop: make(chan struct{})}
	s := &Store{Records: d.records(), database: d}
	if !readOnly {
		if s.lock, err = takeLock(path + ".lock"); err != nil {
			return fail(lockCode(err), err)
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
	if err == nil && readOnly {
		err = restrictLog(path)
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

// Close waits until queued appends are committed and closes the file. Further calls return nil.
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
