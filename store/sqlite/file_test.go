package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

func started(run string) event.Event {
	return event.Event{ID: 1, RunID: run, Data: &event.RunStarted{}}
}

func modes(t *testing.T, path string) string {
	t.Helper()
	var out []string
	for _, suffix := range suffixes {
		info, err := os.Stat(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%o", info.Mode().Perm()))
	}
	return strings.Join(out, " ")
}

// The files of a store are its owner's alone: new ones, and those that were not.
func TestFilesOfAStoreArePrivate(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes here")
	}
	path := filepath.Join(t.TempDir(), "runs.db")
	open := func() *Store {
		s, err := Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Append(t.Context(), "r", 0, started("r")); err != nil && lathe.CodeOf(err) != lathe.CodeConflict && !errors.Is(err, lathe.ErrConflict) {
			t.Fatal(err)
		}
		if got := modes(t, path); got != "600 600 600" {
			t.Errorf("modes %s", got)
		}
		return s
	}
	s := open()
	if got := s.Tightened(); len(got) > 0 {
		t.Errorf("a new file was tightened: %v", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	s = open()
	if got := s.Tightened(); len(got) != 1 || got[0] != path {
		t.Errorf("tightened %v", got)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A reader of a file that others may read does not make a log that they may read.
func TestReadOnlyOpenMakesPrivateLogs(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes here")
	}
	path := filepath.Join(t.TempDir(), "runs.db")
	s, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), os.Chmod(path, 0o644)); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(path, &Options{ReadOnly: true}); err != nil {
		t.Fatal(err)
	}
	if got := modes(t, path); got != "644 600 600" {
		t.Errorf("modes %s, want those of the log and its index 600", got)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A store of which a file is gone or another takes nothing more: it would be lost.
func TestStoreNoticesThatItsFilesAreGone(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("open files are not removed here")
	}
	for name, harm := range map[string]func(path string) error{
		"the file is removed":   os.Remove,
		"its log is removed":    func(path string) error { return os.Remove(path + "-wal") },
		"its lock is removed":   func(path string) error { return os.Remove(path + ".lock") },
		"its folder is removed": func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
		"the file is replaced": func(path string) error {
			return errors.Join(os.Rename(path, path+".old"), os.WriteFile(path, nil, 0o600))
		},
		"its folder is elsewhere": func(path string) error { return os.Rename(filepath.Dir(path), filepath.Dir(path)+".old") },
	} {
		path := filepath.Join(t.TempDir(), "kept", "runs.db")
		if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		s, err := Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Append(t.Context(), "before", 0, started("before")); err != nil {
			t.Fatal(err)
		}
		if err := s.Check(t.Context()); err != nil {
			t.Errorf("%s: before that: %v", name, err)
		}
		if err := harm(path); err != nil {
			t.Fatal(err)
		}
		_, err = s.Append(t.Context(), "after", 0, started("after"))
		for what, err := range map[string]error{"append": err, "check": s.Check(t.Context())} {
			if !errors.Is(err, lathe.ErrStoreReplaced) || lathe.CodeOf(err) != lathe.CodeUnavailable {
				t.Errorf("%s: %s: %v", name, what, err)
			}
		}
		_ = s.Close()
	}
}

// A store whose last write failed is written again to learn whether it can be.
func TestCheckTriesAStoreThatFailed(t *testing.T) {
	t.Parallel()
	s, err := Open(filepath.Join(t.TempDir(), "runs.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.write.ExecContext(t.Context(), "PRAGMA max_page_count = 1"); err != nil { // as if the disk were full
		t.Fatal(err)
	}
	big := started("r")
	big.Data.(*event.RunStarted).Messages = []lathe.Message{lathe.User(strings.Repeat("x", 1<<20))}
	if _, err := s.Append(t.Context(), "r", 0, big); !errors.Is(err, lathe.ErrStoreFull) {
		t.Fatalf("a full disk: %v", err)
	}
	if !s.files.fails() {
		t.Error("the failure is not known")
	}
	if err := s.Check(t.Context()); err != nil {
		t.Errorf("where there is room for a little: %v", err)
	}
	if s.files.fails() {
		t.Error("the failure is remembered after a write")
	}
}
