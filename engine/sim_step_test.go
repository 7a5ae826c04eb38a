package engine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/testkit/enginetest"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/store/sqlite"
)

// stores are those that each fault is tried over. What each returns opens it, within a bubble.
var stores = map[string]func(*testing.T) func(*testing.T) enginetest.Options{
	"memory":   func(*testing.T) func(*testing.T) enginetest.Options { return openMemory },
	"sqlite":   func(*testing.T) func(*testing.T) enginetest.Options { return openSQLite },
	"postgres": func(t *testing.T) func(*testing.T) enginetest.Options { return newDatabase(t).open },
}

func openMemory(*testing.T) enginetest.Options {
	return enginetest.Options{Store: store.NewMemory(&store.MemoryOptions{MaxRuns: 10_000})}
}

func openSQLite(t *testing.T) enginetest.Options {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "runs.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return enginetest.Options{Store: s}
}

var outcomes = []enginetest.Outcome{enginetest.Fail, enginetest.Lose, enginetest.KillBefore, enginetest.KillAfter}

// each runs simulations over the store of those options, the k-th with a fault at its k-th stop, until one
// has no such stop. change, which may be nil, changes the options of each.
func each(t *testing.T, over enginetest.Options, script *enginetest.Script, outcome enginetest.Outcome, change func(k int, o *enginetest.Options), look func(k int, h *enginetest.History)) {
	t.Helper()
	for k := 1; ; k++ {
		struck := false
		o := new(over)
		o.Scripts, o.Prefix = []enginetest.Script{*script}, fmt.Sprintf("%s_%d_%d_", strings.ReplaceAll(script.Name, " ", "_"), outcome, k)
		o.Outcome = func(st *enginetest.Stop) enginetest.Outcome {
			if st.N != k {
				return enginetest.Go
			}
			return outcome
		}
		if change != nil {
			change(k, o)
		}
		do := o.At
		o.At = func(s *enginetest.Sim, st *enginetest.Stop) {
			struck = struck || st.N == k
			if do != nil {
				do(s, st)
			}
		}
		h := enginetest.Simulate(t, o)
		if report(t, h, h.Check()) {
			t.Fatalf("%s: what is at its stop %d %s", script.Name, k, outcome)
		}
		if look != nil {
			look(k, h)
		}
		if !struck {
			if k < 6 {
				t.Fatalf("%s: it has %d stops", script.Name, k)
			}
			return
		}
	}
}

// A fault at the k-th step, for all k: whatever fails there, or is killed, the run keeps its promises.
func TestEachStepMayFail(t *testing.T) {
	testdata.WithoutRace(t)
	t.Parallel()
	_, soak := os.LookupEnv("LATHE_SOAK_SEEDS")
	for name, prepare := range stores {
		for _, script := range enginetest.Scripts() {
			some := script.Name == "one write" || name == "memory" && (script.Name == "side by side" || script.Name == "asks in the middle" || script.Name == "the client's")
			if !soak && !some {
				continue
			}
			t.Run(name+" "+script.Name, func(t *testing.T) {
				t.Parallel()
				if !soak && (name != "memory" || script.Name == "the client's") {
					testdata.NeedAll(t)
				}
				open := prepare(t)
				for _, outcome := range outcomes {
					synctest.Test(t, func(t *testing.T) {
						each(t, open(t), &script, outcome, nil, nil)
					})
				}
			})
		}
	}
}
