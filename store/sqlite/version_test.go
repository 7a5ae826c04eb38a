package sqlite_test

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/migrate/migratetest"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/store/sqlite"
)

// testdata/versions holds a store of each version of the schema, as a program of that version wrote it. They do not
// change: -update writes the one of a new version, and leaves those that are there.
var update = flag.Bool("update", false, "write the stored database of a new version of the schema")

// since has the first version with each kind of rows.
var since = migratetest.Since{migratetest.Signals: 2, migratetest.Calls: 3, migratetest.Gone: 4, migratetest.Requests: 7,
	migratetest.Secrets: 8, migratetest.Values: 9, migratetest.Ledger: 9, migratetest.Messages: 11}

func versionFile(version int) string {
	return filepath.Join("testdata", "versions", fmt.Sprintf("%04d.sql", version))
}

// load returns the path of a new file with the store of a version.
func load(t *testing.T, version int) string {
	t.Helper()
	text, err := os.ReadFile(versionFile(version))
	if err != nil {
		t.Fatalf("%v: write the store of a new version with `go test ./store/sqlite -run TestVersionIsStored -update`", err)
	}
	path := filepath.Join(t.TempDir(), "runs.db")
	execute(t, path, string(text))
	return path
}

// The current version has a stored database, so that the code of later versions is tested with it.
func TestVersionIsStored(t *testing.T) {
	t.Parallel()
	file := versionFile(sqlite.SchemaVersion())
	if _, err := os.Stat(file); err != nil && *update {
		path := filepath.Join(t.TempDir(), "runs.db")
		s := open(t, path)
		migratetest.Write(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(dump(t, path)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := filepath.Glob(filepath.Join("testdata", "versions", "*.sql"))
	if err != nil || len(stored) != sqlite.SchemaVersion() {
		t.Errorf("%d stored databases for %d versions, %v: write the one of a new version with -update", len(stored), sqlite.SchemaVersion(), err)
	}
	if got := tables(t, load(t, sqlite.SchemaVersion())); !slices.Equal(got, fresh(t)) {
		t.Errorf("%s has\n%s\nand a new store\n%s", file, strings.Join(got, "\n"), strings.Join(fresh(t), "\n"))
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	migratetest.CheckRows(t, string(text))
}

// A store of each version is read as it is, and once it was opened for writing has its data and the tables of a new store;
// a run that waits in it is resumed.
func TestStoresOfEachVersion(t *testing.T) {
	testdata.WithoutRace(t)
	t.Parallel()
	for version := 1; version <= sqlite.SchemaVersion(); version++ {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			t.Parallel()
			path, has := load(t, version), since.In(version)
			readAsItIs(t, path, has)
			if got := userVersion(t, path); got != version {
				t.Errorf("version %d after it was read, want %d", got, version)
			}
			s := open(t, path)
			migratetest.Check(t, s, has)
			has = migratetest.Complete(t, s, has)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if got := tables(t, path); !slices.Equal(got, fresh(t)) {
				t.Errorf("it has\n%s\nand a new store\n%s", strings.Join(got, "\n"), strings.Join(fresh(t), "\n"))
			}
			if got := userVersion(t, path); got != sqlite.SchemaVersion() {
				t.Errorf("version %d", got)
			}
			s = open(t, path) // there is nothing to migrate
			migratetest.Check(t, s, has)
			migratetest.Resume(t, s)
		})
	}
}

// A backup of each version is restored with its version, and has its data when it is opened.
func TestRestoreOfEachVersion(t *testing.T) {
	testdata.WithoutRace(t)
	t.Parallel()
	for version := 1; version <= sqlite.SchemaVersion(); version++ {
		path := filepath.Join(t.TempDir(), "runs.db")
		_, found, err := sqlite.Restore(t.Context(), path, load(t, version), nil)
		runs := 3
		if since.In(version)[migratetest.Messages] {
			runs = 5
		}
		if err != nil || found.Schema != version || found.Runs != runs || len(found.Faults) > 0 {
			t.Fatalf("version %d: %+v, %v", version, found, err)
		}
		migratetest.Check(t, open(t, path), since.In(version))
		if found, err := sqlite.Verify(t.Context(), path); err != nil || found.Schema != sqlite.SchemaVersion() || len(found.Faults) > 0 {
			t.Errorf("version %d: %+v, %v", version, found, err)
		}
	}
}

// readAsItIs reads a store that another process may be using: it is not migrated, and what its version lacks is empty.
func readAsItIs(t *testing.T, path string, has migratetest.Kinds) {
	t.Helper()
	s, err := sqlite.Open(path, &sqlite.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if rows, _, err := s.Runs(t.Context(), &store.RunFilter{Principal: "ann", Status: "parked"}); err != nil || len(rows) != 2 {
		t.Errorf("read as it is: %d runs, %v", len(rows), err)
	}
	if n := count(t, s, "run_finished"); n < 5 {
		t.Errorf("read as it is: %d events", n)
	}
	want := map[bool]int{true: 1}
	signals, err := s.Signals(t.Context(), "run_signaled")
	if err != nil || len(signals) != want[has[migratetest.Signals]] {
		t.Errorf("read as it is: %d signals, %v", len(signals), err)
	}
	rows, _, err := s.Runs(t.Context(), &store.RunFilter{Signaled: true})
	if err != nil || len(rows) != want[has[migratetest.Signals]] {
		t.Errorf("read as it is: %d runs with signals, %v", len(rows), err)
	}
	if r, err := s.FindRequest(t.Context(), migratetest.Digest); (lathe.CodeOf(err) == lathe.CodeNotFound) == has[migratetest.Requests] {
		t.Errorf("read as it is: request %+v, %v", r, err)
	}
	usage, err := s.Usage(t.Context(), &store.UsageFilter{})
	if err != nil || len(usage) != want[has[migratetest.Ledger]] {
		t.Errorf("read as it is: usage %+v, %v", usage, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func userVersion(t *testing.T, path string) int {
	t.Helper()
	found, err := sqlite.Verify(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return found.Schema
}

// fresh returns the tables of a new store.
func fresh(t *testing.T) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "runs.db")
	open(t, path)
	return tables(t, path)
}

var (
	comments = regexp.MustCompile(`--[^\n]*`)
	spaces   = regexp.MustCompile(`\s+`)
)

// tables returns the statements that make the tables and indexes of a file, without comments.
func tables(t *testing.T, path string) (out []string) {
	t.Helper()
	for row := range query(t, path, "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name") {
		text := spaces.ReplaceAllString(comments.ReplaceAllString(row[0].(string), ""), " ")
		out = append(out, strings.ReplaceAll(strings.ReplaceAll(text, "( ", "("), " )", ")"))
	}
	return out
}

// query yields the rows of a query.
func query(t *testing.T, path, query string) func(yield func([]any) bool) {
	return func(yield func([]any) bool) {
		t.Helper()
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		rows, err := db.QueryContext(context.Background(), query)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rows.Close() }()
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			row := make([]any, len(columns))
			into := make([]any, len(columns))
			for i := range row {
				into[i] = &row[i]
			}
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			if !yield(row) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// dump returns the statements that make a copy of a file: its tables, rows, indexes and version.
func dump(t *testing.T, path string) string {
	t.Helper()
	version := userVersion(t, path)
	var out, indexes strings.Builder
	fmt.Fprintf(&out, "-- A store of schema version %d, as a program of that version wrote it. Approvals and runs in it do not expire.\nBEGIN;\n", version)
	for object := range query(t, path, "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name") {
		if object[0] != "table" {
			fmt.Fprintf(&indexes, "%s;\n", object[2])
			continue
		}
		fmt.Fprintf(&out, "%s;\n", object[2])
		for row := range query(t, path, fmt.Sprintf("SELECT * FROM %s", object[1])) {
			values := make([]string, len(row))
			for i, v := range row {
				values[i] = literal(v)
			}
			fmt.Fprintf(&out, "INSERT INTO %s VALUES (%s);\n", object[1], strings.Join(values, ", "))
		}
	}
	fmt.Fprintf(&indexes, "PRAGMA user_version = %d;\nCOMMIT;\n", version)
	return out.String() + indexes.String()
}

// literal returns a value in SQL: a blob that is text as text.
func literal(v any) string {
	quoted := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
	switch v := v.(type) {
	case nil:
		return "NULL"
	case string:
		return quoted(v)
	case []byte:
		if utf8.Valid(v) && !slices.ContainsFunc([]rune(string(v)), func(r rune) bool { return r < ' ' }) {
			return "CAST(" + quoted(string(v)) + " AS BLOB)"
		}
		return fmt.Sprintf("X'%x'", v)
	}
	return fmt.Sprint(v)
}
