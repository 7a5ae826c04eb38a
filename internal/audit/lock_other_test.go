//go:build !unix

package audit

import (
	"path/filepath"
	"strings"
	"testing"
)

// A lock file that cannot be created is not the fault of another process.
func TestLockThatCannotBeCreated(t *testing.T) {
	t.Parallel()
	l, err := openLock(filepath.Join(t.TempDir(), "absent", "lock"))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.acquire(); err == nil || strings.Contains(err.Error(), "another process") {
		t.Errorf("error %v", err)
	}
}
