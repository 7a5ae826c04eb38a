//go:build !linux

package pgtest

import (
	"errors"
	"os"
	"syscall"
	"time"
)

type ids struct{ uid, gid int }

func owner(*syscall.SysProcAttr) *ids { return nil }

func unprivileged() (*syscall.SysProcAttr, error) {
	if os.Geteuid() <= 0 {
		return nil, errors.New("it does not run as root, nor on this system")
	}
	return nil, nil
}

func withoutSignal(a *syscall.SysProcAttr) *syscall.SysProcAttr { return a }

func killTree(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}

// Parent returns 0: this system has no /proc.
func Parent(int) int { return 0 }

// CPU returns 0: this system has no /proc.
func CPU(int) time.Duration { return 0 }
