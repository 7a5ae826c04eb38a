package lathetest

import (
	"testing"

	"github.com/lathe-run/lathe/internal/testkit/storetest"
	"github.com/lathe-run/lathe/store"
)

// TestStore checks that the stores that open returns satisfy the contract of [store.Store]. If they implement Retainer, Compactor,
// RunIndex, Ledger, ValueKeeper or SecretKeeper, it also checks these contracts. open is called once for each test and must return a new,
// empty store; it may close the store with t.Cleanup.
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

// testAbility runs the tests of an optional interface if the store implements it.
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
