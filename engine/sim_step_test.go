package engine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine/enginetest"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/store/sqlite"
)

// stores are those that each fault is tried over, opened within a bubble.
var stores = map[string]func(*testing.T) lathe.RunIndex{
	"memory": func(*testing.T) lathe.RunIndex { return store.NewMemory(&store.MemoryOptions{MaxRuns: 10_000}) },
	"sqlite": openSQLite,
}

func openSQLite(t *testing.T) lathe.RunIndex {
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
	return s
}

var fates = []enginetest.Fate{enginetest.Fail, enginetest.Lose, enginetest.KillBefore, enginetest.KillAfter}

// each runs simulations over one store, the k-th with a fault at its k-th stop, until one has no such
// stop. change, which may be nil, changes the options of each.
func each(t *testing.T, s lathe.RunIndex, script *enginetest.Script, fate enginetest.Fate, change func(k int, o *enginetest.Options), look func(k int, h *enginetest.History)) {
	t.Helper()
	for k := 1; ; k++ {
		struck := false
		o := &enginetest.Options{Store: s, Scripts: []enginetest.Script{*script}, Prefix: fmt.Sprintf("%s_%d_%d_", strings.ReplaceAll(script.Name, " ", "_"), fate, k),
			Fate: func(st *enginetest.Stop) enginetest.Fate {
				if st.N != k {
					return enginetest.Go
				}
				return fate
			}}
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
			t.Fatalf("%s: what is at its stop %d %s", script.Name, k, fate)
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
	t.Parallel()
	_, soak := os.LookupEnv("LATHE_SOAK_SEEDS")
	for name, open := range stores {
		for _, script := range enginetest.Scripts() {
			some := script.Name == "one write" || name != "sqlite" && (script.Name == "side by side" || script.Name == "asks in the middle" || script.Name == "the client's")
			if !soak && !some {
				continue
			}
			t.Run(name+" "+script.Name, func(t *testing.T) {
				t.Parallel()
				for _, fate := range fates {
					synctest.Test(t, func(t *testing.T) {
						each(t, open(t), &script, fate, nil, nil)
					})
				}
			})
		}
	}
}
