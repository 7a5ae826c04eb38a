package engine_test

import (
	"testing"
	"time"

	"github.com/lathe-run/lathe/engine/enginetest"
	"github.com/lathe-run/lathe/store"
)

// The scenes of every engine, on the stores of this one.
func TestConforms(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"memory", "sqlite"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open := stores[name](t)
			enginetest.Conform(t, &enginetest.ConformOptions{Open: func(t *testing.T, s *enginetest.Stage) enginetest.Subject {
				return enginetest.Supervised(t, s, open(t).Store, nil)
			}})
		})
	}
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		enginetest.Conform(t, &enginetest.ConformOptions{Open: func(t *testing.T, s *enginetest.Stage) enginetest.Subject {
			d.clock.Set(time.Now())
			var kept store.RunIndex = openPostgres(t, d.clock.URL)
			return enginetest.Supervised(t, s, kept, d.clock.Set)
		}})
	})
}
