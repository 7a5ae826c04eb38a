package sqlite_test

import (
	"database/sql"
	_ "embed"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/store/sqlite"
)

//go:embed testdata/version1.sql
var version1 string

// writeVersion1 writes a file as version 1 did: one run that waits for an approval, without a time at
// which it goes on by itself.
func writeVersion1(t *testing.T, path string, expires time.Time) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	exec := func(query string, args ...any) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec("PRAGMA journal_mode = WAL")
	exec(version1)
	exec("PRAGMA user_version = 1")
	sum := &store.Summary{}
	events := []event.Event{started("run_1", "hi"),
		{ID: 2, RunID: "run_1", Turn: 1, Time: time.Now(), Data: &event.ApprovalRequested{ToolCallID: "c1", ExpiresAt: expires}},
		{ID: 3, RunID: "run_1", Turn: 1, Time: time.Now(), Data: &event.RunPaused{Reason: lathe.ReasonAwaitingApproval, Pending: []string{"c1"}}}}
	for i := range events {
		body, err := events[i].MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		exec("INSERT INTO event VALUES (?, ?, ?)", "run_1", events[i].ID, body)
		sum.Apply(&events[i])
	}
	sum.Run.WakeAt = time.Time{}
	row, err := json.Marshal(&sum.Run)
	if err != nil {
		t.Fatal(err)
	}
	exec("INSERT INTO run VALUES (?, ?, ?, ?, ?, ?, ?, ?)", "run_1", 3, sum.Run.Started.UnixNano(), sum.Run.Updated.UnixNano(), "s1", "ann", "parked", row)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestBringsVersion1Forward(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	expires := time.Now().Add(time.Hour).UTC().Round(0)
	writeVersion1(t, path, expires)

	before, err := sqlite.Open(path, &sqlite.Options{ReadOnly: true}) // which does not bring it forward
	if err != nil {
		t.Fatal(err)
	}
	if signals, err := before.Signals(t.Context(), "run_1"); err != nil || len(signals) != 0 || count(t, before, "run_1") != 3 {
		t.Errorf("read as it is: %d signals, %v", len(signals), err)
	}
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}

	for range 2 { // the second time there is nothing to do
		s := open(t, path)
		rows, _, err := s.Runs(t.Context(), nil)
		if err != nil || len(rows) != 1 || !rows[0].WakeAt.Equal(expires) || rows[0].LastID != 3 || count(t, s, "run_1") != 3 {
			t.Fatalf("%+v, %v", rows, err)
		}
		_ = s.PutSignal(t.Context(), store.Signal{RunID: "run_1", Kind: "approval", Key: "c1", Body: []byte(`{}`)}) // the second time it is there
		if signals, err := s.Signals(t.Context(), "run_1"); err != nil || len(signals) != 1 {
			t.Errorf("%d signals, %v", len(signals), err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// formerFile returns the path of a file that has the run run_1, and then was changed by the query.
func formerFile(t *testing.T, query string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "runs.db")
	s := open(t, path)
	if _, err := s.Append(t.Context(), "run_1", 0, started("run_1", "hi")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	execute(t, path, query)
	return path
}

// A file of version 9 is read as it is, and has the index of version 10 once it was opened for writing.
func TestBringsVersion9Forward(t *testing.T) {
	t.Parallel()
	path := formerFile(t, "DROP INDEX run_principal_status; PRAGMA user_version = 9")
	before, err := sqlite.Open(path, &sqlite.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	first := started("run_1", "hi").Data.(*event.RunStarted)
	if rows, _, err := before.Runs(t.Context(), &store.RunFilter{Principal: first.Principal, Status: "running"}); err != nil || len(rows) != 1 {
		t.Errorf("read as it is: %v, %v", rows, err)
	}
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, path)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if s := planOf(t, db, "SELECT summary FROM run WHERE principal = ? AND status = ? ORDER BY started DESC, run_id DESC LIMIT 51", "x", "x"); !strings.Contains(s, "run_principal_status") {
		t.Error(s)
	}
}
