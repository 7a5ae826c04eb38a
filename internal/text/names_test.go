package text

import (
	"slices"
	"testing"
)

func TestByName(t *testing.T) {
	t.Parallel()
	m := map[string]int{"b": 2, "a": 1, "c": 3}
	var keys []string
	for k, v := range ByName(m) {
		if v != m[k] {
			t.Errorf("%s has %d", k, v)
		}
		if keys = append(keys, k); k == "b" {
			break
		}
	}
	if !slices.Equal(keys, []string{"a", "b"}) {
		t.Errorf("got %q", keys)
	}
}
