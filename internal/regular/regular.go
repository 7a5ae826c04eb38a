// Package regular opens the files that a configuration names. A pipe or a device is an error: opening or reading it could block for ever,
// and signals do not end a process that has not begun to serve.
package regular

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// errNotRegular is the cause of an [fs.PathError].
var errNotRegular = errors.New("it is not a regular file")

// Open opens a regular file, or a link to one, for reading. It never blocks. The error is an [fs.PathError].
func Open(path string) (*os.File, error) {
	info, err := os.Stat(path) // before the open, because opening a device can have an effect
	if cause := (*fs.PathError)(nil); errors.As(err, &cause) {
		cause.Op = "open"
	}
	if err == nil {
		err = check(path, info)
	}
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // non-blocking: the file could have been replaced by a pipe
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = check(path, info)
	}
	if err != nil {
		_ = f.Close() // nothing was read or written
		return nil, err
	}
	return f, nil
}

func check(path string, info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return &fs.PathError{Op: "read", Path: path, Err: syscall.EISDIR}
	case !info.Mode().IsRegular():
		return &fs.PathError{Op: "open", Path: path, Err: errNotRegular}
	}
	return nil
}

// Read returns the content of a regular file, and at most limit+1 bytes of it: the caller reports an error if the result is longer than
// limit.
func Read(path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit+1))
}
