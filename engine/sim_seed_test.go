package engine_test

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/testkit/enginetest"
	"github.com/lathe-run/lathe/store"
)

// seeds is how many histories a test tries: all if every test runs at its full length, else some. LATHE_SOAK_SEEDS
// sets another number, LATHE_SOAK_FROM the first.
func seeds(t *testing.T, all, some uint64) (from, n uint64) {
	t.Helper()
	read := func(name string, n uint64) uint64 {
		if s := os.Getenv(name); s != "" {
			v, err := strconv.ParseUint(s, 10, 63)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return v
		}
		return n
	}
	n = some
	if testdata.All() {
		n = all
	}
	return read("LATHE_SOAK_FROM", 1), read("LATHE_SOAK_SEEDS", n)
}

// Whatever befalls the processes, the stores, the clocks and the people of a simulated world, each
// history keeps every promise.
func TestSimulatedRunsSurvive(t *testing.T) {
	t.Parallel()
	from, n := seeds(t, 300, 12)
	const groups = 4
	var mu sync.Mutex
	table := &enginetest.Table{}
	t.Run("seeds", func(t *testing.T) {
		for group := range uint64(groups) {
			t.Run(fmt.Sprint("lane ", group), func(t *testing.T) {
				t.Parallel()
				for seed := from + group; seed < from+n; seed += groups {
					h, bad := try(t, &enginetest.Options{Seed: seed, Alone: seed%4 == 0})
					mu.Lock()
					table.Add(h, bad)
					mu.Unlock()
					if report(t, h, bad) {
						t.Fatalf("seed %d; again:\nLATHE_SOAK_FROM=%d LATHE_SOAK_SEEDS=1 go test -run TestSimulatedRunsSurvive ./engine", seed, seed)
					}
				}
			})
		}
	})
	t.Logf("%d seeds from %d\n%s", n, from, table)
	if table.Kills == 0 || table.Resumed == 0 || table.Interrupted == 0 {
		t.Error("nothing has happened in these histories")
	}
}

// try runs a simulation over a store in memory, unless the options have another.
func try(t *testing.T, opts *enginetest.Options) (h *enginetest.History, bad []enginetest.Violation) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if opts.Store == nil {
			opts.Store = store.NewMemory(nil)
		}
		h = enginetest.Simulate(t, opts)
		bad = h.Check()
	})
	return h, bad
}

// report returns what is broken, and how it came to that.
func report(t *testing.T, h *enginetest.History, bad []enginetest.Violation) bool {
	t.Helper()
	if len(bad) == 0 {
		return false
	}
	for _, line := range h.Trace {
		t.Log(line)
	}
	for _, v := range bad {
		t.Error(v)
	}
	return true
}
