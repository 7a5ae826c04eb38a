package splice

import (
	"testing"
	"time"
)

// Keys behind which the store has nothing are looked up again after one to two minutes, and take bounded memory.
func TestAbsentKeysAreBoundedAndExpire(t *testing.T) {
	t.Parallel()
	var s KeySet
	key := func(n int) Key { return Sum{}.textKey(time.Duration(n).String()) }
	at := time.Unix(1_700_000_000, 0)
	s.Add(key(-1), at)
	if !s.Has(key(-1), at.Add(absentFor)) {
		t.Error("a key is forgotten within a minute")
	}
	if s.Has(key(-1), at.Add(2*absentFor)) {
		t.Error("a key is there after two minutes")
	}
	for n := range 3 * maxAbsent {
		s.Add(key(n), at)
	}
	if all := len(s.recent) + len(s.old); all > 2*maxAbsent || all < maxAbsent || !s.Has(key(3*maxAbsent-1), at) || s.Has(key(0), at) {
		t.Errorf("%d keys", all)
	}
	s.Remove(key(3*maxAbsent - 1))
	if s.Has(key(3*maxAbsent-1), at) {
		t.Error("a removed key is there")
	}
}

// The key of a text depends on the conversation before it and on each of its words, not on the space between them.
func TestTextKeyIgnoresWhiteSpaceAlone(t *testing.T) {
	t.Parallel()
	of := Sum{1}.textKey
	for _, same := range []string{"I compute.Done.", " I\tcompute.\n\nDone. ", "I compute. Done."} {
		if of(same) != of("I compute.\nDone.") {
			t.Errorf("%q has another key", same)
		}
	}
	for _, other := range []string{"", "I compute.", "I compute. Done!", "i compute. done."} {
		if of(other) == of("I compute.\nDone.") {
			t.Errorf("%q has the same key", other)
		}
	}
	if of("Done.") == (Sum{2}).textKey("Done.") || of("") == (Sum{1}).key(nil) {
		t.Error("another conversation, or calls, have the same key")
	}
}
