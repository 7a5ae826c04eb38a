package sqlite_test

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/leaktest"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/testkit/storetest"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/store/sqlite"
)

func TestMain(m *testing.M) {
	if path := os.Getenv("LATHE_TEST_WRITE"); path != "" {
		write(path)
		return
	}
	leaktest.Main(m)
}

func open(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Test(t, func() store.Store { return open(t, filepath.Join(t.TempDir(), "runs.db")) })
}

func TestIndex(t *testing.T) {
	t.Parallel()
	storetest.TestIndex(t, func() store.RunIndex { return open(t, filepath.Join(t.TempDir(), "runs.db")) })
}

func TestSignals(t *testing.T) {
	t.Parallel()
	storetest.TestSignals(t, func() storetest.SignalIndex { return open(t, filepath.Join(t.TempDir(), "runs.db")) })
}

func TestRetention(t *testing.T) {
	t.Parallel()
	storetest.TestRetention(t, func() store.Retainer { return open(t, filepath.Join(t.TempDir(), "runs.db")) })
}

func TestCompaction(t *testing.T) {
	t.Parallel()
	storetest.TestCompaction(t, func() store.Compactor { return open(t, filepath.Join(t.TempDir(), "runs.db")) })
}

func TestRequests(t *testing.T) {
	t.Parallel()
	storetest.TestRequests(t, func() storetest.RequestRetainer { return open(t, filepath.Join(t.TempDir(), "runs.db")) })
	storetest.TestSecrets(t, func() store.SecretKeeper { return open(t, filepath.Join(t.TempDir(), "runs.db")) })
	storetest.TestValues(t, func() store.ValueKeeper { return open(t, filepath.Join(t.TempDir(), "runs.db")) })
}

func TestLedger(t *testing.T) {
	t.Parallel()
	storetest.TestLedger(t, func() store.Ledger { return open(t, filepath.Join(t.TempDir(), "runs.db")) })
}

func started(runID, text string) event.Event {
	return event.Event{ID: 1, RunID: runID, RequestID: "req", SessionID: "s1", Time: time.Now(), Data: &event.RunStarted{Principal: "ann", Messages: []lathe.Message{lathe.User(text)}}}
}

func paused(runID string, id int64) event.Event {
	return event.Event{ID: id, RunID: runID, RequestID: "req", SessionID: "s1", Time: time.Now(), Data: &event.RunPaused{Pending: []string{strings.Repeat("c", 200)}}}
}

func count(t *testing.T, s store.Store, runID string) int {
	t.Helper()
	n := 0
	for _, err := range s.Read(t.Context(), runID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

func TestKeepsAcrossOpens(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	s := open(t, path)
	if _, err := s.Append(t.Context(), "run_1", 0, started("run_1", "hi"), paused("run_1", 2)); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Open(path, nil); lathe.CodeOf(err) != lathe.CodeConflict || !strings.Contains(err.Error(), "another process") {
		t.Errorf("a second writer: %v", err)
	}
	beside, err := sqlite.Open(path, &sqlite.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if n := count(t, beside, "run_1"); n != 2 {
		t.Errorf("%d events beside the writer", n)
	}
	if _, err := beside.Append(t.Context(), "run_2", 0, started("run_2", "hi")); lathe.CodeOf(err) != lathe.CodeInvalidRequest {
		t.Errorf("a reader writes: %v", err)
	}
	if err := beside.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(t.Context(), "run_1", 2, paused("run_1", 3)); lathe.CodeOf(err) != lathe.CodeUnavailable {
		t.Errorf("a closed store: %v", err)
	}
	s = open(t, path)
	if end, err := s.Append(t.Context(), "run_1", 2, paused("run_1", 3)); err != nil || end != 3 || count(t, s, "run_1") != 3 {
		t.Errorf("%d, %v", end, err)
	}
	if rows, _, err := s.Runs(t.Context(), nil); err != nil || len(rows) != 1 || rows[0].LastID != 3 || rows[0].Principal != "ann" {
		t.Errorf("%+v, %v", rows, err)
	}
}

func TestRefusesStrangeFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	make := func(name, statement string) string {
		path := filepath.Join(dir, name)
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		return path
	}
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, bytes.Repeat([]byte("no database "), 100), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		make("newer", "PRAGMA user_version = 99"):    "newer version",
		make("other", "CREATE TABLE recipes (name)"): "something else",
		text: "not an SQLite database",
		filepath.Join(dir, "there is no folder", "db"): "no such file",
	} {
		if s, err := sqlite.Open(path, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want %q", filepath.Base(path), s, err, want)
		}
	}
	if _, err := sqlite.Open(filepath.Join(dir, "none"), &sqlite.Options{ReadOnly: true}); err == nil {
		t.Error("a file that is not there was opened for reading")
	}
}

// Nothing of what was deleted is left in the files.
func TestDeletesForGood(t *testing.T) {
	t.Parallel()
	testdata.WithoutRace(t)
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "runs.db"))
	const secret = "canary-90f1"
	for i := range 30 {
		id := fmt.Sprintf("run_%d", i)
		if _, err := s.Append(t.Context(), id, 0, started(id, strings.Repeat(secret, 100)), paused(id, 2)); err != nil {
			t.Fatal(err)
		}
	}
	holds := func() (n int) {
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(files) == 0 {
			t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			n += bytes.Count(b, []byte(secret))
		}
		return n
	}
	if holds() == 0 {
		t.Fatal("the canary is not where it is looked for")
	}
	if err := s.Delete(t.Context(), "run_0"); err != nil || count(t, s, "run_1") != 2 {
		t.Fatal(err)
	}
	if err := s.DeletePrincipal(t.Context(), "bob"); err != nil || count(t, s, "run_1") != 2 {
		t.Fatal(err)
	}
	if err := s.DeleteSession(t.Context(), "s1"); err != nil {
		t.Fatal(err)
	}
	if n := holds(); n != 0 {
		t.Errorf("%d canaries are left", n)
	}
	if rows, _, err := s.Runs(t.Context(), nil); err != nil || len(rows) != 0 {
		t.Errorf("%d runs are left, %v", len(rows), err)
	}
}

