package postgres_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/testkit/pgtest"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/store/postgres"
)

// Nothing of a run is left in any table.
func TestDeletesForGood(t *testing.T) {
	t.Parallel()
	testdata.WithoutRace(t)
	url := pgtest.URL(t)
	s := open(t, url)
	ctx := t.Context()
	fill := func(id, session, principal string) {
		t.Helper()
		first := started(id)
		first.SessionID = session
		first.Data.(*event.RunStarted).Principal = principal
		called := event.Event{ID: 2, RunID: id, Time: time.Now(), Data: &event.ModelCallFinished{Attempt: 1, Status: "success"}}
		if _, err := s.Append(ctx, id, 0, first, called); err != nil {
			t.Fatal(err)
		}
		if err := s.PutSignal(ctx, store.Signal{RunID: id, Kind: "cancel"}); err != nil {
			t.Fatal(err)
		}
	}
	left := func() (n int) {
		for _, table := range []string{"run", "event", "model_call", "fact"} {
			n += one[int](t, url, "SELECT count(*)::int FROM "+table)
		}
		return n
	}
	fill("run_a", "s1", "ann")
	if n := left(); n != 5 { // a run, two events, a call, a fact
		t.Fatalf("%d rows", n)
	}
	for i := range 3 {
		fill(fmt.Sprintf("run_b%d", i), "s2", "bob")
	}
	fill("run_c", "s3", "eve")
	fill("run_d", "", "")
	for _, step := range []struct {
		what string
		do   func() error
		left int
	}{
		{"a run", func() error { return s.Delete(ctx, "run_a") }, 25},
		{"a session", func() error { return s.DeleteSession(ctx, "s2") }, 10},
		{"no session", func() error { return s.DeleteSession(ctx, "") }, 10},
		{"a principal", func() error { return s.DeletePrincipal(ctx, "eve") }, 5},
		{"no principal", func() error { return s.DeletePrincipal(ctx, "") }, 5},
		{"what is old, but goes on", func() error { return s.DeleteBefore(ctx, time.Now().Add(time.Hour)) }, 5},
	} {
		if err := step.do(); err != nil || left() != step.left {
			t.Errorf("%s: %d rows are left, %v, want %d", step.what, left(), err, step.left)
		}
	}
	if _, err := s.Append(ctx, "run_d", 2, finished("run_d", 3)); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteBefore(ctx, time.Now().Add(-time.Hour)); err != nil || left() == 0 {
		t.Errorf("too early: %v", err)
	}
	if err := s.DeleteBefore(ctx, time.Now().Add(time.Hour)); err != nil || left() != 0 {
		t.Errorf("%d rows are left, %v", left(), err)
	}
}

// Connections are as many as are allowed, however much is asked at once.
func TestBoundsItsConnections(t *testing.T) {
	t.Parallel()
	name := "lathe-" + rand.Text()
	direct := pgtest.URL(t)
	source := with(t, direct, "application_name", name)
	s := open(t, source)
	ctx, cancel := context.WithCancel(t.Context())
	watched := make(chan error, 1)
	go func() { watched <- s.Watch(ctx, func(string) {}) }()
	const many = 64
	over := make(chan error, many)
	for i := range many {
		go func() {
			id := fmt.Sprintf("run_%d", i)
			_, err := s.Append(t.Context(), id, 0, started(id))
			for _, failed := range s.Read(t.Context(), id, 0) {
				err = errors.Join(err, failed)
			}
			over <- err
		}()
	}
	most := 0
	for done := 0; done < many; {
		select {
		case err := <-over:
			if done++; err != nil {
				t.Error(err)
			}
		default:
			most = max(most, one[int](t, direct, "SELECT count(*)::int FROM pg_stat_activity WHERE application_name = $1", name))
		}
	}
	if most > 12 {
		t.Errorf("%d connections, want at most 12", most)
	}
	cancel()
	if err := <-watched; lathe.CodeOf(err) != lathe.CodeCancelled {
		t.Errorf("watch: %v", err)
	}
}

// Trim removes the runs that ended first, no more than needed, and several processes that trim at once remove the same ones.
func TestTrimRemovesNoMoreThanNeeded(t *testing.T) {
	t.Parallel()
	testdata.WithoutRace(t)
	url := pgtest.URL(t)
	a, b := open(t, url), open(t, url)
	execute(t, url, `INSERT INTO run (run_id, last_id, mark, started, updated, session_id, principal, status, resumable, ended, summary, bytes)
		SELECT 'run_' || lpad(i::text, 4, '0'), 1, 0, i, i / 2, '', '', 'completed', false, i % 10 <> 0, '{}', 10 FROM generate_series(1, 2300) i`)
	var both sync.WaitGroup
	for _, s := range []*postgres.Store{a, b} {
		both.Go(func() {
			if err := s.Trim(t.Context(), 21_005); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	// 23,000 bytes are 1,995 too many: 200 runs. Up to run_0222 there are 222 runs, and 22 of them have not ended.
	if n, first := one[int](t, url, "SELECT count(*)::int FROM run"), one[string](t, url, "SELECT min(run_id) FROM run WHERE ended"); n != 2100 || first != "run_0223" {
		t.Errorf("%d runs are left, of those that have ended first %s", n, first)
	}
	if err := a.Trim(t.Context(), 21_000); err != nil {
		t.Error(err)
	}
	if n := one[int](t, url, "SELECT count(*)::int FROM run"); n != 2100 {
		t.Errorf("%d runs are left, where none was too much", n)
	}
	if err := a.Trim(t.Context(), 5_000); err != nil { // more than one page of them
		t.Error(err)
	}
	if n := one[int](t, url, "SELECT count(*)::int FROM run"); n != 500 {
		t.Errorf("%d runs are left, want 500", n)
	}
}
