//go:build unix

package sqlite

import (
	"path/filepath"
	"syscall"
	"testing"
)

// A closed store is unlocked even if a child process that was being started has a copy of the descriptor.
func TestCloseUnlocksCopiedDescriptor(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	s, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	inherited, err := syscall.Dup(int(s.lock.file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(inherited) })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(path, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
