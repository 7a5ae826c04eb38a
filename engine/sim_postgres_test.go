package engine_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe/internal/testkit/enginetest"
	"github.com/lathe-run/lathe/internal/testkit/pgtest"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/store/postgres"
)

// A database is a schema of a PostgreSQL server in which simulations run: what it keeps, locks and commits is
// the server's, and the time is the simulation's.
type database struct {
	clock *pgtest.Clock
	proxy *pgtest.Proxy // between the processes and the server
}

func newDatabase(t *testing.T) *database {
	t.Helper()
	clock := pgtest.NewClock(t, pgtest.URL(t))
	return &database{clock: clock, proxy: pgtest.NewProxy(t, clock.URL)}
}

// open returns options with the database as the store, of which each process has connections of its own, and
// knowledge of its own.
func (d *database) open(t *testing.T) enginetest.Options {
	t.Helper()
	d.clock.Set(time.Now())
	o := enginetest.Options{Clock: d.clock.Set, Store: openPostgres(t, d.clock.URL)}
	for range 3 { // as many processes as may live at once
		o.Own = append(o.Own, openPostgres(t, d.proxy.URL))
	}
	return o
}

func openPostgres(t *testing.T, url string) store.RunIndex {
	t.Helper()
	s, err := postgres.Open(t.Context(), url, &postgres.Options{MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &hintless{s}
}

// hintless is a store whose notifications do not arrive: the time of the bubble would not pass while a goroutine waits for
// one from a server. The engine polls the store each second instead.
type hintless struct{ *postgres.Store }

// Watch implements [store.Shared].
func (*hintless) Watch(ctx context.Context, _ func(string)) error {
	<-ctx.Done()
	return ctx.Err()
}

// The histories of TestSimulatedRunsSurvive, where the store is PostgreSQL. In every third one connections
// break while answers are on their way.
func TestSimulatedRunsSurviveOnPostgres(t *testing.T) {
	t.Parallel()
	from, n := seeds(t, 16, 3) // a history takes a hundred times longer than one in memory
	n = min(n, 500)
	const groups = 2
	var mu sync.Mutex
	var cuts atomic.Int64
	table := &enginetest.Table{}
	t.Run("seeds", func(t *testing.T) {
		for group := range uint64(groups) {
			t.Run(fmt.Sprint("lane ", group), func(t *testing.T) {
				t.Parallel()
				d := newDatabase(t)
				for seed := from + group; seed < from+n; seed += groups {
					var h *enginetest.History
					var bad []enginetest.Violation
					synctest.Test(t, func(t *testing.T) {
						o := d.open(t)
						o.Seed, o.Prefix = seed, fmt.Sprintf("%d_", seed)
						if seed%3 == 0 {
							var answers atomic.Int64
							d.proxy.CutAnswers(func([]byte) bool {
								cut := answers.Add(1)%31 == 0
								if cut {
									cuts.Add(1)
								}
								return cut
							})
							defer d.proxy.CutAnswers(nil)
						}
						h = enginetest.Simulate(t, &o)
						bad = h.Check()
					})
					mu.Lock()
					table.Add(h, bad)
					mu.Unlock()
					if report(t, h, bad) {
						t.Fatalf("seed %d; again:\nLATHE_SOAK_FROM=%d LATHE_SOAK_SEEDS=1 go test -run TestSimulatedRunsSurviveOnPostgres ./engine", seed, seed)
					}
				}
			})
		}
	})
	if t.Failed() || table.Runs == 0 {
		return
	}
	t.Logf("%d seeds from %d, %d connections cut\n%s", n, from, cuts.Load(), table)
	if table.Kills == 0 || table.Resumed == 0 || n > 2 && cuts.Load() == 0 {
		t.Error("nothing has happened in these histories")
	}
}
