//go:build !linux

package pgtest

import (
	"errors"
	"os"
	"syscall"
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
