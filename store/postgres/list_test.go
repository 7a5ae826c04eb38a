package postgres_test

import (
	"fmt"
	"testing"

	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/testkit/pgtest"
	"github.com/lathe-run/lathe/internal/testkit/storetest"
	"github.com/lathe-run/lathe/store"
)

// The model calls of a principal come in the same order and with the same filters, whether it has few runs or many.
func TestModelCallsOfPrincipalsWithFewAndManyRuns(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s := open(t, url)
	const many = 2_100
	execute(t, url, fmt.Sprintf(`INSERT INTO run (run_id, last_id, mark, started, updated, session_id, principal, status, resumable, ended, summary)
		SELECT 'run_' || i, 1, 0, i, i, '', CASE WHEN i > %d THEN 'few' ELSE 'many' END, CASE i %% 2 WHEN 0 THEN 'completed' ELSE 'failed' END, false, true, '{}' FROM generate_series(1, %d) i`, many, many+10))
	execute(t, url, fmt.Sprintf(`INSERT INTO model_call (run_id, event_id, time, summary)
		SELECT 'run_' || i, 2, i, convert_to('{"run_id":"run_' || i || '","event_id":2,"time":"1970-01-01T00:00:00.' || lpad(i::text, 9, '0') || 'Z"}', 'UTF8') FROM generate_series(1, %d) i`, many+10))
	storetest.TestModelCallsOfPrincipals(t, s, many)
}

// A page of a key with many runs is read in the order of an index, also where the statistics say that a key has few: with a bitmap
// of an index, all runs of the key would be read and sorted.
func TestListsReadOnePage(t *testing.T) {
	t.Parallel()
	testdata.WithoutRace(t)
	url := pgtest.URL(t)
	if err := open(t, url).Close(); err != nil {
		t.Fatal(err)
	}
	execute(t, url, `INSERT INTO run (run_id, last_id, mark, started, updated, session_id, principal, status, resumable, ended, summary)
		SELECT 'run_' || i, 1, 0, i, i, '', CASE i % 2 WHEN 0 THEN 'large' ELSE 'key' || (i % 1000) END, 'completed', false, true, '{}' FROM generate_series(1, 40000) i`)
	execute(t, url, "ANALYZE run")
	const read = "SELECT coalesce(sum(idx_tup_read), 0)::int FROM pg_stat_user_indexes WHERE schemaname = current_schema() AND relname = 'run'"
	before := one[int](t, url, read)
	s := open(t, url)
	rows, _, err := s.Runs(t.Context(), &store.RunFilter{Principal: "large", Limit: 1000})
	if err != nil || len(rows) != 1000 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	if err := s.Close(); err != nil { // a connection that ends reports what it has read
		t.Fatal(err)
	}
	n := 0
	until(t, "the server says what was read", func() bool { n = one[int](t, url, read) - before; return n >= 1000 })
	if n > 2000 {
		t.Errorf("%d entries of indexes were read for a page of 1,000 runs", n)
	}
}
