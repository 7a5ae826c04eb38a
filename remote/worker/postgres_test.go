package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testkit/pgtest"
	"github.com/lathe-run/lathe/remote/worker"
	"github.com/lathe-run/lathe/store/postgres"
)

// Two gateways have one database and nothing else in common. The calls of runs on either reach workers on
// either; connections break under them, and one gateway ends: what writes runs once.
func TestTwoGatewaysOnPostgres(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	open := func() *postgres.Store {
		s, err := postgres.Open(t.Context(), url, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	nodes := []*node{startNode(t, open()), startNode(t, open())}
	defer nodes[0].stop()
	defer nodes[1].stop()
	var calls sync.Map // by key: how often
	act := func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
		n, _ := calls.LoadOrStore(lathe.CallMetaFrom(ctx).IdempotencyKey, new(atomic.Int32))
		n.(*atomic.Int32).Add(1)
		time.Sleep(20 * time.Millisecond)
		return &lathe.Output{Data: json.RawMessage(`"done"`)}, nil
	}
	nets := []*network{{}, {}}
	for i, net := range nets {
		net.lead(nodes[i])
		defer startWorker(t, net, &worker.Options{Name: fmt.Sprint("w", i)}, does(fmt.Sprint("act", i), lathe.Writes, act))()
	}
	for _, n := range nodes {
		n.has("act0", true)
		n.has("act1", true)
	}
	var wg sync.WaitGroup
	done := make(chan struct{}, 200)
	for i := range 60 {
		wg.Go(func() {
			n := nodes[i%2]
			if i >= 40 {
				n = nodes[1] // the other one is about to end
			}
			tool := fmt.Sprint("act", (i/2)%2)
			got := n.run(t.Context(), fmt.Sprint("run_", i), tool)
			if got.Content != "done" && got.Code != lathe.CodeInterrupted { // the call may have been on a line that broke
				t.Errorf("%d: %+v", i, got)
			}
			done <- struct{}{}
		})
		if i == 20 {
			nets[0].fail(true)
		}
		if i == 40 {
			for range 40 {
				<-done
			}
			nets[0].lead(nodes[1])
			nodes[0].stop()
		}
	}
	wg.Wait()
	n := 0
	calls.Range(func(_, v any) bool {
		n++
		if k := v.(*atomic.Int32).Load(); k != 1 {
			t.Errorf("a call was made %d times", k)
		}
		return true
	})
	if n < 30 {
		t.Errorf("%d calls were made", n)
	}
}
