package main

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/testkit/pgtest"
)

// TestPostgresBackupOfTheDocument executes the commands of docs/operating.md that back up a store in PostgreSQL and restore it
// into a new database: the runs are there, and a schema that a newer version made is refused.
func TestPostgresBackupOfTheDocument(t *testing.T) {
	t.Parallel()
	testdata.NeedAll(t)
	for _, program := range []string{"pg_dump", "pg_restore"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "operating.md"))
	if err != nil {
		t.Fatal(err)
	}
	var commands string
	for _, b := range blocks(string(text)) {
		if b.language == "sh" && strings.Contains(b.body, "pg_dump") {
			commands = b.body
		}
	}
	if commands == "" {
		t.Fatal("docs/operating.md has no block with pg_dump")
	}
	stored, restored := newDatabase(t, "stored"), newDatabase(t, "restored")
	dir := t.TempDir()
	lathe := func(store string, args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), lathePath(t), args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "LATHE_STORE="+store)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := lathe(stored, "run", "-q", "What is 7 + 35?"); err != nil {
		t.Fatal(err, out)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", commands)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "LATHE_STORE="+stored, "RESTORED="+restored)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want, err := lathe(stored, "runs", "list", "--json")
	if err != nil {
		t.Fatal(err, want)
	}
	if got, err := lathe(restored, "runs", "list", "--json"); err != nil || got != want || !strings.Contains(got, "completed") {
		t.Errorf("the restored runs: %v\n%s\nwant\n%s", err, got, want)
	}
	conn, err := pgx.Connect(t.Context(), restored)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "INSERT INTO lathe_schema (version) VALUES (99)"); err != nil {
		t.Error(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if out, err := lathe(restored, "runs", "list"); err == nil || !strings.Contains(out, "newer version (schema 99, known is ") || !strings.Contains(out, "install the version that made it") {
		t.Errorf("a newer schema: %v\n%s", err, out)
	}
}

// newDatabase makes an empty database on the server of the tests, and returns its URL.
func newDatabase(t *testing.T, name string) string {
	t.Helper()
	u, err := url.Parse(pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	name += "_" + q.Get("search_path")
	q.Del("search_path")
	u.RawQuery = q.Encode()
	conn, err := pgx.Connect(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.Exec(t.Context(), "CREATE DATABASE "+name)
	if cerr := conn.Close(t.Context()); err != nil || cerr != nil {
		if os.Getenv(pgtest.Existing) != "" {
			t.Skip("the role of "+pgtest.Existing+" may not create databases: ", err)
		}
		t.Fatal(err, cerr)
	}
	u.Path = "/" + name
	return u.String()
}
