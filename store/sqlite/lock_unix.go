//go:build unix

package sqlite

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// A lock prevents a second process from writing the same file. The operating system releases it when the process ends.
type lock struct{ file *os.File }

func takeLock(path string) (*lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w (its lock is %s)", errLocked, path)
		}
		return nil, err
	}
	return &lock{f}, nil
}

func (l *lock) release() {
	if l != nil {
		// A child process has a copy of the descriptor between fork and exec: to close this one alone would leave the file locked.
		_ = syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN)
		_ = l.file.Close()
	}
}
