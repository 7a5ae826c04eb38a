package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lathe-run/lathe/internal/leaktest"
	"github.com/lathe-run/lathe/internal/testkit/pgtest"
	"github.com/lathe-run/lathe/internal/testkit/storetest"
	"github.com/lathe-run/lathe/remote"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/store/postgres"
)

func TestMain(m *testing.M) { leaktest.Main(pgtest.M(m)) }

func open(t testing.TB, url string) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// each returns the function with which the subtests of t open an empty store each.
func each[S any](t *testing.T) func() S {
	t.Helper()
	pgtest.Need(t)
	return func() S { return any(open(t, pgtest.URL(t))).(S) }
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Test(t, each[store.Store](t))
}

func TestIndex(t *testing.T) {
	t.Parallel()
	storetest.TestIndex(t, each[store.RunIndex](t))
}

func TestSignals(t *testing.T) {
	t.Parallel()
	storetest.TestSignals(t, each[storetest.SignalIndex](t))
}

func TestQueue(t *testing.T) {
	t.Parallel()
	storetest.TestQueue(t, 37, each[remote.Queue](t))
}

func TestRetention(t *testing.T) {
	t.Parallel()
	storetest.TestRetention(t, each[store.Retainer](t))
}

func TestCompaction(t *testing.T) {
	t.Parallel()
	storetest.TestCompaction(t, each[store.Compactor](t))
}

func TestShared(t *testing.T) {
	t.Parallel()
	pgtest.Need(t)
	storetest.TestShared(t, func() (store.Shared, func(time.Duration)) {
		url := pgtest.URL(t)
		s := open(t, url)
		return s, func(d time.Duration) { // the server's clock cannot be set: what it is compared with is
			execute(t, url, "UPDATE run SET lease_until = lease_until - $1::interval, wake_at = wake_at - $1::interval", d)
			execute(t, url, "UPDATE lease SET until = until - $1::interval", d)
			execute(t, url, "UPDATE node SET until = until - $1::interval", d)
		}
	})
}

func TestRequests(t *testing.T) {
	t.Parallel()
	storetest.TestRequests(t, each[storetest.RequestRetainer](t))
	storetest.TestSecrets(t, each[store.SecretKeeper](t))
	storetest.TestValues(t, each[store.ValueKeeper](t))
}

func TestLedger(t *testing.T) {
	t.Parallel()
	storetest.TestLedger(t, each[store.Ledger](t))
}

func execute(t testing.TB, url, statement string, args ...any) {
	t.Helper()
	ctx := context.Background() // some do it in a cleanup
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, statement, args...); err != nil {
		t.Fatal(err)
	}
}
