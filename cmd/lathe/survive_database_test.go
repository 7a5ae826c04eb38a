package main

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/lathe-run/lathe/store/postgres"
	"github.com/lathe-run/lathe/store/postgres/pgtest"
)

// F4: the database of two `lathe serve` is killed again and again, and so are they, without a warning. What one
// leaves, the other goes on with; clients ask whoever is there.
func TestF4_DatabaseKilledUnderLoad(t *testing.T) {
	t.Parallel()
	db := pgtest.Start(t)
	store := db.Schema(t)
	x := newTrial(t, "cluster: {lease: 2s}\n")
	rng := rand.New(rand.NewPCG(2, 1))
	nodes := []*proc{x.serves(store), x.serves(store)}
	for i := range 4 {
		x.clients.Go(func() { x.client(fmt.Sprintf("client%d", i)) })
	}
	n := cycles(t) / 3
	for range n {
		for range 1 + rng.IntN(20) {
			select {
			case <-x.stirs:
			case <-x.ctx.Done():
				t.Fatal("nothing happens any more")
			}
		}
		if rng.IntN(2) == 0 {
			db.Kill()
			db.Restart(t)
			continue
		}
		i := rng.IntN(len(nodes))
		x.kills(nodes[i])
		nodes[i] = x.serves(store)
	}
	close(x.settling)
	x.clients.Wait()
	s, err := postgres.Open(t.Context(), store, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	x.judge(s, n)
}
