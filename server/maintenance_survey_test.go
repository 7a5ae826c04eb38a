package server_test

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
)

// A surveyed store counts what surveys of runs that wait read of it.
type surveyed struct {
	*store.Memory
	mu          sync.Mutex
	rows, reads int
}

func (s *surveyed) Runs(ctx context.Context, f *store.RunFilter) ([]store.RunSummary, string, error) {
	rows, next, err := s.Memory.Runs(ctx, f)
	if f.Status != "parked" {
		return rows, next, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows += len(rows)
	return rows, next, err
}

func (s *surveyed) Read(ctx context.Context, id string, after int64) iter.Seq2[event.Event, error] {
	s.mu.Lock()
	s.reads++
	s.mu.Unlock()
	return s.Memory.Read(ctx, id, after)
}

// On a store with 10,500 runs that wait, one survey of a process reads 10,000 rows and 200 logs.
func TestSurveysOfASharedStoreAreBounded(t *testing.T) {
	t.Parallel()
	testdata.WithoutRace(t)
	const runs = 10_500
	kept := &surveyed{Memory: store.NewMemory(&store.MemoryOptions{MaxRuns: runs})}
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i := range runs {
		id := fmt.Sprintf("run_%05d", i)
		events := []event.Event{
			{ID: 1, RunID: id, Time: began, Data: &event.RunStarted{Messages: []lathe.Message{lathe.User("x")}}},
			{ID: 2, RunID: id, Time: began, Data: &event.RunPaused{Reason: lathe.ReasonAwaitingApproval, Pending: []string{"c"}}},
		}
		if _, err := kept.Append(t.Context(), id, 0, events...); err != nil {
			t.Fatal(err)
		}
	}
	h := open(t, func(s *setting) {
		s.store = kept
		s.opts = func(o *server.Options) { o.Limits.Expiry = time.Hour } // one survey
	})
	h.tend()()
	kept.mu.Lock()
	defer kept.mu.Unlock()
	if kept.rows != 10_000 || kept.reads == 0 || kept.reads > 200 {
		t.Errorf("a survey reads %d rows and %d logs", kept.rows, kept.reads)
	}
}