func TestDeleteBefore(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "runs.db"))
	for _, id := range []string{"run_open", "run_ended"} {
		if _, err := s.Append(t.Context(), id, 0, started(id, "x")); err != nil {
			t.Fatal(err)
		}
	}
	end := event.Event{ID: 2, RunID: "run_ended", Time: time.Now(), Data: &event.RunFinished{Reason: lathe.ReasonAnswered, Status: "completed"}}
	if _, err := s.Append(t.Context(), "run_ended", 1, end); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteBefore(t.Context(), time.Now().Add(-time.Hour)); err != nil || count(t, s, "run_ended") != 2 {
		t.Errorf("too early: %v", err)
	}
	if err := s.DeleteBefore(t.Context(), time.Now().Add(time.Hour)); err != nil {
		t.Error(err)
	}
	if rows, _, err := s.Runs(t.Context(), nil); err != nil || len(rows) != 1 || rows[0].RunID != "run_open" {
		t.Errorf("%+v, %v", rows, err)
	}
}

// Many runs append at once, and each gets what it wrote.
func TestCommitsTogether(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "runs.db"))
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			id := fmt.Sprintf("run_%d", i)
			if _, err := s.Append(t.Context(), id, 0, started(id, "x")); err != nil {
				t.Error(err)
			}
			for n := int64(1); n < 10; n++ {
				if _, err := s.Append(t.Context(), id, n+1, paused(id, n+2)); lathe.CodeOf(err) != lathe.CodeConflict {
					t.Errorf("a gap: %v", err)
				}
				if _, err := s.Append(t.Context(), id, n, paused(id, n+1)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for i := range 32 {
		if n := count(t, s, fmt.Sprintf("run_%d", i)); n != 10 {
			t.Errorf("run %d has %d events", i, n)
		}
	}
}

// write appends to runs until it is killed, and says each append that was acknowledged.
func write(path string) {
	s, err := sqlite.Open(path, nil)
	if err != nil {
		fmt.Println("error", err)
		return
	}
	var mu sync.Mutex
	for i := range 8 {
		go func() {
			id := fmt.Sprintf("run_%d_%d", os.Getpid(), i)
			last, err := s.Append(context.Background(), id, 0, started(id, "x"))
			for err == nil {
				mu.Lock()
				fmt.Println(id, last)
				mu.Unlock()
				last, err = s.Append(context.Background(), id, last, paused(id, last+1))
			}
		}()
	}
	select {}
}

// A process that writes is killed repeatedly: every acknowledged event is stored, and no log has a gap.
func TestKilledWhileWriting(t *testing.T) {
	testdata.WithoutRace(t)
	t.Parallel()
	testdata.NeedLong(t)
	path := filepath.Join(t.TempDir(), "runs.db")
	acknowledged := map[string]int64{}
	for round := range 8 {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), "LATHE_TEST_WRITE="+path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		sc := bufio.NewScanner(out)
		for n := 0; sc.Scan(); n++ {
			id, last, _ := strings.Cut(sc.Text(), " ")
			if acknowledged[id], err = strconv.ParseInt(last, 10, 64); err != nil {
				t.Errorf("round %d: %s", round, sc.Text())
			}
			if n == 100+37*round {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait() // it was killed
	}
	s := open(t, path)
	if len(acknowledged) < 8 {
		t.Fatalf("only %d runs were written", len(acknowledged))
	}
	for id, last := range acknowledged {
		n := int64(0)
		for e, err := range s.Read(t.Context(), id, 0) {
			if n++; err != nil || e.ID != n {
				t.Fatalf("%s: event %d is %d, %v", id, n, e.ID, err)
			}
		}
		if n < last {
			t.Errorf("%s: %d events, %d were acknowledged", id, n, last)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	s, err := sqlite.Open(filepath.Join(b.TempDir(), "runs.db"), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	for _, writers := range []int{1, 16, 128} {
		b.Run(strconv.Itoa(writers), func(b *testing.B) {
			var wg sync.WaitGroup
			for w := range writers {
				wg.Go(func() {
					id := fmt.Sprintf("run_%d_%d_%d", writers, b.N, w)
					last, err := s.Append(b.Context(), id, 0, started(id, "x"))
					for n := 0; n < b.N/writers && err == nil; n++ {
						last, err = s.Append(b.Context(), id, last, paused(id, last+1))
					}
					if err != nil {
						b.Error(err)
					}
				})
			}
			wg.Wait()
		})
	}
}
