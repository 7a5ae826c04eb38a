package postgres_test

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/testkit/pgtest"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/store/postgres"
)

// size is about that of an event with a tool's result.
const size = 600

func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 16, 64, 256} {
		b.Run(strconv.Itoa(writers), func(b *testing.B) {
			s := open(b, pgtest.URL(b))
			var mu sync.Mutex
			var took []time.Duration
			var wg sync.WaitGroup
			b.ResetTimer()
			for w := range writers {
				wg.Go(func() {
					var mine []time.Duration
					c := store.Claim{RunID: fmt.Sprintf("run_%d", w), Node: "node_1", Lease: time.Minute}
					last, err := s.AppendAs(b.Context(), c, 0, started(c.RunID))
					c.Epoch = 1
					for n := 0; n < b.N/writers && err == nil; n++ {
						from := time.Now()
						last, err = s.AppendAs(b.Context(), c, last, result(c.RunID, last+1, size))
						mine = append(mine, time.Since(from))
					}
					if err != nil {
						b.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					took = append(took, mine...)
				})
			}
			wg.Wait()
			b.StopTimer()
			report(b, took)
			b.ReportMetric(float64(len(took))/b.Elapsed().Seconds(), "appends/s")
		})
	}
}

// A claim among runs that wait, of which one has something new.
func BenchmarkClaim(b *testing.B) {
	for _, waiting := range []int{0, 10_000, 100_000} {
		b.Run(strconv.Itoa(waiting), func(b *testing.B) {
			url := pgtest.URL(b)
			s := open(b, url)
			park(b, s, url, waiting)
			c := store.Claim{RunID: "run_new", Node: "node_1", Lease: time.Hour}
			if _, err := s.AppendAs(b.Context(), c, 0, started(c.RunID), paused(c.RunID, 2)); err != nil {
				b.Fatal(err)
			}
			c.Epoch = 1
			if err := s.Release(b.Context(), c, 2); err != nil {
				b.Fatal(err)
			}
			var took []time.Duration
			b.ResetTimer()
			for n := range b.N {
				if err := s.PutSignal(b.Context(), store.Signal{RunID: c.RunID, Kind: "result", Key: strconv.Itoa(n)}); err != nil {
					b.Fatal(err)
				}
				from := time.Now()
				got, err := s.Claim(b.Context(), "node_1", time.Hour, 10)
				took = append(took, time.Since(from))
				if err != nil || len(got) != 1 || got[0].RunID != c.RunID {
					b.Fatalf("%+v, %v", got, err)
				}
				if err := s.Release(b.Context(), got[0], 2); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			report(b, took)
		})
	}
}

// Renewing the claims of a node that owns many runs.
func BenchmarkRenew(b *testing.B) {
	for _, held := range []int{100, 5_000} {
		b.Run(strconv.Itoa(held), func(b *testing.B) {
			url := pgtest.URL(b)
			s := open(b, url)
			park(b, s, url, held)
			execute(b, url, "UPDATE run SET owner = 'node_1', status = 'running', lease_until = now() + interval '1 hour'")
			if _, err := s.Renew(b.Context(), "node_1", time.Hour); err != nil { // what was claimed before
				b.Fatal(err)
			}
			b.ResetTimer()
			for range b.N {
				if got, err := s.Renew(b.Context(), "node_1", time.Hour); err != nil || len(got) != held {
					b.Fatalf("%d, %v", len(got), err)
				}
			}
		})
	}
}

// park makes runs that wait for a person, and copies of the first with its events.
func park(b *testing.B, s *postgres.Store, url string, n int) {
	b.Helper()
	if n == 0 {
		return
	}
	c := store.Claim{RunID: "run_0", Node: "node_1", Lease: time.Hour}
	asked := event.Event{ID: 2, RunID: c.RunID, Time: time.Now(), Data: &event.ApprovalRequested{ToolCallID: "c1", ExpiresAt: time.Now().Add(24 * time.Hour)}}
	if _, err := s.AppendAs(b.Context(), c, 0, started(c.RunID), asked, paused(c.RunID, 3)); err != nil {
		b.Fatal(err)
	}
	c.Epoch = 1
	if err := s.Release(b.Context(), c, 3); err != nil {
		b.Fatal(err)
	}
	const columns = "last_id, mark, started, updated, session_id, principal, status, resumable, ended, wake_at, summary, seen_id, seen_facts, epoch, owner, lease_until"
	execute(b, url, "INSERT INTO run (run_id, "+columns+") SELECT 'copy_' || i, "+columns+" FROM run, generate_series(2, $1::int) i", n)
	execute(b, url, "INSERT INTO event SELECT 'copy_' || i, id, mark, body FROM event, generate_series(2, $1::int) i", n)
	execute(b, url, "ANALYZE")
}

func report(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	if len(took) > 0 {
		b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	}
}
