package postgres_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/testkit/pgtest"
)

// A server that was only down has lost nothing. An asynchronous standby that takes over without the last moments
// of the log is found out, run by run, before anything is done on it.
func TestF6_StandbyThatLacksEvents(t *testing.T) {
	t.Parallel()
	testdata.NeedAll(t)
	primary := pgtest.Start(t)
	schema := primary.Schema(t)
	standby := primary.Follower(t)
	s := open(t, with(t, with(t, schema, "host", primary.Dir()+","+standby.Dir()), "port", "5432,5432"))
	reported := make(chan []string, 10)
	ctx, leave := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	defer watching.Wait()
	defer leave()
	watching.Go(func() { s.WatchLosses(ctx, func(lost []string) { reported <- lost }) })
	must := func(last int64, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"run_kept", "run_behind", "run_deleted"} {
		must(s.Append(ctx, id, 0, started(id), resumed(id, 2)))
	}
	must(0, s.Delete(ctx, "run_deleted"))

	reach := func() { // however long that takes
		until(t, "the server is reached", func() bool {
			_, _, err := s.Runs(ctx, nil)
			return err == nil
		})
	}
	primary.Kill()
	primary.Restart(t)
	reach()
	must(s.Append(ctx, "run_kept", 2, resumed("run_kept", 3)))
	if lost := <-reported; len(lost) != 0 {
		t.Errorf("a server that was down has lost %v", lost)
	}

	primary.CutOff(t, standby)
	must(s.Append(ctx, "run_behind", 2, resumed("run_behind", 3)))
	must(s.Append(ctx, "run_gone", 0, started("run_gone")))
	must(s.Append(ctx, "run_over", 0, started("run_over"), finished("run_over", 2)))
	primary.Kill()
	standby.Promote(t)
	reach()
	must(s.Append(ctx, "run_kept", 3, resumed("run_kept", 4)))
	if lost := <-reported; !slices.Equal(lost, []string{"run_behind", "run_gone"}) {
		t.Errorf("the standby has lost %v", lost)
	}
	if last, err := s.Append(ctx, "run_behind", 3, resumed("run_behind", 4)); lathe.CodeOf(err) != lathe.CodeConflict || last != 2 {
		t.Errorf("an append after what is lost: %d, %v", last, err)
	}
	if len(reported) > 0 {
		t.Errorf("reported again: %v", <-reported)
	}
}
