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
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

// A tally counts what a node asks of its store.
type tally struct {
	*store.Memory
	mu                                 sync.Mutex
	claims, claimed, taken, read, rows int
}

func (l *tally) Claim(ctx context.Context, node string, lease time.Duration, limit int) ([]store.Claim, error) {
	got, err := l.Memory.Claim(ctx, node, lease, limit)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.claims++
	l.claimed += len(got)
	return got, err
}

func (l *tally) ClaimRun(ctx context.Context, node, runID string, lease time.Duration) (store.Claim, error) {
	l.mu.Lock()
	l.taken++
	l.mu.Unlock()
	return l.Memory.ClaimRun(ctx, node, runID, lease)
}

func (l *tally) Signals(ctx context.Context, runID string) ([]store.Signal, error) {
	l.mu.Lock()
	l.read++
	l.mu.Unlock()
	return l.Memory.Signals(ctx, runID)
}

func (l *tally) Runs(ctx context.Context, f *store.RunFilter) ([]store.RunSummary, string, error) {
	rows, next, err := l.Memory.Runs(ctx, f)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rows += len(rows)
	return rows, next, err
}

// F18: thousands of runs wait for approvers while all nodes are restarted: no node claims or reads the runs, and a run
// that gets an answer is resumed at once.
func TestF18_RunsThatWaitAreLeftAlone(t *testing.T) {
	t.Parallel()
	const waiting = 10_000
	synctest.Test(t, func(t *testing.T) {
		kept, c, d := store.NewMemory(&store.MemoryOptions{MaxRuns: waiting + 1}), &counter{}, &approvals{}
		for i := range waiting { // each was looked at, and released
			id := fmt.Sprintf("run_w%d", i)
			claim := store.Claim{RunID: id, Node: "before", Lease: time.Second}
			if _, err := kept.AppendAs(t.Context(), claim, 0,
				event.Event{ID: 1, RunID: id, Time: time.Now(), Data: &event.RunStarted{Input: []byte(`{"version":1}`)}},
				event.Event{ID: 2, RunID: id, Time: time.Now(), Data: &event.RunPaused{Reason: lathe.ReasonAwaitingApproval, Pending: []string{"a"}}}); err != nil {
				t.Fatal(err)
			}
			claim.Epoch = 1
			if err := kept.Release(t.Context(), claim, 2); err != nil {
				t.Fatal(err)
			}
		}
		l := askingLoopOf(t, model{pieces: 1}, d, c)
		if res, err := newEngine(t, &engine.Options{Store: kept}).Run(t.Context(), l, parkable("run_1"), nil); err != nil || res.Reason != lathe.ReasonAwaitingApproval {
			t.Fatalf("%+v, %v", res, err)
		}
		d.open.Store(true)
		if err := kept.PutSignal(t.Context(), store.Signal{RunID: "run_1", Kind: store.SignalApproval, Key: "a", Body: []byte(`{}`)}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var serving sync.WaitGroup
		lines := make([]*tally, 3)
		const long = 20 * time.Second
		for i := range lines {
			own := &tally{Memory: kept}
			lines[i] = own
			supervisor := newSupervisor(t, newEngine(t, &engine.Options{Store: own}), 0)
			loopFor := func(*store.RunSummary) (*loop.Loop, error) { return l, nil }
			serving.Go(func() {
				if n, err := supervisor.Recover(ctx, own, loopFor); err != nil || n > 1 {
					t.Errorf("it recovers %d runs, %v", n, err)
				}
				supervisor.Serve(ctx, &engine.ServeOptions{LoopFor: loopFor})
				supervisor.Drain(context.Background())
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
