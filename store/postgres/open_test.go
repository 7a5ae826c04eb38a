package postgres_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/testkit/pgtest"
	"github.com/lathe-run/lathe/remote"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/store/postgres"
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

func refusesUnsafe(t *testing.T, server *pgtest.Server) {
	source := server.Schema(t)
	unsafe := &postgres.Options{AllowUnsafeDurability: true}
	refused(t, with(t, source, "synchronous_commit", "off"), nil, lathe.CodeInvalidConfig, "synchronous_commit off")
	accepted(t, with(t, source, "synchronous_commit", "off"), unsafe)
	accepted(t, with(t, source, "synchronous_commit", "local"), nil)
	set := func(setting, value string) {
		execute(t, source, "ALTER SYSTEM SET "+setting+" = "+value)
		execute(t, source, "SELECT pg_reload_conf()")
		until(t, setting+" is "+value, func() bool { return one[string](t, source, "SELECT current_setting($1)", setting) == value })
	}
	for _, setting := range []string{"fsync", "full_page_writes"} {
		set(setting, "off")
		refused(t, source, nil, lathe.CodeInvalidConfig, setting+" off")
		accepted(t, source, unsafe)
		set(setting, "on")
	}
	accepted(t, source, nil)
	refused(t, with(t, source, "default_transaction_read_only", "on"), nil, lathe.CodeUnavailable, "read only")
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
	scripts, err := filepath.Glob("migrations/*.sql")
	if n := one[int](t, source, "SELECT count(*)::int FROM lathe_schema"); err != nil || n != len(scripts) || n == 0 {
		t.Errorf("%d versions of %d scripts, %v", n, len(scripts), err)
	}
}

// A former is a process of an older version: a connection that does what an append of that version does.
type former struct{ conn *pgx.Conn }

func newFormer(t *testing.T, source string) former {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), with(t, source, "lock_timeout", "2000"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return former{conn}
}

// appends begins a run.
func (f former) appends(t *testing.T, runID string) {
	t.Helper()
	const statement = `WITH r AS (INSERT INTO run (run_id, last_id, mark, started, updated, session_id, principal, status, resumable, ended, summary)
		VALUES ($1, 1, 1, 1, 1, '', '', 'running', false, false, '{}')) INSERT INTO event (run_id, id, mark, body) VALUES ($1, 1, 1, '{}')`
	if _, err := f.conn.Exec(t.Context(), statement, runID); err != nil {
		t.Errorf("an append of the version before: %v", err)
	}
}

// The index of version 10 is built while a process of version 9 has a transaction open and appends.
func TestAddsAnIndexWhileOthersAppend(t *testing.T) {
	t.Parallel()
	source := loadVersion(t, 9)
	old, locker := newFormer(t, source), newFormer(t, source)
	old.appends(t, "run_1")
	tx, err := locker.conn.Begin(t.Context()) // an append that has not been committed
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "UPDATE run SET updated = updated WHERE run_id = 'run_1'"); err != nil {
		t.Fatal(err)
	}
	var opened sync.WaitGroup
	for range 3 {
		opened.Go(func() { accepted(t, source, nil) })
	}
	// The build waits for the transaction, and appends of others do not wait for the build.
	until(t, "the index is being built", func() bool {
		return one[int](t, source, "SELECT count(*)::int FROM pg_index WHERE indexrelid = to_regclass('run_principal_status')") == 1
	})
	old.appends(t, "run_2")
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	opened.Wait()
	if n := one[int](t, source, validIndex); n != 1 {
		t.Fatalf("%d valid indexes", n)
	}
}

const validIndex = "SELECT count(*)::int FROM pg_index WHERE indexrelid = to_regclass('run_principal_status') AND indisvalid"

// An index that was left invalid by a process that ended while it built the index is built again.
func TestBuildsAnInvalidIndexAgain(t *testing.T) {
	t.Parallel()
	source := loadVersion(t, 9)
	execute(t, source, "CREATE INDEX run_principal_status ON run (principal)")
	execute(t, source, "UPDATE pg_index SET indisvalid = false WHERE indexrelid = to_regclass('run_principal_status')")
	accepted(t, source, nil)
	if n := one[int](t, source, validIndex); n != 1 {
		t.Errorf("%d valid indexes after a build that was interrupted", n)
	}
}

// A role that may change rows, but no tables, does where the tables are there. It needs no right to
// change events.
func TestNeedsNoRightToMakeTables(t *testing.T) {
	t.Parallel()
	testdata.WithoutRace(t)
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
	execute(t, source, "GRANT SELECT, INSERT, UPDATE, DELETE ON run, model_call, fact, lease, node, call, worker, gone, request, message, conversation TO "+app)
	execute(t, source, "GRANT SELECT, INSERT, DELETE ON event TO "+app)
	execute(t, source, "GRANT SELECT ON lathe_schema TO "+app)
	cycle(t, open(t, u.String()))
	if one[bool](t, u.String(), "SELECT has_table_privilege('event', 'UPDATE')") {
		t.Error("the role may change events: this test does not test what it says")
	}
}

