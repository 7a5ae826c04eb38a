package main

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe/sim"
)

// The list names every model that the server has, and no other.
func TestSimListNamesEveryModel(t *testing.T) {
	t.Parallel()
	var got []string
	for _, r := range simModels() {
		if r.Does == "" {
			t.Errorf("%s: it does not say what it does", r.Model)
		}
		got = append(got, r.Model)
	}
	slices.Sort(got)
	if diff := cmp.Diff(sim.New(&sim.Options{Scripts: map[string]*sim.Script{"": {}}}).Names(), got); diff != "" {
		t.Errorf("models (-server +list):\n%s", diff)
	}
}
