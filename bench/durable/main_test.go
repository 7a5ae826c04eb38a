package main

import (
	"os"
	"testing"
	"time"

	"github.com/lathe-run/lathe/internal/testkit/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.M(m).Run()) }

// Every measurement succeeds, and parked runs are resumed.
func TestFigures(t *testing.T) {
	if err := run(0, 20*time.Millisecond, t.TempDir(), "", ""); err != nil {
		t.Error(err)
	}
	if err := run(70, 0, t.TempDir(), "", ""); err != nil {
		t.Error(err)
	}
}

// Those of PostgreSQL can, too.
func TestFiguresOfPostgres(t *testing.T) {
	if err := run(0, budget(), t.TempDir(), pgtest.URL(t), ""); err != nil {
		t.Error(err)
	}
}

// The queue of calls and River execute each job.
func TestFiguresOfQueues(t *testing.T) {
	if err := run(0, budget(), t.TempDir(), "", pgtest.URL(t)); err != nil {
		t.Error(err)
	}
}

// budget is the time of one figure, as LATHE_BENCH_BUDGET says.
func budget() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("LATHE_BENCH_BUDGET")); err == nil {
		return d
	}
	return 20 * time.Millisecond
}
