//go:build !unix

package mcptool

import (
	"os"
	"syscall"
)

func ownGroup() *syscall.SysProcAttr { return nil }

// There are no process groups, so only the child is killed.
func askGroup(int) {}

func killGroup(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}
