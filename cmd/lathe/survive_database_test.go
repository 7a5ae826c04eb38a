package main

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"testing"

	"github.com/lathe-run/lathe/store/postgres/pgtest"
)

// F4: the database of two `lathe serve` is killed again and again, and so are they, without a warning. What one
// leaves, the other goes on with; clients ask whoever is there.
func TestF4_DatabaseKilledUnderLoad(t *testing.T) {
	t.Parallel()
	db := pgtest.Start(t)
	survive(t, db.Schema(t), cycles(t)/3, func(rng *rand.Rand, _ int) bool {
		if rng.IntN(2) != 0 {
			return false
		}
		db.Kill()
		db.Restart(t)
		return true
	})
}

// F5: the database is killed and its synchronous standby takes over under load. The URL names both.
func TestF5_StandbyTakesOverUnderLoad(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t)
	schema, err := url.Parse(primary.Schema(t))
	if err != nil {
		t.Fatal(err)
	}
	standby := primary.Standby(t)
	q := schema.Query()
	q.Set("host", primary.Dir()+","+standby.Dir())
	q.Set("port", "5432,5432")
	schema.RawQuery = q.Encode()
	n := max(cycles(t)/6, 3)
	survive(t, schema.String(), n, func(_ *rand.Rand, k int) bool {
		if k != n/2 {
			return false
		}
		primary.Kill()
		standby.Promote(t)
		return true
	})
}

// survive has two `lathe serve` on one store work, and n times something befall them: what befalls does, or else
// one of them is killed. In the end every promise must have been kept.
func survive(t *testing.T, store string, n int, befalls func(rng *rand.Rand, k int) bool) {
	t.Helper()
	x := newTrial(t, "cluster: {lease: 2s}\n")
	rng := rand.New(rand.NewPCG(2, 1))
	nodes := []*proc{x.serves(store), x.serves(store)}
	for i := range 4 {
		x.clients.Go(func() { x.client(fmt.Sprintf("client%d", i)) })
	}
	for k := range n {
		for range 1 + rng.IntN(20) {
			select {
			case <-x.stirs:
			case <-x.ctx.Done():
				t.Fatal("nothing happens any more")
			}
		}
		if befalls(rng, k) {
			continue
		}
		i := rng.IntN(len(nodes))
		x.kills(nodes[i])
		nodes[i] = x.serves(store)
	}
	x.ends(store, n)
}
