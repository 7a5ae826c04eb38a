package lathetest

import (
	"testing"

	"github.com/lathe-run/lathe/internal/testkit/storetest"
	"github.com/lathe-run/lathe/store"
)

// TestStore checks an implementation of [store.Store]. If it also implements the interfaces Retainer, Compactor, RunIndex, Ledger,
// ValueKeeper or SecretKeeper of package store, TestStore checks these, too. open returns a new empty store for each test. It may close the
// store by t.Cleanup of the t that it captures.
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
