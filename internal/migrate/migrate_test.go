package migrate_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/lathe-run/lathe/internal/migrate"
)

func schemaOf(names ...string) *migrate.Schema {
	files := fstest.MapFS{}
	for _, name := range names {
		files["migrations/"+name] = &fstest.MapFile{Data: []byte(name)}
	}
	return &migrate.Schema{Files: files, Newer: "schema %d, known is %d"}
}

// A database records what is done with it.
type database struct {
	version int
	log     []string
	fails   string // the script that fails
	locked  func() // called when the lock is held
}

func (d *database) Version(context.Context) (int, error) { return d.version, nil }

func (d *database) Apply(_ context.Context, has int, scripts []migrate.Script) error {
	if d.locked != nil {
		d.locked()
	}
	if d.version != has {
		return nil
	}
	var done []string
	for _, s := range scripts {
		if s.Text == d.fails {
			return errors.New("a fault of " + s.Text)
		}
		done = append(done, s.Text)
	}
	d.version += len(scripts)
	d.log = append(d.log, strings.Join(done, " "))
	return nil
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	three := schemaOf("0003_c.sql", "0001_a.sql", "0002_b.sql")
	for _, tc := range []struct {
		name      string
		db        database
		want      string
		wantError string
		version   int
	}{
		{"an empty database gets all in one transaction", database{}, "0001_a.sql 0002_b.sql 0003_c.sql", "", 3},
		{"an older one gets a transaction for each version", database{version: 1}, "0002_b.sql, 0003_c.sql", "", 3},
		{"a current one is only read", database{version: 3}, "", "", 3},
		{"a fault undoes its version alone", database{version: 1, fails: "0003_c.sql"}, "0002_b.sql", "a fault of 0003_c.sql", 2},
		{"a fault leaves an empty database empty", database{fails: "0003_c.sql"}, "", "a fault of 0003_c.sql", 0},
		{"a newer one is refused", database{version: 4}, "", "schema 4, known is 3", 4},
		{"a damaged version is refused", database{version: -1}, "", "has -1 as the version", -1},
	} {
		err := three.Update(t.Context(), &tc.db)
		if got := strings.Join(tc.db.log, ", "); got != tc.want || tc.db.version != tc.version {
			t.Errorf("%s: %s, version %d, want %s, %d", tc.name, got, tc.db.version, tc.want, tc.version)
		}
		if (err == nil) != (tc.wantError == "") || err != nil && !strings.Contains(err.Error(), tc.wantError) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.wantError)
		}
	}
}

// The version is read again after another process has migrated the database before this one had the lock.
func TestUpdateReadsTheVersionAgain(t *testing.T) {
	t.Parallel()
	for other, want := range map[int]string{2: "", 3: "schema 3, known is 2"} {
		db := &database{version: 1}
		db.locked = func() { db.version = other }
		err := schemaOf("0001_a.sql", "0002_b.sql").Update(t.Context(), db)
		if got := strings.Join(db.log, ", "); strings.Contains(got, ".sql") || db.version != other || (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("version %d meanwhile: %s, version %d, %v", other, got, db.version, err)
		}
	}
}

// The number of a script is the version that it makes.
func TestScriptsAreNumbered(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		names []string
		want  string
	}{
		{[]string{"0001_a.sql", "0002_b.sql"}, ""},
		{[]string{"0001_a.sql", "0003_b.sql"}, "migrations/0003_b.sql is not in order: want migrations/0002_NAME.sql"},
		{[]string{"0001_a.sql", "0002_b.sql", "0002_c.sql"}, "0002_c.sql"},
		{[]string{"0000_a.sql"}, "0000_a.sql"},
		{[]string{"0001_a.sql", "2_b.sql"}, "2_b.sql"},
	} {
		scripts, err := schemaOf(tc.names...).Scripts()
		if tc.want == "" && (err != nil || len(scripts) != len(tc.names) || scripts[1].Version != 2 || scripts[1].Text != tc.names[1]) {
			t.Errorf("%v: %v, %v", tc.names, scripts, err)
		}
		if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%v: %v, want %q", tc.names, err, tc.want)
		}
		if err := schemaOf(tc.names...).Update(t.Context(), &database{}); (err == nil) != (tc.want == "") {
			t.Errorf("%v: update: %v", tc.names, err)
		}
	}
}

// The comments of scripts name files that exist.
func TestScriptsNameFilesThatExist(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob("../../store/*/migrations/*.sql")
	if err != nil || len(scripts) < 20 {
		t.Fatalf("%d scripts, %v", len(scripts), err)
	}
	named := regexp.MustCompile(`[\w/]+\.(?:go|sql)\b`)
	found := 0
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			_, comment, _ := strings.Cut(line, "--")
			for _, name := range named.FindAllString(comment, -1) {
				found++
				if _, err := os.Stat(filepath.Join(filepath.Dir(script), "..", name)); err != nil {
					t.Errorf("%s: %v", script, err)
				}
			}
		}
	}
	if found == 0 {
		t.Error("no script names a file: the search is broken")
	}
}
