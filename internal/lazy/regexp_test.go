package lazy_test

import (
	"testing"

	"github.com/lathe-run/lathe/internal/lazy"
)

func TestRegexpIsMadeOnceWhenItIsUsed(t *testing.T) {
	t.Parallel()
	bad := lazy.Regexp(`(`) // not used yet
	word := lazy.Regexp(`^[a-z]+$`)
	if first := word(); !first.MatchString("word") || first.MatchString("two words") || first != word() {
		t.Errorf("%v is not the expression, or not one", word())
	}
	defer func() {
		if recover() == nil {
			t.Error("an expression that is none does not panic")
		}
	}()
	bad()
}
