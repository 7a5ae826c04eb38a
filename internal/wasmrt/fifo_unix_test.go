//go:build unix

package wasmrt_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/lathe-run/lathe/internal/wasmrt"
)

// Opening a pipe without a writer would block the host for ever.
func TestT29Pipe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close() //nolint:errcheck // it is read only
	i := start(t, compile(t, runtime(t, nil), fileGuest(), nil),
		&wasmrt.InstanceOptions{Grants: wasmrt.Grants{Files: []wasmrt.FileGrant{{Guest: "/", Root: root}}}})
	if err := i.Memory().Write(1024, []byte("pipe")); err != nil {
		t.Fatal(err)
	}
	if res, err := i.Invoke(t.Context(), "read", 4); err != nil || res[0] != acces {
		t.Errorf("got %v %v, want errno %d", res, err, acces)
	}
}
