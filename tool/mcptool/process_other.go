//go:build !unix

package mcptool

import (
	"os"
	"syscall"
)

func ownGroup() *syscall.SysProcAttr { return nil }

// Without process groups the child alone is ended.
func askGroup(int) {}

func killGroup(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}
