//go:build !unix

package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// lockPatience is how long a process waits while another process writes.
const lockPatience = 10 * time.Second

// removalPatience is how long a process repeats an attempt that ends with ErrPermission: Windows refuses to create a file until the last
// handle of a removed file of that name is closed. Without the right to create files, each attempt ends so.
const removalPatience = time.Second

// A lock allows one process at a time to write: the lock file exists during a write. After a crash an operator must remove the file.
type lock struct{ path string }

func openLock(path string) (*lock, error) { return &lock{path}, nil }

func (l *lock) acquire() error {
	began := time.Now()
	permitted := began // time of the last attempt that did not end with ErrPermission
	for ; ; time.Sleep(time.Millisecond) {
		f, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			return f.Close()
		}
		switch {
		case errors.Is(err, fs.ErrExist):
			permitted = time.Now()
			if time.Since(began) >= lockPatience {
				return fmt.Errorf("another process writes; if none does, remove %s: %w", l.path, err)
			}
		case !errors.Is(err, fs.ErrPermission) || time.Since(permitted) >= removalPatience:
			return fmt.Errorf("the lock file cannot be created: %w", err)
		}
	}
}

func (l *lock) give() { _ = os.Remove(l.path) }

func (l *lock) close() error { return nil }
