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
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/store"
)

const lease = 10 * time.Second

// A claimant is a node that claims the one run, resumes it, parks it and releases it. It does not look at the clock: its
// claim may have expired long before.
type claimant struct {
	name string
	c    store.Claim // its epoch is 0 where it has none
	last int64       // of the log, as far as it knows
	did  int         // of its steps
}

// A table is the one run that all claim, and what must be true of it.
type table struct {
	t     *testing.T
	kept  store.Shared
	order string

	epoch   int64  // of the last claim
	owner   string // of that claim, "" once it was released
	until   time.Time
	log     int64
	parked  bool
	signals int
	seen    int64 // as of the last release
	looked  int
}

func newTable(t *testing.T, order string) *table {
	t.Helper()
	w := &table{t: t, kept: store.NewMemory(nil), order: order}
	events := []event.Event{{ID: 1, RunID: "run_1", Time: time.Now(), Data: &event.RunStarted{Input: []byte(`{"version":1}`)}},
		{ID: 2, RunID: "run_1", Time: time.Now(), Data: &event.RunPaused{Reason: lathe.ReasonAwaitingToolResults, Pending: []string{"c"}}}}
	if _, err := w.kept.AppendAs(t.Context(), store.Claim{RunID: "run_1", Node: "first", Lease: lease}, 0, events...); err != nil {
		t.Fatal(err)
	}
	if err := w.kept.Release(t.Context(), store.Claim{RunID: "run_1", Node: "first", Epoch: 1}, 2); err != nil {
		t.Fatal(err)
	}
	w.epoch, w.log, w.parked, w.seen = 1, 2, true, 2
	return w
}

func (w *table) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Errorf("%s: %s", w.order, fmt.Sprintf(format, args...))
}

func (w *table) isOwned() bool { return w.owner != "" && time.Now().Before(w.until) }

// wanted reports whether the next node that claims the run must get it.
func (w *table) wanted() bool {
	return !w.isOwned() && (!w.parked || w.log > w.seen || w.signals > w.looked)
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
		if n.c = claims[0]; n.c.Epoch != w.epoch+1 || n.c.Signals != w.signals {
			w.fail("%s is given claim %d with %d signals after claim %d with %d", n.name, n.c.Epoch, n.c.Signals, w.epoch, w.signals)
		}
		w.epoch, w.owner, w.until, n.last = n.c.Epoch, n.name, time.Now().Add(lease), w.log
	case 1, 2: // go on, and wait
		if n.c.Epoch == 0 {
			return
		}
		ours := n.c.Epoch == w.epoch && w.owner == n.name
		d := event.Data(&event.RunResumed{})
		if n.did == 2 {
			d = &event.RunPaused{Reason: lathe.ReasonAwaitingToolResults, Pending: []string{"c"}}
		}
		end, err := w.kept.AppendAs(ctx, n.c, n.last, event.Event{ID: n.last + 1, RunID: "run_1", Time: time.Now(), Data: d})
		if ours != (err == nil) || err != nil && !errors.Is(err, lathe.ErrConflict) {
			w.fail("%s appends under claim %d, the last is %d of %q: %v", n.name, n.c.Epoch, w.epoch, w.owner, err)
		}
		if err == nil {
			w.log, n.last, w.parked = end, end, n.did == 2
		}
	case 3: // give it back
		if n.c.Epoch == 0 {
			return
		}
		if err := w.kept.Release(ctx, n.c, n.last); err != nil {
			w.fail("%s releases: %v", n.name, err)
		}
		if n.c.Epoch == w.epoch && w.owner == n.name {
			w.owner, w.seen, w.looked = "", n.last, n.c.Signals
		}
	}
}

// F3: in whatever order two nodes claim, append to and release one run, while signals arrive and leases end: at
// most one of them appends, and nothing that came is forgotten.
func TestF3_EachOrderOfClaims(t *testing.T) {
	t.Parallel()
	// a and b are the steps of the nodes, f is a signal that arrives, t a lease that ends.
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
	const groups = 4
	for group := range slices.Chunk(orders, len(orders)/groups+1) {
		t.Run(group[0], func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				for _, order := range group {
					w := newTable(t, order)
					nodes := map[rune]*claimant{'a': {name: "a"}, 'b': {name: "b"}}
					for _, s := range order {
						switch s {
						case 'f':
							if err := w.kept.PutSignal(t.Context(), store.Signal{RunID: "run_1", Kind: store.SignalResult, Key: fmt.Sprint(w.signals)}); err != nil {
								w.fail("%v", err)
							}
							w.signals++
						case 't':
							time.Sleep(lease)
						default:
							w.step(t.Context(), nodes[s])
						}
					}
					// The last claimant gets the run if anything is left to do.
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
