package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testkit/pgtest"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/store/postgres"
)

// Nodes take runs from each other while the one before goes on as if nothing had happened: no log has
// an event of an epoch after one of a later epoch, and no event is lost or doubled.
func TestF3_ZombiesAreRefused(t *testing.T) {
	t.Parallel()
	const nodes, runs, length = 4, 3, 40
	url := pgtest.URL(t)
	stores := make([]*postgres.Store, nodes)
	for n := range stores {
		stores[n] = open(t, url)
	}
	for r := range runs {
		id := fmt.Sprintf("run_%d", r)
		if _, err := stores[0].Append(t.Context(), id, 0, started(id)); err != nil {
			t.Fatal(err)
		}
	}
	refusals := make([]int, nodes)
	var wg sync.WaitGroup
	for n, s := range stores {
		wg.Go(func() {
			node := "node_" + strconv.Itoa(n)
			for ended := 0; ended < runs; {
				ended = 0
				for r := range runs {
					id := fmt.Sprintf("run_%d", r)
					c, err := s.ClaimRun(t.Context(), node, id, time.Microsecond) // the lease ends at once: any node can take the run
					if errors.Is(err, lathe.ErrConflict) {
						rows, _, err := s.Runs(t.Context(), &store.RunFilter{RunID: id})
						if err != nil || len(rows) != 1 {
							t.Errorf("%s: %+v, %v", id, rows, err)
							return
						}
						if rows[0].Status == "completed" {
							ended++
						}
						continue
					}
					if err != nil {
						t.Errorf("take: %v", err)
						return
					}
					last := int64(0)
					for e, err := range s.Read(t.Context(), id, 0) {
						if err != nil {
							t.Errorf("read: %v", err)
							return
						}
						last = e.ID
					}
					for range 3 {
						e := resumed(id, last+1)
						if last+1 == length {
							e = finished(id, length)
						}
						e.RequestID = strconv.FormatInt(c.Epoch, 10)
						if last, err = s.AppendAs(t.Context(), c, last, e); err != nil {
							if !errors.Is(err, lathe.ErrConflict) {
								t.Errorf("append: %v", err)
								return
							}
							refusals[n]++
							break
						}
						if last == length {
							break
						}
					}
				}
			}
		})
	}
	wg.Wait()
	for r := range runs {
		id := fmt.Sprintf("run_%d", r)
		epoch, last := int64(0), int64(0)
		for e, err := range stores[0].Read(t.Context(), id, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if last = e.ID; last == 1 {
				continue
			}
			by, err := strconv.ParseInt(e.RequestID, 10, 64)
			if err != nil || by < epoch {
				t.Errorf("%s: event %d is of epoch %d after %d, %v", id, e.ID, by, epoch, err)
			}
			epoch = by
		}
		if last != length {
			t.Errorf("%s has %d events, want %d", id, last, length)
		}
	}
	t.Logf("refused: %v", refusals)
}

