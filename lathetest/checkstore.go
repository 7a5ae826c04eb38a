package lathetest

import (
	"testing"

	"github.com/lathe-run/lathe/internal/testkit/storetest"
	"github.com/lathe-run/lathe/store"
)

// TestStore checks an implementation of [store.Store], and of those of the interfaces Retainer, Compactor, RunIndex, Ledger, ValueKeeper and
// SecretKeeper of package store that it has. open returns an empty store of its own for each test; it may use t.Cleanup of the t that it closes
// over to close the store.
func TestStore(t *testing.T, open func() store.Store) {
	t.Helper()
	storetest.Test(t, open)
	testAbility(t, open, "retention", storetest.TestRetention)
	testAbility(t, open, "compaction", storetest.TestCompaction)
	testAbility(t, open, "index", storetest.TestIndex)
	testAbility(t, open, "ledger", storetest.TestLedger)
	testAbility(t, open, "values", storetest.TestValues)
	testAbility(t, open, "secrets", storetest.TestSecrets)
}

// testAbility runs the tests of a further interface, if the store has it.
func testAbility[S any](t *testing.T, open func() store.Store, name string, test func(*testing.T, func() S)) {
	t.Helper()
	if _, ok := open().(S); !ok {
		return
	}
	t.Run(name, func(t *testing.T) {
		test(t, func() S {
			s, ok := open().(S)
			if !ok {
				t.Fatalf("one store has the interface for %s and another has not", name)
			}
			return s
		})
	})
}
