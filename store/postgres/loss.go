package postgres

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lathe-run/lathe"
)

var _ lathe.LossWatcher = (*Store)(nil)

// maxEnds bounds the runs of which a process knows what was confirmed to it.
const maxEnds = 16_384

// A memory is what a process knows of its server: which one it is, and where the logs end that the process
// has written to lately.
type memory struct {
	mu   sync.Mutex
	ends map[string]logEnd // by run

	meeting sync.Mutex // held while a server is compared with what is known
	began   time.Time  // when the server was started; under meeting

	telling sync.Mutex
	tell    func(lost []string) // nil: nobody wants to know
	untold  []string
	changed bool // nobody was told
}

// A logEnd is where a log ends, as it was confirmed.
type logEnd struct {
	last, mark int64
	over       bool
}

// confirm notes where a log ends.
func (m *memory) confirm(runID string, e logEnd) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ends == nil {
		m.ends = map[string]logEnd{}
	}
	if _, known := m.ends[runID]; !known && len(m.ends) >= maxEnds {
		for id := range m.ends { // any: it is a safeguard, not the promise
			delete(m.ends, id)
			break
		}
	}
	m.ends[runID] = e
}

// forget forgets runs that this process has deleted.
func (m *memory) forget(runIDs []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range runIDs {
		delete(m.ends, id)
	}
}

// meet compares the server of a new connection with what is known, before the connection is used. A server
// that was started at another time is another one, or has been down: a standby that has taken over, an older
// copy, or the same one again.
func (s *Store) meet(ctx context.Context, conn *pgx.Conn) error {
	m := &s.memory
	var began time.Time
	if err := conn.QueryRow(ctx, "SELECT pg_postmaster_start_time()").Scan(&began); err != nil {
		return err
	}
	m.meeting.Lock() // nothing is done on a server that was not looked at
	defer m.meeting.Unlock()
	if m.began.Equal(began) {
		return nil
	}
	if !m.began.IsZero() {
		lost, err := s.compare(ctx, conn)
		if err != nil {
			return err
		}
		m.report(lost)
	}
	m.began = began
	return nil
}

// compare returns the runs whose logs lack what was confirmed, and forgets what it knew of them. A run that had
// ended and is not there at all is left out, as another process may have deleted it; one that had not may have
// been deleted, too, but that is rare.
func (s *Store) compare(ctx context.Context, conn *pgx.Conn) ([]string, error) {
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

// report tells whoever watches, or will.
func (m *memory) report(lost []string) {
	m.telling.Lock()
	defer m.telling.Unlock()
	if m.tell == nil {
		m.untold, m.changed = append(m.untold, lost...), true
		return
	}
	m.tell(lost)
}

// WatchLosses implements [lathe.LossWatcher].
func (s *Store) WatchLosses(ctx context.Context, fn func(lost []string)) {
	m := &s.memory
	m.telling.Lock()
	if m.changed {
		fn(m.untold)
		m.untold, m.changed = nil, false
	}
	m.tell = fn
	m.telling.Unlock()
	<-ctx.Done()
	m.telling.Lock()
	defer m.telling.Unlock()
	m.tell = nil
}