// A process whose clock is decades behind shares runs with one whose clock is right.
func TestF11_TheCallersClockDoesNotCount(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	right := open(t, url)
	begin := func(s *postgres.Store, node, id string) {
		if _, err := s.AppendAs(t.Context(), store.Claim{RunID: id, Node: node, Lease: lease}, 0, started(id)); err != nil {
			t.Error(err)
		}
	}
	begin(right, "node_right", "run_right")
	synctest.Test(t, func(t *testing.T) { // where it is the year 2000
		if time.Now().Year() > 2001 {
			t.Fatal("the clock is right")
		}
		s, err := postgres.Open(context.Background(), url, nil)
		if err != nil {
			t.Fatal(err)
		}
		begin(s, "node_wrong", "run_wrong")
		if got, err := s.Claim(t.Context(), "node_wrong", lease, 10); err != nil || len(got) != 0 {
			t.Errorf("it claims %+v, %v", got, err)
		}
		if got, err := s.Renew(t.Context(), "node_wrong", lease); err != nil || len(got) != 1 {
			t.Errorf("it renews %+v, %v", got, err)
		}
		if err := s.PutSignal(t.Context(), store.Signal{RunID: "run_right", Kind: "cancel"}); err != nil {
			t.Error(err)
		}
		if err := s.Advertise(t.Context(), "node_wrong", "http://wrong", lease); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if got, err := right.Claim(t.Context(), "node_right", lease, 10); err != nil || len(got) != 0 {
		t.Errorf("it claims %+v, %v", got, err)
	}
	if owner, err := right.Owner(t.Context(), "run_wrong"); err != nil || owner != "node_wrong" {
		t.Errorf("the owner is %q, %v", owner, err)
	}
	if address, err := right.Address(t.Context(), "node_wrong"); err != nil || address != "http://wrong" {
		t.Errorf("the address is %q, %v", address, err)
	}
	if signals, err := right.Signals(t.Context(), "run_right"); err != nil || len(signals) != 1 || signals[0].Time.Year() < 2020 {
		t.Errorf("%+v, %v", signals, err)
	}
}

// A log is deleted and begun again by another process, and has as many events as before: what is held
// of the old one is not taken for the new one.
func TestKnowsALogThatWasBegunAgain(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	here, other := open(t, url), open(t, url)
	first, second := started("run_a"), started("run_a")
	second.SessionID, second.Time = "s2", first.Time.Add(time.Second)
	for _, step := range []error{
		failed(here.Append(t.Context(), "run_a", 0, first, resumed("run_a", 2))),
		other.Delete(t.Context(), "run_a"),
		failed(other.Append(t.Context(), "run_a", 0, second, resumed("run_a", 2))),
		failed(here.Append(t.Context(), "run_a", 2, paused("run_a", 3))),
	} {
		if step != nil {
			t.Fatal(step)
		}
	}
	rows, _, err := other.Runs(t.Context(), nil)
	if err != nil || len(rows) != 1 || rows[0].SessionID != "s2" || !rows[0].Started.Equal(second.Time) || rows[0].LastID != 3 || rows[0].Status != "parked" {
		t.Errorf("%+v, %v", rows, err)
	}
}

func failed(_ int64, err error) error { return err }

// Many runs append at once, and each gets what it wrote, though some of what goes together cannot be
// written.
func TestCommitsTogether(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s := open(t, url)
	execute(t, url, `CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.run_id LIKE 'bad%' THEN RAISE EXCEPTION 'spoilt'; END IF; RETURN NEW; END $$`)
	execute(t, url, `CREATE TRIGGER spoil BEFORE INSERT ON event FOR EACH ROW WHEN (NEW.id > 1) EXECUTE FUNCTION spoil()`)
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			id := fmt.Sprintf("run_%d", i)
			if i%8 == 0 {
				id = fmt.Sprintf("bad_%d", i)
			}
			if _, err := s.Append(t.Context(), id, 0, started(id)); err != nil {
				t.Error(err)
			}
			for n := int64(1); n < 10; n++ {
				if _, err := s.Append(t.Context(), id, n+1, paused(id, n+2)); lathe.CodeOf(err) != lathe.CodeConflict {
					t.Errorf("a gap: %v", err)
				}
				_, err := s.Append(t.Context(), id, n, paused(id, n+1))
				if strings.HasPrefix(id, "bad") {
					if lathe.CodeOf(err) != lathe.CodeUnavailable {
						t.Errorf("%s: %v", id, err)
					}
					return
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	rows, _, err := s.Runs(t.Context(), &store.RunFilter{Limit: 100})
	if err != nil || len(rows) != 32 {
		t.Fatalf("%d runs, %v", len(rows), err)
	}
	for _, r := range rows {
		want := int64(10)
		if strings.HasPrefix(r.RunID, "bad") {
			want = 1
		}
		if r.LastID != want {
			t.Errorf("%s has %d events, want %d", r.RunID, r.LastID, want)
		}
	}
}

// Another transaction locks the row of a run: its append fails in time, and appends to other runs are not delayed.
func TestLockedRunBlocksNoOther(t *testing.T) {
	t.Parallel()
	url := with(t, pgtest.URL(t), "lock_timeout", "300")
	s := open(t, url)
	ctx := t.Context()
	for _, id := range []string{"run_a", "run_b", "run_c"} {
		if _, err := s.Append(ctx, id, 0, started(id)); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"run_a", "run_c"} {
		if _, err := s.ClaimRun(ctx, "node_2", id, lease); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(ctx, "BEGIN; SELECT FROM run WHERE run_id = 'run_a' FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	held := make(chan error, 1)
	go func() {
		_, err := s.Append(ctx, "run_a", 1, resumed("run_a", 2))
		held <- err
	}()
	for n := int64(1); n < 20; n++ {
		if _, err := s.Append(ctx, "run_b", n, resumed("run_b", n+1)); err != nil {
			t.Error(err)
		}
	}
	if got, err := s.Claim(ctx, "node_1", lease, 10); err != nil || len(got) != 1 || got[0].RunID != "run_b" {
		t.Errorf("got %+v, %v, want the run that is free", got, err)
	}
	if got, err := s.Renew(ctx, "node_2", lease); err != nil || len(got) != 1 || got[0].RunID != "run_c" {
		t.Errorf("renewed %+v, %v, want the run that is free", got, err)
	}
	if err := <-held; lathe.CodeOf(err) != lathe.CodeUnavailable {
		t.Errorf("the run that is held: %v", err)
	}
	if _, err := conn.Exec(ctx, "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(ctx, "run_a", 1, resumed("run_a", 2)); err != nil {
		t.Error(err)
	}
}

// Nodes append, renew, claim and release at once: they lock many rows, and none stops another.
func TestLocksInOneOrder(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	const runs = 24
	deadlocks := func() int {
		return one[int](t, url, "SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()")
	}
	before := deadlocks()
	stores := []*postgres.Store{open(t, url), open(t, url)}
	var wg sync.WaitGroup
	for n, s := range stores {
		node := fmt.Sprintf("node_%d", n)
		stop := make(chan struct{})
		var writers sync.WaitGroup
		for i := range runs {
			writers.Go(func() {
				c := store.Claim{RunID: fmt.Sprintf("run_%d_%d", i, n), Node: node, Lease: lease}
				last, err := s.AppendAs(t.Context(), c, 0, started(c.RunID))
				c.Epoch = 1
				for err == nil && last < 15 {
					last, err = s.AppendAs(t.Context(), c, last, resumed(c.RunID, last+1))
				}
				if err != nil {
					t.Errorf("%s: %v", c.RunID, err)
				}
			})
		}
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := s.Renew(t.Context(), node, lease); err != nil {
					t.Errorf("renew: %v", err)
					return
				}
			}
		})
		wg.Go(func() {
			writers.Wait()
			close(stop)
		})
	}
	wg.Wait()
	if n := deadlocks(); n != before {
		t.Errorf("%d deadlocks", n-before)
	}
}
