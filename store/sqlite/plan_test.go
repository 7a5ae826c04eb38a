package sqlite_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
)

// A page of a list is read from an index in its order: what waits beside it is not looked at.
func TestListsReadNoMoreThanTheyShow(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	open(t, path)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for _, columns := range [][]string{{"status"}, {"session_id"}, {"principal"}, {"principal", "status"}} {
		where, args := "1", []any{}
		var found []string
		for _, column := range columns {
			where, args, found = where+" AND "+column+" = ?", append(args, "x"), append(found, column+"=?")
		}
		s := planOf(t, db, "SELECT summary FROM run WHERE "+where+" ORDER BY started DESC, run_id DESC LIMIT ?", append(args, 51)...)
		if !strings.Contains(s, "USING INDEX run_") || !strings.Contains(s, "("+strings.Join(found, " AND ")+")") || strings.Contains(s, "B-TREE") {
			t.Errorf("by %v: %s", columns, s)
		}
	}
}

// planOf returns how SQLite answers a query, a line for each step.
func planOf(t *testing.T, db *sql.DB, query string, args ...any) string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var plan strings.Builder
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(detail + "\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return plan.String()
}

// What has ended first is found in an index that appends to other runs do not write.
func TestRetentionReadsTheEndedAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	open(t, path)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	var id, parent, unused int
	var detail string
	const query = "EXPLAIN QUERY PLAN SELECT run_id FROM run WHERE updated < ? AND status NOT IN ('running', 'parked') ORDER BY updated LIMIT ?"
	if err := db.QueryRowContext(t.Context(), query, 1, 1).Scan(&id, &parent, &unused, &detail); err != nil || !strings.Contains(detail, "INDEX run_ended (updated<?)") {
		t.Errorf("%s, %v", detail, err)
	}
	var n int
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM sqlite_master WHERE type = 'index' AND tbl_name = 'run' AND sql LIKE '%updated%' AND sql NOT LIKE '%WHERE%'").Scan(&n); err != nil || n != 0 {
		t.Errorf("%d indexes are written with each append, %v", n, err)
	}
}
