// Package private reads and replaces small files that only their owner may access. A file is read and replaced as a whole; processes that
// share it can lock it.
package private

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/lathe-run/lathe/internal/regular"
)

// A File is a small private file. Its fields must not change after the first use.
type File struct {
	Path string
	Max  int  // largest size in bytes
	Open bool // others may read the file, but not write it
}

// Read returns the content of the file, or nil if it does not exist. It returns an error if the file is larger than Max, or if others than
// the owner may read it (unless Open) or write it. On Windows, which has no such modes, the access rights are not checked.
func (f *File) Read() ([]byte, error) {
	file, err := regular.Open(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	others, do := fs.FileMode(0o077), "read"
	if f.Open {
		others, do = 0o022, "written"
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&others != 0 {
		return nil, fmt.Errorf("%s may be %s by others than its owner: chmod 600 it", f.Path, do)
	}
	b, err := io.ReadAll(io.LimitReader(file, int64(f.Max)+1))
	switch {
	case err != nil:
		return nil, err
	case len(b) > f.Max:
		return nil, fmt.Errorf("%s is larger than %d bytes", f.Path, f.Max)
	}
	return b, nil
}

// Replace replaces the content of the file by b, atomically for readers. After an error,
// and after a crash, the file has its previous content. Replace sets its mode to 0600.
func (f *File) Replace(b []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(f.Path), ".private-*") // 0600
	if err != nil {
		return f.named(err)
	}
	_, err = tmp.Write(b)
	if err == nil {
		err = tmp.Sync()
	}
	if closed := tmp.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(tmp.Name(), f.Path)
	}
	if err != nil {
		_ = os.Remove(tmp.Name()) // err is more useful than an error of Remove
		return f.named(err)
	}
	return nil
}

// named returns err as an error of f.Path: the text would otherwise name the temporary file.
func (f *File) named(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		err = path.Err
	case errors.As(err, &link):
		err = link.Err
	}
	return &fs.PathError{Op: "write", Path: f.Path, Err: err}
}

// Lock blocks until no other process or caller has the lock called name, and returns a function that releases it. The lock also ends with
// the process. It is a separate file, Path followed by name and ".lock", because Replace renames another file over Path; its folder is
// created if necessary. Where files have no locks, Lock returns at once.
func (f *File) Lock(name string) (unlock func(), err error) {
	path := f.Path + name + ".lock"
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lockFile(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() { _ = file.Close() }, nil // closing releases the lock
}
