//go:build !unix

package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// lockPatience is how long a process waits for another one's lines.
const lockPatience = 10 * time.Second

// A lock lets one process write at a time: it is a file that is there while somebody writes. After a
// crash it has to be removed by hand.
type lock struct{ path string }

func openLock(path string) (*lock, error) { return &lock{path}, nil }

func (l *lock) take() error {
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		f, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			return f.Close()
		}
		if !errors.Is(err, fs.ErrExist) || time.Since(began) > lockPatience {
			return fmt.Errorf("another process writes; if none does, remove %s: %w", l.path, err)
		}
	}
}

func (l *lock) give() { _ = os.Remove(l.path) }

func (l *lock) close() error { return nil }