// cycle does once what a store does.
func cycle(t *testing.T, s *postgres.Store) {
	t.Helper()
	ctx := t.Context()
	c := store.Claim{RunID: "run_a", Node: "node_1", Lease: lease}
	asked := event.Event{ID: 2, RunID: c.RunID, Time: time.Now(), Data: &event.ApprovalRequested{ToolCallID: "c1", ExpiresAt: time.Now().Add(lease)}}
	called := event.Event{ID: 3, RunID: c.RunID, Time: time.Now(), Data: &event.ModelCallFinished{Attempt: 1, Status: "success"}}
	var claims []store.Claim
	for i, step := range []func() error{
		func() error { return failed(s.AppendAs(ctx, c, 0, started(c.RunID))) },
		func() error { c.Epoch = 1; return failed(s.AppendAs(ctx, c, 1, asked, called, paused(c.RunID, 4))) },
		func() error { return failed(s.Append(ctx, "run_b", 0, started("run_b"))) },
		func() error { return s.PutSignal(ctx, store.Signal{RunID: c.RunID, Kind: "cancel", Body: []byte("1")}) },
		func() error { return s.Release(ctx, c, 4) },
		func() (err error) { claims, err = s.Claim(ctx, "node_2", lease, 10); return err },
		func() (err error) { claims, err = s.Renew(ctx, "node_2", lease); return err },
		func() (err error) { c, err = s.ClaimRun(ctx, "node_2", c.RunID, lease); return err },
		func() error { return s.Advertise(ctx, "node_1", "http://x", lease) },
		func() (err error) { _, err = s.Address(ctx, "node_1"); return err },
		func() error {
			_, _, err := s.Runs(ctx, &store.RunFilter{SessionID: "s1", Principal: "ann", Limit: 1})
			return err
		},
		func() error { _, _, err := s.ModelCalls(ctx, &store.RunFilter{RunID: c.RunID}); return err },
		func() error {
			_, err := s.PutCall(ctx, &remote.Call{Key: "k", RunID: c.RunID, Tool: "act", Definition: "d", Effect: lathe.Writes, Arguments: []byte("{}")}, lease)
			return err
		},
		func() error {
			calls, err := s.ClaimCalls(ctx, "w", []string{"d"}, lease, 2)
			if err != nil || len(calls) != 1 {
				return fmt.Errorf("%d calls: %w", len(calls), err)
			}
			ref := calls[0].Ref()
			stop, err := s.RenewCalls(ctx, "w", []remote.Ref{ref}, lease)
			if len(stop) != 0 {
				t.Errorf("stop %v", stop)
			}
			return errors.Join(err, s.StartCall(ctx, ref, lease), s.FinishCall(ctx, ref, &remote.Result{}))
		},
		func() error { _, err := s.ExpireCalls(ctx); return err },
		func() error { return s.PutWorker(ctx, &remote.Worker{ID: "w"}, lease) },
		func() error { _, err := s.Workers(ctx); return err },
		func() error { return failed(s.Append(ctx, "run_c", 0, started("run_c"), finished("run_c", 2))) },
		func() error { return s.Trim(ctx, 1) },
		func() error { return s.DeleteBefore(ctx, time.Now().Add(lease)) },
		func() error { return s.DeletePrincipal(ctx, "bob") },
		func() error { return s.DeleteSession(ctx, "s1") },
	} {
		if err := step(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
	if len(claims) != 2 || c.Epoch != 3 || c.Signals != 1 {
		t.Errorf("claims %+v, then %+v", claims, c)
	}
}

// A pooler that gives each transaction another connection has no use for prepared statements: the URL
// turns them off.
func TestNeedsNoPreparedStatements(t *testing.T) {
	t.Parallel()
	testdata.WithoutRace(t)
	for _, mode := range []string{"exec", "cache_describe"} {
		cycle(t, open(t, with(t, pgtest.URL(t), "default_query_exec_mode", mode)))
	}
}

func TestClosedStoreRefuses(t *testing.T) {
	t.Parallel()
	s, err := postgres.Open(t.Context(), pgtest.URL(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	_, claim := s.Claim(ctx, "node_1", lease, 1)
	_, _, list := s.Runs(ctx, nil)
	for what, err := range map[string]error{"append": failed(s.Append(ctx, "run_a", 0, started("run_a"))), "claim": claim, "list": list, "delete": s.Delete(ctx, "run_a")} {
		if lathe.CodeOf(err) != lathe.CodeUnavailable {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// What each append writes into the row of a run stands in none of its indexes: then the server leaves them alone.
func TestIndexesHaveNothingThatAppendsChange(t *testing.T) {
	t.Parallel()
	testdata.WithoutRace(t)
	source := pgtest.URL(t)
	accepted(t, source, nil)
	const query = `SELECT coalesce(string_agg(DISTINCT c.relname || ' has ' || a.attname, ', '), '') FROM pg_index i
		JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_depend d ON d.objid = i.indexrelid AND d.refobjid = i.indrelid
		JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = d.refobjsubid
		WHERE i.indrelid = 'run'::regclass AND a.attname IN ('last_id', 'mark', 'bytes', 'updated', 'summary', 'facts')`
	if got := one[string](t, source, query); got != "" {
		t.Error(got)
	}
	if n := one[int](t, source, "SELECT count(*)::int FROM pg_index WHERE indrelid = 'run'::regclass"); n < 7 {
		t.Errorf("the table of runs has %d indexes", n)
	}
}
