//go:build unix

package private

import (
	"os"
	"syscall"
)

// lockFile waits for the file's lock, which closing it gives up.
func lockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX) }
