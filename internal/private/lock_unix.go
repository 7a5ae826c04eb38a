//go:build unix

package private

import (
	"os"
	"syscall"
)

// lockFile blocks until it has the exclusive lock of the file. Closing the file releases the lock.
func lockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX) }
