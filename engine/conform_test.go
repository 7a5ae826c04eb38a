package engine_test

import (
	"testing"
	"time"

	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/testkit/enginetest"
	"github.com/lathe-run/lathe/store"
)

// The scenarios of every engine, on each store: executed by the supervisor, and step by step.
func TestConforms(t *testing.T) {
	t.Parallel()
	type opener func(*testing.T, *enginetest.Environment, store.RunIndex, func(time.Time)) enginetest.Engine
	for name, of := range map[string]opener{"supervised": enginetest.Supervised, "stepped": enginetest.Stepped} {
		for _, over := range []string{"memory", "sqlite"} {
			t.Run(name+"/"+over, func(t *testing.T) {
				t.Parallel()
				if over == "sqlite" && name == "stepped" {
					testdata.NeedAll(t)
				}
				open := stores[over](t)
				enginetest.Conform(t, &enginetest.ConformOptions{Open: func(t *testing.T, s *enginetest.Environment) enginetest.Engine {
					return of(t, s, open(t).Store, nil)
				}})
			})
		}
		t.Run(name+"/postgres", func(t *testing.T) {
			t.Parallel()
			testdata.NeedAll(t)
			d := newDatabase(t)
			enginetest.Conform(t, &enginetest.ConformOptions{Open: func(t *testing.T, s *enginetest.Environment) enginetest.Engine {
				d.clock.Set(time.Now())
				return of(t, s, openPostgres(t, d.clock.URL), d.clock.Set)
			}})
		})
	}
}
