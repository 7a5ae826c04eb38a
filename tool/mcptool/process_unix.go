//go:build unix

package mcptool

import "syscall"

func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// askGroup and killGroup signal every process of the group. They ignore the error of a group without processes.
func askGroup(pid int)  { _ = syscall.Kill(-pid, syscall.SIGTERM) }
func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }
