//go:build unix

package regular

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestOnlyRegularFilesAreOpened(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe, file, link, toPipe := filepath.Join(dir, "pipe"), filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "to-pipe")
	for _, err := range []error{syscall.Mkfifo(pipe, 0o600), os.WriteFile(file, []byte("text"), 0o600), os.Symlink(file, link), os.Symlink(pipe, toPipe)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{pipe: "not a regular file", toPipe: "not a regular file", os.DevNull: "not a regular file", dir: "is a directory", filepath.Join(dir, "none"): "no such file"} {
		_, err := Read(path, 100)
		var of *fs.PathError
		if !errors.As(err, &of) || of.Path != path || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, path := range []string{file, link} {
		if b, err := Read(path, 100); string(b) != "text" || err != nil {
			t.Errorf("%s: %q, %v", path, b, err)
		}
		if b, err := Read(path, 2); string(b) != "tex" || err != nil {
			t.Errorf("%s: %q, %v", path, b, err)
		}
	}
}
