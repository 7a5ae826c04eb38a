package callid

import "testing"

func TestShortIDs(t *testing.T) {
	t.Parallel()
	var s Short
	long := []string{"call_0fypS1hVXq", "tc_1", "tc_1__2", "", "Ab3Ab3Ab3", "äöü"}
	seen := map[string]bool{}
	for range 2 {
		for _, id := range long {
			short := s.Of(id)
			if !IsShort(short) {
				t.Errorf("%q became %q", id, short)
			}
			if got := s.Back(short); got != id {
				t.Errorf("%q became %q, and that %q", id, short, got)
			}
			seen[short] = true
		}
	}
	if len(seen) != len(long) {
		t.Errorf("%d ids became %d", len(long), len(seen))
	}
	// An id that is short already, but is what another became.
	var fresh Short
	taken := fresh.Of("call_1")
	if other := fresh.Of(taken); other == taken || !IsShort(other) || fresh.Back(other) != taken {
		t.Errorf("two ids became %q", other)
	}
	if fresh.Back("unknown99") != "unknown99" {
		t.Error("an unknown id changed on its way back")
	}
}
