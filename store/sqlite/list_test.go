package sqlite_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/lathe-run/lathe/internal/testkit/storetest"
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
	storetest.TestModelCallsOfPrincipals(t, s, many)
}
