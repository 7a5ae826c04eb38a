package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/store"
)

const lease = 10 * time.Second

// A claimant is a node that claims the one run, goes on with it, has it wait, and gives it back. It does not
// look at the clock: its claim may be long over.
type claimant struct {
	name string
	c    lathe.Claim // its epoch is 0 where it has none
	last int64       // of the log, as far as it knows
	did  int         // of its steps
}

// A table is the one run that all claim, and what must be true of it.
type table struct {
	t     *testing.T
	kept  lathe.SharedStore
	order string

	epoch  int64  // of the last claim
	holder string // of that claim, "" once it was given back
	until  time.Time
	log    int64
	parked bool
	facts  int
	seen   int64 // as of the last release
	looked int
}

func newTable(t *testing.T, order string) *table {
	t.Helper()
	w := &table{t: t, kept: store.NewMemory(nil), order: order}
	events := []lathe.Event{{ID: 1, RunID: "run_1", Time: time.Now(), Data: &lathe.RunStarted{Input: []byte(`{"version":1}`)}},
		{ID: 2, RunID: "run_1", Time: time.Now(), Data: &lathe.RunPaused{Reason: lathe.ReasonAwaitingToolResults, Pending: []string{"c"}}}}
	if _, err := w.kept.AppendAs(t.Context(), lathe.Claim{RunID: "run_1", Node: "first", Lease: lease}, 0, events...); err != nil {
		t.Fatal(err)
	}
	if err := w.kept.Release(t.Context(), lathe.Claim{RunID: "run_1", Node: "first", Epoch: 1}, 2); err != nil {
		t.Fatal(err)
	}
	w.epoch, w.log, w.parked, w.seen = 1, 2, true, 2
	return w
}

func (w *table) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Errorf("%s: %s", w.order, fmt.Sprintf(format, args...))
}

func (w *table) held() bool { return w.holder != "" && time.Now().Before(w.until) }

// wanted says whether the next who looks must be given the run.
func (w *table) wanted() bool {
	return !w.held() && (!w.parked || w.log > w.seen || w.facts > w.looked)
}

func (w *table) step(ctx context.Context, n *claimant) {
	defer func() { n.did++ }()
	switch n.did {
	case 0: // take what there is
		claims, err := w.kept.Claim(ctx, n.name, lease, 1)
		if err != nil || (len(claims) == 1) != w.wanted() {
			w.fail("%s is given %d runs, wanted %v: %v", n.name, len(claims), w.wanted(), err)
			return
		}
		if len(claims) == 0 {
			return
		}
		if n.c = claims[0]; n.c.Epoch != w.epoch+1 || n.c.Facts != w.facts {
			w.fail("%s is given claim %d with %d facts after claim %d with %d", n.name, n.c.Epoch, n.c.Facts, w.epoch, w.facts)
		}
		w.epoch, w.holder, w.until, n.last = n.c.Epoch, n.name, time.Now().Add(lease), w.log
	case 1, 2: // go on, and wait
		if n.c.Epoch == 0 {
			return
		}
		ours := n.c.Epoch == w.epoch && w.holder == n.name
		d := lathe.EventData(&lathe.RunResumed{})
		if n.did == 2 {
			d = &lathe.RunPaused{Reason: lathe.ReasonAwaitingToolResults, Pending: []string{"c"}}
		}
		end, err := w.kept.AppendAs(ctx, n.c, n.last, lathe.Event{ID: n.last + 1, RunID: "run_1", Time: time.Now(), Data: d})
		if ours != (err == nil) || err != nil && !errors.Is(err, lathe.ErrConflict) {
			w.fail("%s appends under claim %d, the last is %d of %q: %v", n.name, n.c.Epoch, w.epoch, w.holder, err)
		}
		if err == nil {
			w.log, n.last, w.parked = end, end, n.did == 2
		}
	case 3: // give it back
		if n.c.Epoch == 0 {
			return
		}
		if err := w.kept.Release(ctx, n.c, n.last); err != nil {
			w.fail("%s gives back: %v", n.name, err)
		}
		if n.c.Epoch == w.epoch && w.holder == n.name {
			w.holder, w.seen, w.looked = "", n.last, n.c.Facts
		}
	}
}

// F3: in whatever order two nodes claim, append and give back one run, while facts come and leases end: at
// most one of them appends, and nothing that came is forgotten.
func TestF3_EachOrderOfClaims(t *testing.T) {
	t.Parallel()
	// a and b are the steps of the nodes, f is a fact that comes, t a lease that ends.
	steps, orders := map[byte]int{'a': 4, 'b': 4, 'f': 2, 't': 1}, []string{}
	var all func(prefix string)
	all = func(prefix string) {
		done := true
		for _, s := range "abft" {
			if strings.Count(prefix, string(s)) < steps[byte(s)] {
				done = false
				all(prefix + string(s))
			}
		}
		if done {
			orders = append(orders, prefix)
		}
	}
	all("")
	if len(orders) != 34650 {
		t.Fatalf("%d orders", len(orders))
	}
	const lanes = 4
	for lane := range slices.Chunk(orders, len(orders)/lanes+1) {
		t.Run(lane[0], func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				for _, order := range lane {
					w := newTable(t, order)
					nodes := map[rune]*claimant{'a': {name: "a"}, 'b': {name: "b"}}
					for _, s := range order {
						switch s {
						case 'f':
							if err := w.kept.PutFact(t.Context(), lathe.Fact{RunID: "run_1", Kind: lathe.FactResult, Key: fmt.Sprint(w.facts)}); err != nil {
								w.fail("%v", err)
							}
							w.facts++
						case 't':
							time.Sleep(lease)
						default:
							w.step(t.Context(), nodes[s])
						}
					}
					// Whoever comes last is given the run if anything is left to do.
					time.Sleep(lease)
					w.step(t.Context(), &claimant{name: "last"})
					if t.Failed() {
						return
					}
				}
			})
		})
	}
}
