package postgres

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/lathe-run/lathe/store"
)

var _ store.LossWatcher = (*Store)(nil)

// maxEnds is the maximum number of runs in memory.ends.
const maxEnds = 16_384

// A memory contains the start time of the server, and the ends of the logs to which this process has written recently.
type memory struct {
	mu   sync.Mutex
	ends map[string]logEnd // by run id; guarded by mu

	checking sync.Mutex // locked while the logs of the server are compared with ends
	began    time.Time  // start time of the server; guarded by checking

	delivery    sync.Mutex          // guards the fields below
	deliver     func(lost []string) // nil: no watcher is registered
	undelivered []string
	changed     bool // the server has changed and no watcher was notified
}

// A logEnd is the confirmed end of a log.
type logEnd struct {
	last, mark int64 // ID and mark of the last event
	over       bool  // the run has ended
}

// confirm records the end of a log.
func (m *memory) confirm(runID string, e logEnd) {
	m.mu.Lock()
	defer m.mu.Unlock()
	putBounded(m.ends, runID, e, maxEnds) // the detection of losses need not be complete
}

// forget removes the runs that this process has deleted.
func (m *memory) forget(runIDs []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range runIDs {
		delete(m.ends, id)
	}
}

// checkRestart checks the server of a new connection before the connection is used. If the server's start time has changed, the server was
// restarted, a standby has replaced it, or it is an older copy: checkRestart then compares its logs with the confirmed ends.
func (s *Store) checkRestart(ctx context.Context, conn *pgx.Conn) error {
	m := &s.memory
	var began time.Time
	if err := conn.QueryRow(ctx, "SELECT pg_postmaster_start_time()").Scan(&began); err != nil {
		return err
	}
	m.checking.Lock() // no connection is used before its server was checked
	defer m.checking.Unlock()
	if m.began.Equal(began) {
		return nil
	}
	if !m.began.IsZero() {
		lost, err := s.lostRuns(ctx, conn)
		if err != nil {
			return err
		}
		m.report(lost)
	}
	m.began = began
	return nil
}

// lostRuns returns the runs whose logs lack confirmed events, and removes them from ends. It ignores an ended run that does not exist on the
// server, because another process may have deleted it. A deleted run that had not ended is rare, and is returned.
func (s *Store) lostRuns(ctx context.Context, conn *pgx.Conn) ([]string, error) {
	m := &s.memory
	m.mu.Lock()
	var ids []string
	var lasts, marks []int64
	var overs []bool
	for id, e := range m.ends {
		ids, lasts, marks, overs = append(ids, id), append(lasts, e.last), append(marks, e.mark), append(overs, e.over)
	}
	m.mu.Unlock()
	rows, err := conn.Query(ctx, `SELECT k.run_id FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bool[]) AS k(run_id, last, mark, over)
		LEFT JOIN run r ON r.run_id = k.run_id LEFT JOIN event e ON e.run_id = k.run_id AND e.id = k.last
		WHERE e.mark IS DISTINCT FROM k.mark AND (r.run_id IS NOT NULL OR NOT k.over AND NOT EXISTS (SELECT FROM gone g WHERE g.run_id = k.run_id))`, ids, lasts, marks, overs)
	if err != nil {
		return nil, err
	}
	lost, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	slices.Sort(lost)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range lost {
		delete(m.ends, id)
	}
	return lost, nil
}

// report passes the lost runs to the watcher. If none exists, it stores them for the first watcher.
func (m *memory) report(lost []string) {
	m.delivery.Lock()
	defer m.delivery.Unlock()
	if m.deliver == nil {
		m.undelivered, m.changed = append(m.undelivered, lost...), true
		return
	}
	m.deliver(lost)
}

// WatchLosses implements [store.LossWatcher].
func (s *Store) WatchLosses(ctx context.Context, fn func(lost []string)) {
	m := &s.memory
	m.delivery.Lock()
	if m.changed {
		fn(m.undelivered)
		m.undelivered, m.changed = nil, false
	}
	m.deliver = fn
	m.delivery.Unlock()
	<-ctx.Done()
	m.delivery.Lock()
	defer m.delivery.Unlock()
	m.deliver = nil
}
