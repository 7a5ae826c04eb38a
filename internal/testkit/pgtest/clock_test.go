package pgtest_test

import (
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lathe-run/lathe/internal/testkit/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.M(m).Run()) }

// A connection that uses a clock reads its time, also in statements that were prepared before.
func TestClock(t *testing.T) {
	t.Parallel()
	clock := pgtest.NewClock(t, pgtest.URL(t))
	conn, err := pgx.Connect(t.Context(), clock.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := conn.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	for _, want := range []time.Time{time.Unix(1_000_000_000, 0), time.Unix(5_000_000_000, 0), time.Unix(0, 0)} {
		clock.Set(want)
		for _, ask := range []string{"SELECT now()", "SELECT clock_timestamp()"} {
			var got time.Time
			if err := conn.QueryRow(t.Context(), ask).Scan(&got); err != nil || !got.Equal(want) {
				t.Errorf("%s at %v: %v, %v", ask, want, got, err)
			}
		}
	}
}
