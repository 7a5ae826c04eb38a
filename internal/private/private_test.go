package private

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lathe-run/lathe/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestFilesAreTheirOwnersAlone(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		mode    os.FileMode
		open    bool
		refused string
	}{
		{0o600, false, ""}, {0o400, false, ""}, {0o640, false, "may be read by others"}, {0o604, false, "may be read by others"}, {0o620, false, "may be read by others"},
		{0o600, true, ""}, {0o644, true, ""}, {0o664, true, "may be written by others"}, {0o602, true, "may be written by others"},
	} {
		f := &File{Path: filepath.Join(t.TempDir(), "file"), Max: 10, Open: tc.open}
		if err := os.WriteFile(f.Path, []byte("kept"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(f.Path, tc.mode); err != nil {
			t.Fatal(err)
		}
		b, err := f.Read()
		if tc.refused == "" && (string(b) != "kept" || err != nil) || tc.refused != "" && (b != nil || err == nil || !strings.Contains(err.Error(), tc.refused)) {
			t.Errorf("%o, open %v: %q, %v", tc.mode, tc.open, b, err)
		}
	}
}

func TestFilesAreReplacedWhole(t *testing.T) {
	t.Parallel()
	f := &File{Path: filepath.Join(t.TempDir(), "file"), Max: 4}
	if b, err := f.Read(); b != nil || err != nil {
		t.Errorf("a file that is not there: %q, %v", b, err)
	}
	for _, text := range []string{"long", "own"} {
		if err := f.Replace([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if b, err := f.Read(); string(b) != text || err != nil {
			t.Errorf("got %q, %v", b, err)
		}
	}
	if err := f.Replace([]byte("longer")); err != nil {
		t.Fatal(err)
	}
	if b, err := f.Read(); b != nil || err == nil {
		t.Errorf("over the bound: %q, %v", b, err)
	}
	info, err := os.Stat(f.Path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	left, err := os.ReadDir(filepath.Dir(f.Path))
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestLocksExclude(t *testing.T) {
	t.Parallel()
	f := &File{Path: filepath.Join(t.TempDir(), "sub", "file")}
	unlock, err := f.Lock("")
	if err != nil {
		t.Fatal(err)
	}
	other, err := f.Lock(".name") // another lock
	if err != nil {
		t.Fatal(err)
	}
	other()
	var over atomic.Bool
	got := make(chan bool)
	go func() {
		again, err := f.Lock("")
		if err != nil {
			t.Error(err)
			close(got)
			return
		}
		defer again()
		got <- over.Load()
	}()
	over.Store(true)
	unlock()
	if over, ok := <-got; ok && !over {
		t.Error("two held the lock")
	}
}
