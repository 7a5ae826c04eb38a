package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"

	driver "modernc.org/sqlite"

	"github.com/lathe-run/lathe"
)

// suffixes are those of the files of a store: the database, its log and the index of that. SQLite makes
// the latter two with the mode of the first.
var suffixes = []string{"", "-wal", "-shm"}

// maxLinks bounds the symbolic links from a path to its file.
const maxLinks = 40

// resolve returns the absolute path of the file that path leads to, which need not exist: the lock and the other files of a
// store are beside that file, whichever symbolic link it is opened by.
func resolve(path string) (string, error) {
	file, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for range maxLinks {
		target, err := os.Readlink(file)
		if err != nil {
			return file, nil //nolint:nilerr // no link
		}
		if !filepath.IsAbs(target) {
			folder, err := filepath.EvalSymlinks(filepath.Dir(file)) // .. is that of the folder itself
			if err != nil {
				return "", err
			}
			target = filepath.Join(folder, target)
		}
		file = target
	}
	return "", fmt.Errorf("%s leads through more than %d symbolic links", path, maxLinks)
}

// restrict makes the database file with mode 0600 if it is not there, and takes the rights of others
// from the files that are. It returns the files that had such rights.
func restrict(path string) (tightened []string, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case err == nil:
		return nil, f.Close()
	case !errors.Is(err, fs.ErrExist):
		return nil, err
	case runtime.GOOS == "windows": // modes say nothing there
		return nil, nil
	}
	for _, suffix := range suffixes {
		info, err := os.Stat(path + suffix)
		if err != nil || info.Mode().Perm()&0o077 == 0 {
			continue
		}
		if err := os.Chmod(path+suffix, info.Mode().Perm()&^0o077); err != nil {
			return tightened, fmt.Errorf("others than its owner may open %s, and this process may not change that: %w", path+suffix, err)
		}
		tightened = append(tightened, path+suffix)
	}
	return tightened, nil
}

// restrictLog takes the rights of others from the log and its index. Where no process writes a file, a connection that
// only reads makes both with the mode of the database, which it leaves as it is. Files of another owner stay as they are:
// what this process makes is its own.
func restrictLog(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	for _, suffix := range suffixes[1:] {
		info, err := os.Stat(path + suffix)
		if err != nil || info.Mode().Perm()&0o077 == 0 {
			continue
		}
		if err := os.Chmod(path+suffix, info.Mode().Perm()&^0o077); err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// The files of an open store, by which it notices that one of them was removed or replaced: what is
// written then is lost when the process ends.
type files struct {
	mu      sync.Mutex
	paths   []string
	infos   []fs.FileInfo
	gone    error // set once, for good
	failing bool  // the last write failed
}

// watch notes the files as they are.
func (f *files) watch(path string, l *lock) {
	for _, suffix := range suffixes {
		if info, err := os.Stat(path + suffix); err == nil {
			f.paths, f.infos = append(f.paths, path+suffix), append(f.infos, info)
		}
	}
	if info, err := l.file.Stat(); err == nil {
		f.paths, f.infos = append(f.paths, l.file.Name()), append(f.infos, info)
	}
}

// check returns an error that wraps [lathe.ErrStoreReplaced] if a file is not there any more, or is
// another one: now, or at any call before.
func (f *files) check() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := 0; i < len(f.paths) && f.gone == nil; i++ {
		info, err := os.Stat(f.paths[i])
		if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(info, f.infos[i]) {
			f.gone = fmt.Errorf("%w: %s; restart with the file in its place", lathe.ErrStoreReplaced, f.paths[i])
		}
	}
	return f.gone
}

// wrote notes how the last write ended.
func (f *files) wrote(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failing = err != nil
}

func (f *files) fails() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failing
}

// Check returns why the store cannot be written: a file of it was removed or replaced, or the last write
// failed and another attempt fails, too. The error is a *[lathe.Error] of code unavailable.
func (s *Store) Check(ctx context.Context) error {
	const op = "sqlite: check"
	err := s.files.check()
	if err == nil && s.write != nil && s.files.fails() {
		_, err = s.submit(ctx, func(ctx context.Context, tx *sql.Tx) (int64, error) {
			_, err := tx.ExecContext(ctx, setVersion(s.schema))
			return 0, err
		})
	}
	if err != nil {
		return failure(ctx, op, err)
	}
	return nil
}

// Tightened returns the files that others than their owner could open until Open took that from them.
func (s *Store) Tightened() []string { return slices.Clone(s.tightened) }

// The primary result codes of SQLite that say that the disk or the file is at fault.
const (
	codeIOError = 10
	codeFull    = 13
	codeOther   = 26 // the file is no database
)

// cause wraps what SQLite says of the disk in the error by which callers know it.
func cause(err error) error {
	var e *driver.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code() & 0xff {
	case codeFull:
		return fmt.Errorf("%w: %w", lathe.ErrStoreFull, err)
	case codeIOError:
		return fmt.Errorf("%w: %w", lathe.ErrStoreDisk, err)
	}
	return err
}

// errLocked says that another process writes the file.
var errLocked = errors.New("another process has it open")

// lockCode returns the code of an error of takeLock.
func lockCode(err error) lathe.Code {
	if errors.Is(err, errLocked) {
		return lathe.CodeConflict
	}
	return lathe.CodeUnavailable
}

// opening is the error of opening a file, with the next step: one that is no database is said so, and not by its number.
func opening(err error) error {
	var e *driver.Error
	var path *fs.PathError
	switch {
	case errors.As(err, &e) && e.Code()&0xff == codeOther:
		return errors.New("the file is not an SQLite database: name another file")
	case errors.As(err, &e) && e.Code()&0xff == codeFull, errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("the disk is full: free space, or name a file on another disk (%w)", err)
	case !errors.As(err, &path):
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no folder %s: create it, or name a file in another folder (%w)", filepath.Dir(path.Path), err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("this user may not write in the folder %s: change that, or name a file in another folder (%w)", filepath.Dir(path.Path), err)
	}
	return err
}

func ofDisk(err error) bool {
	return errors.Is(err, lathe.ErrStoreFull) || errors.Is(err, lathe.ErrStoreDisk)
}
