package engine_test

import (
	"testing"

	"github.com/lathe-run/lathe/engine"
)

func newEngine(t testing.TB, opts *engine.Options) *engine.Engine {
	t.Helper()
	e, err := engine.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// newSupervisor returns the supervisor of e for that many runs at once; 0: the default.
func newSupervisor(t testing.TB, e *engine.Engine, maxRuns int) *engine.Supervisor {
	t.Helper()
	s, err := engine.NewSupervisor(e, &engine.SupervisorOptions{MaxRuns: maxRuns})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
