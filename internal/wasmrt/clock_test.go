package wasmrt_test

import (
	"testing"
	"time"

	. "github.com/lathe-run/lathe/internal/wasmrt/wasmtest"
)

// Without grants, time and random are the same in every instance, and sleeping takes no time.
func TestInstanceClockAndRandomAreItsOwn(t *testing.T) {
	t.Parallel()
	rt := runtime(t, nil)
	m := New()
	m.Memory(1, 1)
	mod := compile(t, rt, m, nil)
	var seen [2][8]byte
	for n := range seen {
		i := start(t, mod, nil)
		if got, want := i.Now().Format(time.RFC3339Nano), "2000-01-01T00:00:00.001Z"; got != want {
			t.Errorf("first look: %s, want %s", got, want)
		}
		i.Sleep(time.Hour)
		if got, want := i.Now().Format(time.RFC3339Nano), "2000-01-01T01:00:00.002Z"; got != want {
			t.Errorf("after an hour: %s, want %s", got, want)
		}
		if err := i.Random(seen[n][:]); err != nil {
			t.Fatal(err)
		}
	}
	if seen[0] != seen[1] || seen[0] == [8]byte{} {
		t.Errorf("random: %x and %x", seen[0], seen[1])
	}
}
