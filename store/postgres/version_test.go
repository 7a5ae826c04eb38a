package postgres_test

import (
	"encoding/hex"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lathe-run/lathe/internal/migrate/migratetest"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/testkit/pgtest"
	"github.com/lathe-run/lathe/store/postgres"
)

// testdata/versions holds a database of each version of the schema, as a program of that version wrote it. They do
// not change: -update writes the one of a new version, and leaves those that are there.
var update = flag.Bool("update", false, "write the stored database of a new version of the schema; needs pg_dump")

// since has the first version with each kind of rows.
var since = migratetest.Since{migratetest.Signals: 1, migratetest.Calls: 2, migratetest.Gone: 3, migratetest.Requests: 6,
	migratetest.Secrets: 7, migratetest.Ledger: 8, migratetest.Values: 9, migratetest.Messages: 11}

func versionFile(version int) string {
	return filepath.Join("testdata", "versions", fmt.Sprintf("%04d.sql", version))
}

// loadVersion returns the URL of a new schema with the tables and rows of a version.
func loadVersion(t *testing.T, version int) string {
	t.Helper()
	text, err := os.ReadFile(versionFile(version))
	if err != nil {
		t.Fatalf("%v: write the database of a new version with `go test ./store/postgres -run TestVersionIsStored -update`", err)
	}
	source := pgtest.URL(t)
	execute(t, source, string(text))
	return source
}

// The current version has a stored database, so that the code of later versions is tested with it.
func TestVersionIsStored(t *testing.T) {
	t.Parallel()
	testdata.WithoutRace(t)
	file := versionFile(postgres.SchemaVersion())
	if _, err := os.Stat(file); err != nil && *update {
		source := pgtest.URL(t)
		migratetest.Write(t, open(t, source))
		execute(t, source, "UPDATE worker SET until = until + interval '99 years'") // no lease is longer than a year
		execute(t, source, "UPDATE call SET deadline = deadline + interval '99 years'")
		if err := os.WriteFile(file, []byte(dump(t, source)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := filepath.Glob(filepath.Join("testdata", "versions", "*.sql"))
	if err != nil || len(stored) != postgres.SchemaVersion() {
		t.Errorf("%d stored databases for %d versions, %v: write the one of a new version with -update", len(stored), postgres.SchemaVersion(), err)
	}
	fresh := pgtest.URL(t)
	accepted(t, fresh, nil)
	if got, want := tables(t, loadVersion(t, postgres.SchemaVersion())), tables(t, fresh); !slices.Equal(got, want) {
		t.Errorf("%s has\n%s\nand a new database\n%s", file, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	migratetest.CheckRows(t, string(text), "lease", "node") // those are of processes that run
}

// A database of each version has its data and the tables of a new one after it was opened; a run that waits in it is resumed.
func TestDatabasesOfEachVersion(t *testing.T) {
	testdata.WithoutRace(t)
	t.Parallel()
	fresh := pgtest.URL(t)
	accepted(t, fresh, nil)
	want := tables(t, fresh)
	for version := 1; version <= postgres.SchemaVersion(); version++ {
		source, has := loadVersion(t, version), since.In(version)
		s := open(t, source)
		migratetest.Check(t, s, has)
		has = migratetest.Complete(t, s, has)
		s = open(t, source) // there is nothing to migrate
		migratetest.Check(t, s, has)
		if got := tables(t, source); !slices.Equal(got, want) {
			t.Errorf("version %d has\n%s\nand a new database\n%s", version, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if n := one[int](t, source, "SELECT count(*)::int FROM lathe_schema"); n != postgres.SchemaVersion() {
			t.Errorf("version %d: %d versions are recorded", version, n)
		}
		migratetest.Resume(t, s)
	}
}

// schemaOf returns the name of the schema of a URL.
func schemaOf(t *testing.T, source string) string {
	t.Helper()
	u, err := url.Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get("search_path")
}

// tables returns what the server says of the tables, columns, constraints and indexes of a schema.
func tables(t *testing.T, source string) []string {
	t.Helper()
	const query = `WITH c AS (SELECT c.* FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'i', 'S'))
		SELECT string_agg(line, E'\n' ORDER BY line) FROM (
		SELECT format('%s %s %s', relkind, relname, reloptions) FROM c
		UNION ALL SELECT format('%s.%s %s %s null=%s identity=%s collation=%s %s', c.relname, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), NOT a.attnotnull, a.attidentity, a.attcollation::regcollation, pg_get_expr(d.adbin, d.adrelid))
			FROM c JOIN pg_attribute a ON a.attrelid = c.oid LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum WHERE c.relkind = 'r' AND a.attnum > 0
		UNION ALL SELECT format('%s %s valid=%s', c.relname, pg_get_indexdef(c.oid), i.indisvalid) FROM c JOIN pg_index i ON i.indexrelid = c.oid
		UNION ALL SELECT format('%s %s', o.conname, pg_get_constraintdef(o.oid)) FROM c JOIN pg_constraint o ON o.conrelid = c.oid) x (line)`
	return strings.Split(strings.ReplaceAll(one[string](t, source, query), schemaOf(t, source)+".", ""), "\n")
}

var (
	// notOfTheSchema are lines of pg_dump that set up a session.
	notOfTheSchema = regexp.MustCompile(`(?m)^(--.*|SET .*|SELECT pg_catalog\.set_config.*|CREATE SCHEMA .*|\\.*)?\n`)
	blobs          = regexp.MustCompile(`'\\x([0-9a-f]+)'`)
)

// dump returns the statements that make a copy of a schema in the first schema of the search_path.
func dump(t *testing.T, source string) string {
	t.Helper()
	u, err := url.Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	u.RawQuery = url.Values{"host": {u.Query().Get("host")}, "port": {u.Query().Get("port")}}.Encode()
	out, err := exec.CommandContext(t.Context(), "pg_dump", "--schema="+schemaOf(t, source), "--inserts", "--no-owner", "--no-privileges", u.String()).Output()
	if err != nil {
		t.Fatal(err)
	}
	text := notOfTheSchema.ReplaceAllString(strings.ReplaceAll(string(out), schemaOf(t, source)+".", ""), "")
	// Bytes that are text are written as text.
	text = blobs.ReplaceAllStringFunc(text, func(literal string) string {
		b, err := hex.DecodeString(literal[3 : len(literal)-1])
		if err != nil || !utf8.Valid(b) || slices.ContainsFunc([]rune(string(b)), func(r rune) bool { return r < ' ' }) {
			return literal
		}
		return "convert_to('" + strings.ReplaceAll(string(b), "'", "''") + "', 'UTF8')"
	})
	version := one[int](t, source, "SELECT max(version) FROM lathe_schema")
	return fmt.Sprintf("-- A database of schema version %d, as a program of that version wrote it. Approvals and runs in it do not expire.\n%s", version, text)
}
