package sqlite_test

import (
	"crypto/sha256"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/store"
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

// Records of requests survive the end of the process, and old ones are removed.
func TestRemovesOldRequests(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	digest := store.RequestDigest(sha256.Sum256([]byte("a")))
	s := open(t, path)
	if err := s.PutRequest(t.Context(), digest, "run_1", ""); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	execute(t, path, "UPDATE request SET time = time - 1000000000 * 3600 * 47")
	s = open(t, path)
	if r, err := s.FindRequest(t.Context(), digest); err != nil || r.RunID != "run_1" {
		t.Errorf("after the process has ended: %+v, %v", r, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	execute(t, path, "UPDATE request SET time = time - 1000000000 * 3600 * 2")
	s = open(t, path)
	if err := s.PutRequest(t.Context(), sha256.Sum256([]byte("b")), "run_2", ""); err != nil {
		t.Fatal(err)
	}
	if r, err := s.FindRequest(t.Context(), digest); lathe.CodeOf(err) != lathe.CodeNotFound {
		t.Errorf("%v later: %+v, %v", 49*time.Hour, r, err)
	}
}
