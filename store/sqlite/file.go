package sqlite

import (
	"context"
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

// This file resolves the path of a store, restricts the permissions of its files, detects that one was removed or replaced, and adds the
// next step to errors of the disk.

// suffixes are the suffixes of the files of a store: the database, its write-ahead log and the index of the log. SQLite creates the latter
// two with the mode of the first.
var suffixes = []string{"", "-wal", "-shm"}

// maxLinks is the maximum number of symbolic links from a path to its file.
const maxLinks = 40

// resolve returns the absolute path of the file to which path leads, which need not exist. The lock and the other files of a store are
// beside that file, whichever symbolic link is used to open it.
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
			folder, err := filepath.EvalSymlinks(filepath.Dir(file)) // ".." in the target is relative to the resolved directory
			if err != nil {
				return "", err
			}
			target = filepath.Join(folder, target)
		}
		file = target
	}
	return "", fmt.Errorf("%s leads through more than %d symbolic links", path, maxLinks)
}

// restrict creates the database file with mode 0600 if it does not exist, and removes the permissions of group and others from existing
// files. It returns the files that had such permissions.
func restrict(path string) (tightened []string, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case err == nil:
		return nil, f.Close()
	case !errors.Is(err, fs.ErrExist):
		return nil, err
	case runtime.GOOS == "windows": // modes have no meaning there
		return nil, nil
	}
	for _, suffix := range suffixes {
		switch changed, err := tighten(path + suffix); {
		case err != nil:
			return tightened, fmt.Errorf("others than its owner may open %s, and this process may not change that: %w", path+suffix, err)
		case changed:
			tightened = append(tightened, path+suffix)
		}
	}
	return tightened, nil
}

// tighten removes the permissions of group and others from a file, and reports whether it had such permissions.
func tighten(path string) (changed bool, err error) {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return false, nil //nolint:nilerr // there is no file
	}
	return true, os.Chmod(path, info.Mode().Perm()&^0o077)
}

// restrictLog removes the permissions of group and others from the log and its index. If no process writes the file, a read-only connection
// creates both with the mode of the database, which is not changed. Errors of permission are ignored: files that this process creates
// belong to its own user.
func restrictLog(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	for _, suffix := range suffixes[1:] {
		if _, err := tighten(path + suffix); err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// files are the files of an open store, to detect that one of them was removed or replaced: data written after that is lost when the
// process ends.
type files struct {
	mu      sync.Mutex
	paths   []string
	infos   []fs.FileInfo // by the index of paths
	gone    error         // set once and never reset
	failing bool          // the last write failed
}

// watch records the files of the store.
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

// check returns an error that wraps [lathe.ErrStoreReplaced] if a file was removed or replaced, now or at an earlier call.
func (f *files) check() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone != nil {
		return f.gone
	}
	for i, path := range f.paths {
		info, err := os.Stat(path)
		removed := errors.Is(err, fs.ErrNotExist)
		replaced := err == nil && !os.SameFile(info, f.infos[i])
		if removed || replaced {
			f.gone = fmt.Errorf("%w: %s; restart with the file in its place", lathe.ErrStoreReplaced, path)
			break
		}
	}
	return f.gone
}

// wrote records whether the last write failed.
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

// Check returns an error of code unavailable if the store cannot be written: one of its files was removed or replaced, or the last write
// failed and another attempt by Check fails too.
func (s *Store) Check(ctx context.Context) error {
	err := s.files.check()
	if err == nil && s.write != nil && s.files.fails() {
		_, err = s.submit(ctx, func(ctx context.Context, tx querier) (int64, error) {
			return 0, put(ctx, tx, setVersion(s.schema))
		})
	}
	return failure(ctx, "sqlite: check", err)
}

// Tightened returns the paths of the files from which [Open] has removed permissions of group or others.
func (s *Store) Tightened() []string { return slices.Clone(s.tightened) }

// The primary result codes of SQLite for faults of the disk or the file.
const (
	codeIOError = 10
	codeFull    = 13
	codeOther   = 26 // the file is not a database
)

// primaryCode returns the primary result code of an SQLite error; 0 for another error.
func primaryCode(err error) int {
	var e *driver.Error
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code() & 0xff
}

// cause wraps an SQLite error of the disk in the error that callers can test for.
func cause(err error) error {
	switch primaryCode(err) {
	case codeFull:
		return fmt.Errorf("%w: %w", lathe.ErrStoreFull, err)
	case codeIOError:
		return fmt.Errorf("%w: %w", lathe.ErrStoreDisk, err)
	}
	return err
}

// errLocked means that another process has the file open for writing.
var errLocked = errors.New("another process has it open")

// lockCode returns the code of an error of takeLock.
func lockCode(err error) lathe.Code {
	if errors.Is(err, errLocked) {
		return lathe.CodeConflict
	}
	return lathe.CodeUnavailable
}

// opening returns err, an error of opening a file, with the next step for the user if there is one.
func opening(err error) error {
	code := primaryCode(err)
	switch {
	case code == codeOther:
		return errors.New("the file is not an SQLite database: name another file")
	case code == codeFull, errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("the disk is full: free space, or name a file on another disk (%w)", err)
	}
	var path *fs.PathError
	if !errors.As(err, &path) {
		return err
	}
	switch folder := filepath.Dir(path.Path); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no folder %s: create it, or name a file in another folder (%w)", folder, err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("this user may not write in the folder %s: change that, or name a file in another folder (%w)", folder, err)
	}
	return err
}

func ofDisk(err error) bool {
	return errors.Is(err, lathe.ErrStoreFull) || errors.Is(err, lathe.ErrStoreDisk)
}
