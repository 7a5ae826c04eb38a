//go:build !unix

package sqlite

import (
	"fmt"
	"os"
)

// A lock keeps a second process from writing the same file: it is a file that only one can have
// open, which goes when it is closed. After a crash it has to be removed by hand.
type lock struct{ file *os.File }

func takeLock(path string) (*lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("another process has it open; if none has, remove %s: %w", path, err)
	}
	return &lock{f}, nil
}

func (l *lock) release() {
	if l != nil {
		_ = l.file.Close()
		_ = os.Remove(l.file.Name())
	}
}
