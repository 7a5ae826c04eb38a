package sqlite

import (
	"context"
	"database/sql"
	"sync"

	"github.com/lathe-run/lathe/internal/conversation"
	"github.com/lathe-run/lathe/store"
)

// maxSummaries is the maximum number of runs whose summaries are in memory between appends.
const maxSummaries = 1_024

// summaries contains the summaries of running runs, so that an append need not read the log.
type summaries struct {
	mu    sync.Mutex
	byRun map[string]*store.Summary
}

// take returns the summary of the run up to last and removes it from memory, or nil.
func (m *summaries) take(runID string, last int64) *store.Summary {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.byRun[runID]
	delete(m.byRun, runID)
	if s == nil || s.Run.LastID != last {
		return nil
	}
	return s
}

// summary returns the summary of the run up to last, for the caller to change. If it is not in memory, summary reads the log.
func (s *Store) summary(ctx context.Context, runID string, last int64) (*store.Summary, error) {
	if sum := s.runs.take(runID, last); sum != nil && last > 0 {
		return sum, nil
	}
	sum := &store.Summary{}
	if last == 0 {
		return sum, nil
	}
	return sum, s.snapshot(ctx, func(tx *sql.Tx) error { return summarize(ctx, tx, sum, s.events(), runID, last) })
}

// summarize applies the events of the run up to last to s. query is selectEvents or selectBodies.
func summarize(ctx context.Context, tx *sql.Tx, s *store.Summary, query, runID string, last int64) error {
	log := conversation.Log{Run: store.RunSummary{RunID: runID}}
	return each(ctx, tx, func(scan scanner) error {
		e, err := scanEvent(&log, scan, nil)
		if err == nil {
			s.Apply(&e)
		}
		return err
	}, query+" WHERE event.run_id = ? AND id <= ? ORDER BY id", runID, last)
}

// put adds the summary of a running run after an append. If there are too many, it first removes all others: they can be read again.
func (m *summaries) put(runID string, s *store.Summary) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byRun == nil || len(m.byRun) >= maxSummaries {
		m.byRun = map[string]*store.Summary{}
	}
	if s.Run.Status == "running" {
		m.byRun[runID] = s
	}
}

func (m *summaries) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.byRun = nil
}
