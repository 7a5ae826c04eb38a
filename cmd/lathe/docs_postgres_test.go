package main

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lathe-run/lathe/internal/testkit/pgtest"
)

// TestPostgresPages follows the pages that need a PostgreSQL server, whose address the programs find in their environment.
func TestPostgresPages(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	docs, err := filepath.Abs(filepath.Join("..", "..", "docs"))
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	password, _ := u.User.Password()
	server := map[string]string{"PGHOST": q.Get("host"), "PGPORT": q.Get("port"), "PGUSER": u.User.Username(), "PGPASSWORD": password, "PGDATABASE": "postgres"}
	if h := u.Hostname(); h != "" {
		server["PGHOST"], server["PGPORT"] = h, u.Port()
	}
	q.Del("search_path")
	u.RawQuery = q.Encode()
	conn, err := pgx.Connect(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"team_gateway", "team_gateway_restored"} { // of an earlier test on the same server
		if _, err := conn.Exec(t.Context(), "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	}
	_, err = conn.Exec(t.Context(), "CREATE DATABASE team_gateway")
	if err != nil && os.Getenv(pgtest.Existing) != "" {
		t.Skip("the role of "+pgtest.Existing+" may not create databases: ", err)
	}
	if err == nil {
		_, err = conn.Exec(t.Context(), "DROP DATABASE team_gateway")
	}
	if err != nil {
		t.Error(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "postgres"), RequireExplicitExec: true, RequireUniqueNames: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"docs": followDocument},
		Setup: func(e *testscript.Env) error {
			e.Setenv("DOCS", docs)
			e.Setenv("TZ", "UTC")
			for name, value := range server {
				e.Setenv(name, value)
			}
			return nil
		},
	})
}

// TestPrometheusOfTheTutorial executes the commands of docs/tutorial-gateway.md that load the alert rules.
func TestPrometheusOfTheTutorial(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "tutorial-gateway.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir, commands := t.TempDir(), ""
	for _, b := range blocks(string(text)) {
		switch {
		case b.file == "prometheus.yml":
			if err := os.WriteFile(filepath.Join(dir, b.file), []byte(b.body), 0o600); err != nil {
				t.Fatal(err)
			}
		case b.language == "sh":
			commands += b.body
		}
	}
	if !strings.Contains(commands, "promtool check config prometheus.yml") {
		t.Fatalf("the page has no block that loads the rules, but %q", commands)
	}
	if err := os.WriteFile(filepath.Join(dir, "admin.key"), []byte("a-key-0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	source, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Skip(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", commands)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "LATHE_SOURCE="+source)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "SUCCESS: ") || !strings.Contains(string(out), "rules found") {
		t.Errorf("%v\n%s", err, out)
	}
}
