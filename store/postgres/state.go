package postgres

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/conversation"
	"github.com/lathe-run/lathe/store"
)

// maxStates is the maximum number of runs whose states are in memory between appends.
const maxStates = 8_192

// A state is the precondition of an append: the summary of a log, and the mark of the append that wrote its end. The mark distinguishes
// logs of the same length.
type state struct {
	sum  *store.Summary
	mark int64
}

// states contains the states of running runs to which this process has appended, so that an append need not read the log.
type states struct {
	mu    sync.Mutex
	byRun map[string]state
}

// take removes and returns the state of the run, because the append changes it: put adds it again. ok is false if it does not end at last.
func (m *states) take(runID string, last int64) (st state, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	st, ok = m.byRun[runID]
	delete(m.byRun, runID)
	return st, ok && st.sum.Run.LastID == last
}

// put adds the state after an append. It ignores a run that is not running, because its next append may be much later.
func (m *states) put(runID string, st state) {
	if st.sum.Run.Status != "running" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	putBounded(m.byRun, runID, st, maxStates) // a removed state can be read again
}

// putBounded adds a value to a map. If the map has limit values already, it first removes any one of them.
func putBounded[V any](m map[string]V, key string, value V, limit int) {
	if _, known := m[key]; !known && len(m) >= limit {
		for other := range m {
			delete(m, other)
			break
		}
	}
	m[key] = value
}

// state returns the state for an append after last. If the log does not end at last, it returns its end and a conflict.
func (s *Store) state(ctx context.Context, op, runID string, last int64) (st state, end int64, err error) {
	if last == 0 {
		return state{sum: &store.Summary{}}, 0, nil
	}
	if st, ok := s.states.take(runID, last); ok {
		return st, last, nil
	}
	err = s.retry(ctx, func(ctx context.Context) error {
		st, end = state{sum: &store.Summary{}}, 0
		rows, err := s.pool.Query(ctx, `SELECT r.last_id, r.mark, e.id, e.body, c.last FROM run r LEFT JOIN event e ON e.run_id = r.run_id AND e.id <= r.last_id AND r.last_id = $2
			LEFT JOIN conversation c ON c.run_id = e.run_id AND c.event_id = e.id WHERE r.run_id = $1 ORDER BY e.id`, runID, last)
		if err != nil {
			return err
		}
		log := conversation.Log{Run: store.RunSummary{RunID: runID}}
		var id *int64
		var body, messages []byte
		_, err = pgx.ForEachRow(rows, []any{&end, &st.mark, &id, (*pgtype.PreallocBytes)(&body), &messages}, func() error {
			if end != last {
				return nil
			}
			e, err := log.Decode(*id, body, messages, nil)
			if err != nil {
				return lathe.CodeInternal.Wrap(op, err)
			}
			st.sum.Apply(&e)
			return nil
		})
		return err
	})
	if err == nil && end != last {
		err = conflict(op)
	}
	return st, end, err
}
