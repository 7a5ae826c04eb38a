package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

// A tally counts what a node asks of its store.
type tally struct {
	*store.Memory
	mu                                 sync.Mutex
	claims, claimed, taken, read, rows int
}

func (l *tally) Claim(ctx context.Context, node string, lease time.Duration, limit int) ([]lathe.Claim, error) {
	got, err := l.Memory.Claim(ctx, node, lease, limit)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.claims++
	l.claimed += len(got)
	return got, err
}

func (l *tally) Take(ctx context.Context, node, runID string, lease time.Duration) (lathe.Claim, error) {
	l.mu.Lock()
	l.taken++
	l.mu.Unlock()
	return l.Memory.Take(ctx, node, runID, lease)
}

func (l *tally) Facts(ctx context.Context, runID string) ([]lathe.Fact, error) {
	l.mu.Lock()
	l.read++
	l.mu.Unlock()
	return l.Memory.Facts(ctx, runID)
}

func (l *tally) Runs(ctx context.Context, f *lathe.RunFilter) ([]lathe.RunSummary, string, error) {
	rows, next, err := l.Memory.Runs(ctx, f)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rows += len(rows)
	return rows, next, err
}

// F18: thousands of runs wait for people while all nodes are started anew: nobody claims or reads them, and a run
// to which an answer came goes on at once.
func TestF18_RunsThatWaitAreLeftAlone(t *testing.T) {
	t.Parallel()
	const waiting = 10_000
	synctest.Test(t, func(t *testing.T) {
		kept, c, d := store.NewMemory(&store.MemoryOptions{MaxRuns: waiting + 1}), &counter{}, &desk{}
		for i := range waiting { // each was looked at, and given back
			id := fmt.Sprintf("run_w%d", i)
			claim := lathe.Claim{RunID: id, Node: "before", Lease: time.Second}
			if _, err := kept.AppendAs(t.Context(), claim, 0,
				lathe.Event{ID: 1, RunID: id, Time: time.Now(), Data: &lathe.RunStarted{Input: []byte(`{"version":1}`)}},
				lathe.Event{ID: 2, RunID: id, Time: time.Now(), Data: &lathe.RunPaused{Reason: lathe.ReasonAwaitingApproval, Pending: []string{"a"}}}); err != nil {
				t.Fatal(err)
			}
			claim.Epoch = 1
			if err := kept.Release(t.Context(), claim, 2); err != nil {
				t.Fatal(err)
			}
		}
		l := askingLoopOf(t, model{pieces: 1}, d, c)
		if res, err := engine.New(&engine.Options{Store: kept}).Run(t.Context(), l, parkable("run_1")); err != nil || res.Reason != lathe.ReasonAwaitingApproval {
			t.Fatalf("%+v, %v", res, err)
		}
		d.open.Store(true)
		if err := kept.PutFact(t.Context(), lathe.Fact{RunID: "run_1", Kind: lathe.FactApproval, Key: "a", Body: []byte(`{}`)}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var serving sync.WaitGroup
		lines := make([]*tally, 3)
		const long = 20 * time.Second
		for i := range lines {
			own := &tally{Memory: kept}
			lines[i] = own
			crew := engine.NewCrew(engine.New(&engine.Options{Store: own}), 0)
			loopFor := func(*lathe.RunSummary) (*loop.Loop, error) { return l, nil }
			serving.Go(func() {
				if n, err := crew.Recover(ctx, own, loopFor); err != nil || n > 1 {
					t.Errorf("it recovers %d runs, %v", n, err)
				}
				crew.Serve(ctx, &engine.ServeOptions{LoopFor: loopFor})
				crew.Drain(context.Background())
			})
		}
		time.Sleep(long)
		cancel()
		serving.Wait()
		if reason, n := ends(t, kept, "run_1"); reason != lathe.ReasonAnswered || n != 1 || c.count() != 1 {
			t.Errorf("the run that was answered: %s, %d ends, the tool ran %d times", reason, n, c.count())
		}
		for i, l := range lines {
			if most := int(long/time.Second) + 3; l.claims > most || l.claimed+l.taken > 3 || l.rows > 3 || l.read > 6 {
				t.Errorf("node %d looked for runs %d times, claimed %d, took %d, listed %d, and read %d times what came to them", i, l.claims, l.claimed, l.taken, l.rows, l.read)
			}
		}
	})
}
