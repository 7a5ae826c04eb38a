//go:build !unix

package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// A lock prevents a second process from writing the same file. It is a file that only one process can create; release removes it. After a
// crash it must be removed manually.
type lock struct{ file *os.File }

func takeLock(path string) (*lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%w; if none has, remove %s", errLocked, path)
	}
	if err != nil {
		return nil, err
	}
	return &lock{f}, nil
}

func (l *lock) release() {
	if l != nil {
		_ = l.file.Close()
		_ = os.Remove(l.file.Name())
	}
}
