package guest_test

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
