package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/store/sqlite"
)

// executeAll executes statements on a database that no store has open.
func executeAll(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// keep writes a store with runs that have n events each, and closes it.
func keep(t *testing.T, path string, n int64, runs ...string) {
	t.Helper()
	s, err := sqlite.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range runs {
		appendEvents(t, s, run, n)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func appendEvents(t *testing.T, s *sqlite.Store, run string, n int64) {
	t.Helper()
	events := make([]event.Event, n)
	for i := range events {
		events[i] = event.Event{ID: int64(i) + 1, RunID: run, Time: time.Unix(1_800_000_000, 0), Data: &event.RunStarted{Messages: []lathe.Message{lathe.User(strings.Repeat("x", 2000))}}}
	}
	if _, err := s.Append(t.Context(), run, 0, events...); err != nil {
		t.Fatal(err)
	}
}

// has returns the runs of a store with the number of their last event.
func has(t *testing.T, s *sqlite.Store) map[string]int64 {
	t.Helper()
	rows, _, err := s.Runs(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int64{}
	for i := range rows {
		out[rows[i].RunID] = rows[i].LastID
	}
	return out
}

// A backup that is made while another goroutine appends has the whole log of each run up to one moment, and all that was
// appended before it began. Nothing is left beside it.
func TestBackupOfAStoreThatIsWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, to := filepath.Join(dir, "runs.db"), filepath.Join(dir, "backups", "b.db")
	if err := os.Mkdir(filepath.Dir(to), 0o700); err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	appendEvents(t, s, "before", 600)
	stop, begun := make(chan struct{}), make(chan struct{})
	var writing sync.WaitGroup
	first := sync.OnceFunc(func() { close(begun) })
	writing.Go(func() {
		defer first()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			run := fmt.Sprintf("during%d", i)
			for last := range int64(2) {
				if _, err := s.Append(t.Context(), run, last, event.Event{ID: last + 1, RunID: run, Data: &event.RunStarted{}}); err != nil {
					t.Error(err)
					return
				}
			}
			first()
		}
	})
	<-begun
	var steps, total int
	found, err := sqlite.Backup(t.Context(), path, to, &sqlite.BackupOptions{Progress: func(done, of int) {
		steps, total = steps+1, of
		if done > of || done == 0 {
			t.Errorf("%d of %d pages", done, of)
		}
	}})
	close(stop)
	writing.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if found.Runs < 2 || found.Events < 602 || found.Schema != sqlite.SchemaVersion() || len(found.Faults) > 0 || steps < 2 || total == 0 {
		t.Errorf("%+v after %d steps of %d pages", found, steps, total)
	}
	info, err := os.Stat(to)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 || info.Size() != found.Bytes {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := sqlite.Verify(t.Context(), to); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Dir(to)); err != nil || len(left) != 1 {
		t.Errorf("beside the backup: %v, %v", left, err)
	}
	if n := count(t, open(t, to), "before"); n != 600 {
		t.Errorf("%d events of the run from before, want 600", n)
	}
}

// A backup replaces no file, and one that fails leaves none.
func TestBackupRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, to := filepath.Join(dir, "runs.db"), filepath.Join(dir, "b.db")
	keep(t, path, 1, "r")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	other, newer := filepath.Join(dir, "other.db"), filepath.Join(dir, "newer.db")
	executeAll(t, other, "CREATE TABLE a (b)")
	keep(t, newer, 1, "r")
	executeAll(t, newer, "PRAGMA user_version = 99")
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("no database\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, path, there string
		ctx               context.Context
		code              lathe.Code
		want              string
	}{
		{"a file that exists", path, to, t.Context(), lathe.CodeConflict, "exists: name a new file"},
		{"another backup", path, to + ".partial", t.Context(), lathe.CodeConflict, "another process writes it, or was interrupted"},
		{"no store", filepath.Join(dir, "none.db"), "", t.Context(), lathe.CodeNotFound, "there is no store"},
		{"another database", other, "", t.Context(), lathe.CodeUnavailable, "no store of runs"},
		{"a newer schema", newer, "", t.Context(), lathe.CodeUnavailable, "newer version (schema 99, known is"},
		{"no database", text, "", t.Context(), lathe.CodeUnavailable, "not an SQLite database"},
		{"a context that has ended", path, "", ended, lathe.CodeCancelled, "canceled"},
	} {
		if tc.there != "" {
			if err := os.WriteFile(tc.there, []byte("kept"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := sqlite.Backup(tc.ctx, tc.path, to, nil)
		if lathe.CodeOf(err) != tc.code || err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s, %q", tc.name, err, tc.code, tc.want)
		}
		for _, name := range []string{to, to + ".partial"} {
			b, err := os.ReadFile(name)
			if name == tc.there && string(b) != "kept" || name != tc.there && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: %s has %q, %v", tc.name, name, b, err)
			}
		}
		if tc.there != "" {
			if err := os.Remove(tc.there); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A restored store has the runs of the backup; the one that was there is kept with its own.
func TestRestore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, backup := filepath.Join(dir, "runs.db"), filepath.Join(dir, "b.db")
	keep(t, path, 3, "old")
	if _, err := sqlite.Backup(t.Context(), path, backup, nil); err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	appendEvents(t, s, "new", 2)
	if _, _, err := sqlite.Restore(t.Context(), path, backup, nil); lathe.CodeOf(err) != lathe.CodeConflict || !strings.Contains(err.Error(), "another process has it open") {
		t.Fatalf("a store that is open: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	kept, found, err := sqlite.Restore(t.Context(), path, backup, nil)
	if err != nil || kept != path+".before-restore" || found.Runs != 1 || found.Events != 3 {
		t.Fatalf("%s, %+v, %v", kept, found, err)
	}
	restored := open(t, path)
	if got := has(t, restored); !maps.Equal(got, map[string]int64{"old": 3}) {
		t.Errorf("the restored store has %v", got)
	}
	if found, err := sqlite.Verify(t.Context(), kept); err != nil || found.Runs != 2 {
		t.Errorf("the kept store: %+v, %v", found, err)
	}
	if beside, err := filepath.Glob(kept + "?*"); err != nil || len(beside) > 0 {
		t.Errorf("beside the kept store: %v, %v", beside, err)
	}
	appendEvents(t, restored, "later", 1)
	if err := restored.Close(); err != nil {
		t.Fatal(err)
	}
	if got := has(t, open(t, kept)); !maps.Equal(got, map[string]int64{"old": 3, "new": 2}) {
		t.Errorf("the kept store has %v", got)
	}
	if _, _, err := sqlite.Restore(t.Context(), path, backup, nil); lathe.CodeOf(err) != lathe.CodeConflict || !strings.Contains(err.Error(), "move it away") {
		t.Errorf("over the store of an earlier restore: %v", err)
	}
	if count(t, open(t, path), "later") != 1 {
		t.Error("a restore that was refused changed the store")
	}
}

// A symbolic link is another name of the store: the lock is that of its target, which a restore replaces.
func TestRestoreThroughASymbolicLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"real", "links"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	path, backup := filepath.Join(dir, "real", "runs.db"), filepath.Join(dir, "b.db")
	link, further := filepath.Join(dir, "links", "runs.db"), filepath.Join(dir, "further.db")
	for name, target := range map[string]string{link: filepath.Join("..", "real", "runs.db"), further: link} {
		if err := os.Symlink(target, name); err != nil {
			t.Skip("no symbolic links:", err)
		}
	}
	names := []string{path, link, further}
	keep(t, backup, 2, "s")
	for _, opened := range []string{further, link, path} { // the first makes the file
		s := open(t, opened)
		for _, name := range names {
			if _, _, err := sqlite.Restore(t.Context(), name, backup, nil); lathe.CodeOf(err) != lathe.CodeConflict || !strings.Contains(err.Error(), "another process has it open") {
				t.Errorf("a restore of %s while %s is open: %v", name, opened, err)
			}
			if _, err := sqlite.Open(name, nil); lathe.CodeOf(err) != lathe.CodeConflict {
				t.Errorf("%s is opened while %s is open: %v", name, opened, err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	kept, _, err := sqlite.Restore(t.Context(), further, backup, nil)
	if err != nil || filepath.Base(filepath.Dir(kept)) != "real" {
		t.Fatalf("%q, %v", kept, err)
	}
	for _, name := range []string{link, further} {
		if info, err := os.Lstat(name); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("%s is no link any more: %v, %v", name, info, err)
		}
	}
	if count(t, open(t, path), "s") != 2 {
		t.Error("the target does not have the runs of the backup")
	}
	loop := filepath.Join(dir, "loop.db")
	if err := os.Symlink(loop, loop); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Open(loop, nil); lathe.CodeOf(err) != lathe.CodeInvalidRequest || !strings.Contains(err.Error(), "symbolic links") {
		t.Errorf("a link to itself: %v", err)
	}
}

// A restore refuses what it could not serve, and then changes nothing. Where there is no store it makes one.
func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, backup := filepath.Join(dir, "runs.db"), filepath.Join(dir, "b.db")
	keep(t, path, 1, "r")
	keep(t, backup, 2, "s")
	for _, tc := range []struct{ name, harm, want string }{
		{"a newer schema", "PRAGMA user_version = 99", "newer version (schema 99, known is "},
		{"another database", "PRAGMA user_version = 0", "no store of runs"},
		{"a log with a gap", "DELETE FROM event WHERE id = 1", "the log of s has 1 events, its last one is 2 and its entry says 2"},
	} {
		damaged := filepath.Join(t.TempDir(), "d.db")
		if _, err := sqlite.Backup(t.Context(), backup, damaged, nil); err != nil {
			t.Fatal(err)
		}
		executeAll(t, damaged, tc.harm)
		if _, _, err := sqlite.Restore(t.Context(), path, damaged, nil); lathe.CodeOf(err) != lathe.CodeUnavailable || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	if _, _, err := sqlite.Restore(t.Context(), path, path, nil); lathe.CodeOf(err) != lathe.CodeInvalidRequest {
		t.Errorf("the store itself: %v", err)
	}
	if _, _, err := sqlite.Restore(t.Context(), path, filepath.Join(dir, "none"), nil); lathe.CodeOf(err) != lathe.CodeNotFound {
		t.Errorf("no backup: %v", err)
	}
	if count(t, open(t, path), "r") != 1 {
		t.Error("the store was changed")
	}
	fresh := filepath.Join(dir, "fresh.db")
	if kept, _, err := sqlite.Restore(t.Context(), fresh, backup, nil); err != nil || kept != "" {
		t.Fatalf("%q, %v", kept, err)
	}
	if count(t, open(t, fresh), "s") != 2 {
		t.Error("the new store does not have the runs of the backup")
	}
}

// Verify names each damage, and finds none in a store that is open.
func TestVerify(t *testing.T) {
	testdata.WithoutRace(t)
	t.Parallel()
	for _, tc := range []struct {
		harm string
		want []string
	}{
		{"SELECT 1", nil},
		{"DELETE FROM event WHERE run_id = 'a' AND id = 3", []string{"the log of a has 2 events, its last one is 2 and its entry says 3"}},
		{"DELETE FROM run WHERE run_id = 'a'", []string{"there are 3 events of a, which has no entry"}},
		{"UPDATE event SET body = '{' WHERE id = 2", []string{"event 2 of a is not JSON", "event 2 of b is not JSON"}},
		{"PRAGMA writable_schema = 1; DELETE FROM sqlite_master WHERE name = 'run_started'", []string{"never used"}},
		{"CREATE TRIGGER evil AFTER INSERT ON run BEGIN DELETE FROM run; END", []string{"the trigger evil is no part of a store"}},
		{"CREATE VIEW seen AS SELECT * FROM run", []string{"the view seen is no part of a store"}},
		{"CREATE TABLE more (a)", []string{"the table more is no part of a store"}},
		{"DROP INDEX run_started", []string{"the index run_started is missing"}},
		{"ALTER TABLE run ADD COLUMN more TEXT", []string{"the table run is not that of a store"}},
	} {
		path := filepath.Join(t.TempDir(), "runs.db")
		keep(t, path, 3, "a", "b")
		executeAll(t, path, tc.harm)
		found, err := sqlite.Verify(t.Context(), path)
		if err != nil {
			t.Errorf("%s: %v", tc.harm, err)
			continue
		}
		if len(tc.want) == 0 && (len(found.Faults) > 0 || found.Runs != 2 || found.Events != 6) {
			t.Errorf("%s: %+v", tc.harm, found)
		}
		for i, want := range tc.want {
			if len(found.Faults) <= i || !strings.Contains(found.Faults[i], want) {
				t.Errorf("%s: %q, want %q", tc.harm, found.Faults, tc.want)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "runs.db")
	s := open(t, path)
	appendEvents(t, s, "r", 2)
	for _, suffix := range []string{"-wal", "-shm"} {
		if info, err := os.Stat(path + suffix); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", suffix, info, err)
		}
	}
	if found, err := sqlite.Verify(t.Context(), path); err != nil || found.Events != 2 || len(found.Faults) > 0 {
		t.Errorf("a store that is open: %+v, %v", found, err)
	}
}
