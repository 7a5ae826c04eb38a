//go:build unix

package server_test

import (
	"syscall"
	"time"
)

// cpuTime returns the CPU time that this process has used, of the user and of the system. It does not count the time of other
// processes, as the clock does.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
