// Package private keeps small files that are their owner's alone: each is read as a whole, replaced as a
// whole, and may be shared by several processes that lock it.
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

// A File is one such file. Its fields are not changed after the first use.
type File struct {
	Path string
	Max  int  // bytes that are read
	Open bool // others may read it, and not write it
}

// Read returns the content of the file, or nil if it does not exist. A file that is larger than Max, or that others than
// its owner may read or write, is not read: the error says so. (Where files have no such modes, their folder counts.)
func (f *File) Read() ([]byte, error) {
	file, err := regular.Open(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
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
		_ = os.Remove(tmp.Name()) // the error of the file says more
		return f.named(err)
	}
	return nil
}

// named returns an error with the path of the file in place of that of a temporary one.
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

// Lock waits until no other holds the lock of that name, and holds it until unlock is called or the process ends. It
// stands beside the file, in whose place another may be put; its folder is made if need be. Where files have no
// locks, it does not wait.
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
	return func() { _ = file.Close() }, nil // closing gives the lock up
}
