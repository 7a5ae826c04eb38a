//go:build unix

package main

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/testkit/pgtest"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/store/postgres"
)

// F4: the database of two `lathe serve` processes and the processes are killed again and again, without a warning. Each
// resumes the runs of the other; clients send their requests to a process that is up.
func TestF4_DatabaseKilledUnderLoad(t *testing.T) {
	t.Parallel()
	testdata.NeedAll(t)
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
	testdata.NeedAll(t)
	primary := pgtest.Start(t)
	schema := primary.Schema(t)
	standby := primary.Standby(t)
	n := max(cycles(t)/6, 3)
	survive(t, either(t, schema, primary, standby), n, func(_ *rand.Rand, k int) bool {
		if k != n/2 {
			return false
		}
		primary.Kill()
		standby.Promote(t)
		return true
	})
}

// either names both servers in the URL of a schema.
func either(t *testing.T, schema string, primary, standby *pgtest.Server) string {
	t.Helper()
	u, err := url.Parse(schema)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("host", primary.Dir()+","+standby.Dir())
	q.Set("port", "5432,5432")
	u.RawQuery = q.Encode()
	return u.String()
}

// F6: the database is killed in the middle of runs, and a standby takes over that lacks the end of their logs.
// Each such run is set aside by the process that knows, and what was done is not done again by either.
func TestF6_StandbyThatLacksEventsUnderLoad(t *testing.T) {
	t.Parallel()
	testdata.NeedAll(t)
	primary := pgtest.Start(t)
	schema := primary.Schema(t)
	standby := primary.Follower(t)
	both := either(t, schema, primary, standby)
	x := newTrial(t, "cluster: {lease: 2s}\n")
	nodes := []*proc{x.serves(both), x.serves(both)}
	const runs = 12
	for i := range runs {
		x.clients.Go(func() {
			tag := fmt.Sprintf("client%d", i)
			x.do("POST", "/api/runs", `{"model":"main","prompt":"`+tag+`"}`, "Idempotency-Key", tag)
		})
	}
	x.clients.Wait()     // all are begun
	for range 2 * runs { // models are asked and tools called, of some runs more than of others
		<-x.stirs
	}
	primary.CutOff(t, standby)
	close(x.settling)
	parked := func(url string) (aside, asked int) {
		s, err := postgres.Open(t.Context(), url, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }() // it was only read
		for aside+asked < runs && x.ctx.Err() == nil {
			rows, _, err := s.Runs(t.Context(), &store.RunFilter{Status: "parked", Limit: runs})
			if err != nil {
				t.Fatal(err)
			}
			aside, asked = 0, 0
			for _, r := range rows {
				if r.Reason == lathe.ReasonInterrupted {
					aside++
				} else {
					asked++
				}
			}
			x.pause(nil)
		}
		return aside, asked
	}
	if aside, asked := parked(schema); aside > 0 || asked != runs {
		t.Fatalf("%d runs wait for a person, %d are set aside", asked, aside)
	}
	primary.Kill()
	standby.Promote(t)
	aside, asked := parked(either(t, schema, standby, standby))
	if aside == 0 || aside+asked != runs {
		t.Errorf("of %d runs %d wait for a person, and %d are set aside", runs, asked, aside)
	}
	for _, p := range nodes {
		p.kill()
	}
	lines := 0
	for _, p := range nodes {
		lines += strings.Count(p.output.text.String(), "the store lacks events of a run that it had confirmed")
	}
	if lines < aside { // who carried it says so
		t.Errorf("%d runs are set aside, %d times that was said", aside, lines)
	}
	paid := map[string]int{}
	for _, d := range x.deeds {
		if trialTools[d.Tool].Effect == lathe.Writes {
			paid[string(d.Args)]++
		}
	}
	for args, n := range paid {
		if n > 1 {
			t.Errorf("%s was done %d times", args, n)
		}
	}
	t.Logf("%d runs, %d set aside, %d payments", runs, aside, len(paid))
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
