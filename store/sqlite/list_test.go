package sqlite_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/lathe-run/lathe/store"
)

// The model calls of a principal come in the same order and with the same filters, whether it has few runs or many.
func TestModelCallsOfPrincipalsWithFewAndManyRuns(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	s := open(t, path)
	const many = 2_100
	series := fmt.Sprintf("(WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < %d) SELECT i FROM c)", many+10)
	execute(t, path, fmt.Sprintf(`INSERT INTO run (run_id, last_id, started, updated, session_id, principal, status, summary)
		SELECT 'run_' || i, 1, i, i, '', CASE WHEN i > %d THEN 'few' ELSE 'many' END, CASE i %% 2 WHEN 0 THEN 'completed' ELSE 'failed' END, '{}' FROM `, many)+series)
	execute(t, path, `INSERT INTO model_call (run_id, event_id, time, summary)
		SELECT 'run_' || i, 2, i, '{"run_id":"run_' || i || '","event_id":2,"time":"1970-01-01T00:00:00.' || printf('%09d', i) || 'Z"}' FROM `+series)
	for _, c := range []struct {
		filter store.RunFilter
		ids    []int // from, to, each
	}{
		{store.RunFilter{Principal: "many"}, []int{many, 1, 1}},
		{store.RunFilter{Principal: "few"}, []int{many + 10, many + 1, 1}},
		{store.RunFilter{Principal: "many", Status: "failed", Since: time.Unix(0, 5), Until: time.Unix(0, 1000)}, []int{999, 5, 2}},
		{store.RunFilter{Principal: "few", Status: "failed", Since: time.Unix(0, many+3), Until: time.Unix(0, many+8)}, []int{many + 7, many + 3, 2}},
		{store.RunFilter{Principal: "none"}, []int{0, 1, 1}},
		{store.RunFilter{Principal: "many", RunID: "run_7"}, []int{7, 7, 1}},
	} {
		c.filter.Limit = 700
		next := c.ids[0]
		for page := 0; page == 0 || c.filter.After != ""; page++ {
			rows, after, err := s.ModelCalls(t.Context(), &c.filter)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rows {
				if want := fmt.Sprint("run_", next); r.RunID != want {
					t.Fatalf("%+v: %s, want %s", c.filter, r.RunID, want)
				}
				next -= c.ids[2]
			}
			c.filter.After = after
		}
		if next >= c.ids[1] {
			t.Errorf("%+v: the rows end before run_%d", c.filter, next)
		}
	}
}
