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

// summaries contains the summaries of running runs, so that an append need not read the log. Only the writer takes and changes them.
type summaries struct {
	mu    sync.Mutex
	byRun map[string]*store.Summary
}

// row returns a copy of the row of the run. ok is false if it is not in memory.
func (m *summaries) row(runID string) (row store.RunSummary, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.byRun[runID]
	if s == nil {
		return row, false
	}
	return s.Run, true
}

// knows reports whether the summary of the run up to last is in memory.
func (m *summaries) knows(runID string, last int64) bool {
	row, ok := m.row(runID)
	return ok && row.LastID == last && last > 0
}

// take returns the summary of the run up to last, and removes it from memory. If it is not in memory, take reads the log.
func (m *summaries) take(ctx context.Context, tx *sql.Tx, runID string, last int64) (*store.Summary, error) {
	m.mu.Lock()
	s := m.byRun[runID]
	delete(m.byRun, runID)
	m.mu.Unlock()
	if s != nil && s.Run.LastID == last {
		return s, nil
	}
	s = &store.Summary{}
	if last == 0 {
		return s, nil
	}
	return s, summarize(ctx, tx, s, selectEvents, runID, last)
}

// summarize applies the events of the run up to last.
func summarize(ctx context.Context, tx *sql.Tx, s *store.Summary, query, runID string, last int64) error {
	log := conversation.Log{Run: store.RunSummary{RunID: runID}}
	return each(ctx, tx, func(scan scanner) error {
		e, err := scanEvent(&log, scan)
		if err == nil {
			s.Apply(&e)
		}
		return err
	}, query+" WHERE event.run_id = ? AND id <= ? ORDER BY id", runID, last)
}

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
