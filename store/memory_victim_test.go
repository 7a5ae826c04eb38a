package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// TestVictimIsTheFirstRunOfThePrincipalWithMost compares the lists of each principal with a search through all finished runs.
func TestVictimIsTheFirstRunOfThePrincipalWithMost(t *testing.T) {
	t.Parallel()
	for _, share := range []int{1, 4} {
		m := NewMemory(&MemoryOptions{MaxRuns: 1_000, Share: share})
		random := rand.New(rand.NewPCG(1, uint64(share)))
		search := func(has func(*usage) int64) (found string) {
			var most, ended int64
			for _, j := range m.kept.runs {
				n := has(j.usage)
				if share == 1 {
					n = 0
				}
				if j.over != nil && (found == "" || n > most || n == most && j.ended < ended) {
					found, most, ended = j.id, n, j.ended
				}
			}
			return found
		}
		for i := range 500 {
			id, principal := fmt.Sprintf("run_%d", i), fmt.Sprintf("p%d", random.IntN(4))
			at := time.Unix(int64(i), 0)
			started := event.Event{ID: 1, RunID: id, Time: at, Data: &event.RunStarted{Principal: principal}}
			finished := event.Event{ID: 2, RunID: id, Time: at, Data: &event.RunFinished{Reason: lathe.ReasonAnswered, Status: lathe.ReasonAnswered.Status()}}
			if _, err := m.Append(context.Background(), id, 0, started, finished); err != nil {
				t.Fatal(err)
			}
			for name, has := range map[string]func(*usage) int64{"count": (*usage).endedRuns, "weight": (*usage).endedBytes} {
				if got, want := m.kept.victim(has).id, search(has); got != want {
					t.Fatalf("share %d, after run %d, by %s: %s, want %s", share, i, name, got, want)
				}
			}
			for m.kept.finished > 20 {
				m.kept.retire(m.kept.victim((*usage).endedRuns))
			}
			if random.IntN(3) == 0 {
				m.kept.forget(m.kept.victim((*usage).endedBytes).id)
			}
			if m.kept.finished == 0 {
				continue
			}
			var own int
			for _, h := range m.kept.usages {
				own += h.finished.Len()
			}
			if own != m.kept.finished {
				t.Fatalf("the principals have %d finished runs, the store %d", own, m.kept.finished)
			}
		}
	}
}
