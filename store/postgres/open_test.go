package postgres_test

import (
	"context"
	"crypto/rand"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/store/postgres"
	"github.com/lathe-run/lathe/store/postgres/pgtest"
)

// with returns a URL with one more parameter.
func with(t *testing.T, source, name, value string) string {
	t.Helper()
	u, err := url.Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = q.Encode()
	return u.String()
}

// one returns the value of a query.
func one[T any](t *testing.T, source, query string, args ...any) (v T) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if err := conn.QueryRow(t.Context(), query, args...).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func refused(t *testing.T, url string, opts *postgres.Options, code lathe.Code, words string) {
	t.Helper()
	s, err := postgres.Open(t.Context(), url, opts)
	if err == nil {
		_ = s.Close()
	}
	if lathe.CodeOf(err) != code || !strings.Contains(err.Error(), words) {
		t.Errorf("got %v (code %s), want %s with %q", err, lathe.CodeOf(err), code, words)
	}
}

func accepted(t *testing.T, url string, opts *postgres.Options) {
	t.Helper()
	s, err := postgres.Open(t.Context(), url, opts)
	if err != nil {
		t.Error(err)
		return
	}
	if _, err := s.Append(t.Context(), "run_"+rand.Text(), 0); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestRefusesUnsafeServers(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	source := server.Schema(t)
	unsafe := &postgres.Options{AllowUnsafeDurability: true}
	refused(t, with(t, source, "synchronous_commit", "off"), nil, lathe.CodeInvalidConfig, "synchronous_commit off")
	accepted(t, with(t, source, "synchronous_commit", "off"), unsafe)
	accepted(t, with(t, source, "synchronous_commit", "local"), nil)
	for _, setting := range []string{"fsync", "full_page_writes"} {
		execute(t, source, "ALTER SYSTEM SET "+setting+" = off")
		server.Restart(t)
		refused(t, source, nil, lathe.CodeInvalidConfig, setting+" off")
		accepted(t, source, unsafe)
		execute(t, source, "ALTER SYSTEM RESET "+setting)
	}
	server.Restart(t)
	accepted(t, source, nil)
	execute(t, source, "ALTER SYSTEM SET default_transaction_read_only = on")
	server.Restart(t)
	refused(t, source, nil, lathe.CodeUnavailable, "read only")
}

func TestRefusesStrangeSchemas(t *testing.T) {
	t.Parallel()
	newer := pgtest.URL(t)
	accepted(t, newer, nil)
	execute(t, newer, "INSERT INTO lathe_schema (version) VALUES (99)")
	refused(t, newer, nil, lathe.CodeUnavailable, "newer version")
	other := pgtest.URL(t)
	execute(t, other, "CREATE TABLE run (distance int)")
	refused(t, other, nil, lathe.CodeUnavailable, "something else")
	refused(t, with(t, other, "search_path", "nowhere"), nil, lathe.CodeUnavailable, "search_path")
	if n := one[int](t, other, "SELECT count(*)::int FROM pg_tables WHERE schemaname = current_schema()"); n != 1 {
		t.Errorf("a refused schema has %d tables, want the one it had", n)
	}
}

// Many processes start at once on an empty schema.
func TestMakesTheTablesOnce(t *testing.T) {
	t.Parallel()
	source := pgtest.URL(t)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() { accepted(t, source, nil) })
	}
	wg.Wait()
	if n := one[int](t, source, "SELECT count(*)::int FROM lathe_schema"); n != 1 {
		t.Errorf("%d versions, want 1", n)
	}
}

// A role that may change rows, but no tables, does where the tables are there. It needs no right to
// change events.
func TestNeedsNoRightToMakeTables(t *testing.T) {
	t.Parallel()
	source := pgtest.URL(t)
	u, err := url.Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	schema := u.Query().Get("search_path")
	app := "app_" + strings.ToLower(rand.Text()) // roles are of the whole server
	execute(t, source, "CREATE ROLE "+app+" LOGIN")
	t.Cleanup(func() { execute(t, source, "DROP OWNED BY "+app+"; DROP ROLE "+app) })
	execute(t, source, "GRANT USAGE ON SCHEMA "+schema+" TO "+app)
	u.User = url.User(app)
	refused(t, u.String(), nil, lathe.CodeUnavailable, "may create tables")
	accepted(t, source, nil)
	execute(t, source, "GRANT SELECT, INSERT, UPDATE, DELETE ON run, model_call, fact, node TO "+app)
	execute(t, source, "GRANT SELECT, INSERT, DELETE ON event TO "+app)
	execute(t, source, "GRANT SELECT ON lathe_schema TO "+app)
	s := open(t, u.String())
	ctx := t.Context()
	c := lathe.Claim{RunID: "run_a", Node: "node_1", Lease: lease}
	if _, err := s.AppendAs(ctx, c, 0, started("run_a")); err != nil {
		t.Fatal(err)
	}
	c.Epoch = 1
	_, err = s.AppendAs(ctx, c, 1, paused("run_a", 2))
	put := s.PutFact(ctx, lathe.Fact{RunID: "run_a", Kind: "cancel"})
	release := s.Release(ctx, c, 2)
	_, claim := s.Claim(ctx, "node_2", lease, 1)
	for what, err := range map[string]error{"append": err, "put": put, "release": release, "claim": claim,
		"advertise": s.Advertise(ctx, "node_1", "http://x", lease), "delete": s.Delete(ctx, "run_a")} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := pgxExec(t, u.String(), "UPDATE event SET body = ''"); err == nil {
		t.Error("the role may change events: this test does not test what it says")
	}
}

func pgxExec(t *testing.T, source, statement string) (int64, error) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	tag, err := conn.Exec(t.Context(), statement)
	return tag.RowsAffected(), err
}

func TestRefusesStrangeURLs(t *testing.T) {
	t.Parallel()
	const password = "canary-7f3a"
	for _, source := range []string{
		"", "sqlite:runs.db", "host=db password=" + password, "postgres://app:" + password + "@db:port/x", "postgres://app:" + password + "@[::1/x",
		"postgres://app:" + password + "%zz@db/x", "postgres://app:" + password + "@db/x?sslmode=sometimes", "postgres://app:" + password + "@db/x?connect_timeout=soon",
		"postgres://app:" + password + "@127.0.0.1:1/x?sslmode=disable", "postgres://app:" + password + "@/x?host=/nowhere",
	} {
		s, err := postgres.Open(t.Context(), source, nil)
		if err == nil {
			_ = s.Close()
			t.Errorf("%q was opened", source)
			continue
		}
		if code := lathe.CodeOf(err); code != lathe.CodeInvalidRequest && code != lathe.CodeUnavailable || strings.Contains(err.Error(), password) {
			t.Errorf("code %s, or the password is told: %v", code, err)
		}
	}
	refused(t, "postgres://app@db/x", &postgres.Options{MaxConns: 2}, lathe.CodeInvalidRequest, "at least 3")
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := postgres.Open(done, pgtest.URL(t), nil); lathe.CodeOf(err) != lathe.CodeCancelled {
		t.Errorf("cancelled: %v", err)
	}
}
