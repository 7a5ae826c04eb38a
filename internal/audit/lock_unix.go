//go:build unix

package audit

import (
	"errors"
	"os"
	"syscall"
)

// A lock allows one process at a time to write. The operating system releases it when the process ends for any reason.
type lock struct{ file *os.File }

func openLock(path string) (*lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return &lock{f}, nil
}

func (l *lock) acquire() error {
	for {
		err := syscall.Flock(int(l.file.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func (l *lock) give() { _ = syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN) }

func (l *lock) close() error { return l.file.Close() }
