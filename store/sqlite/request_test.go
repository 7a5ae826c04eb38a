package sqlite_test

import (
	"crypto/sha256"
	"database/sql"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/store/sqlite"
)

func execute(t *testing.T, path, query string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(t.Context(), query); err != nil {
		t.Fatal(err)
	}
}

// A file of version 6, which has no records of requests, is read as it is and brought forward when it is opened
// for writing. Records survive the end of the process, and old ones are removed.
func TestBringsVersion6Forward(t *testing.T) {
	t.Parallel()
	path := formerFile(t, "DROP TABLE request; DROP TABLE secret; DROP TABLE ledger_balance; DROP TABLE ledger_reservation; DROP TABLE ledger_usage; DROP INDEX run_principal_status; PRAGMA user_version = 6")

	digest := store.RequestDigest(sha256.Sum256([]byte("a")))
	before, err := sqlite.Open(path, &sqlite.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := before.FindRequest(t.Context(), digest); lathe.CodeOf(err) != lathe.CodeNotFound || count(t, before, "run_1") != 1 {
		t.Errorf("read as it is: %v", err)
	}
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}

	s := open(t, path)
	if err := s.PutRequest(t.Context(), digest, "run_1", ""); err != nil || count(t, s, "run_1") != 1 {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path)
	if r, err := s.FindRequest(t.Context(), digest); err != nil || r.RunID != "run_1" {
		t.Errorf("after the process has ended: %+v, %v", r, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	execute(t, path, "UPDATE request SET time = time - 1000000000 * 3600 * 49")
	s = open(t, path)
	if err := s.PutRequest(t.Context(), sha256.Sum256([]byte("b")), "run_2", ""); err != nil {
		t.Fatal(err)
	}
	if r, err := s.FindRequest(t.Context(), digest); lathe.CodeOf(err) != lathe.CodeNotFound {
		t.Errorf("%v later: %+v, %v", 49*time.Hour, r, err)
	}
}
