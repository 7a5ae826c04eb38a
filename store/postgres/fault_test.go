package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/testkit/pgtest"
	"github.com/lathe-run/lathe/remote"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/store/postgres"
)

// lease ends in no test.
const lease = time.Hour

// A writer appends to one run, and records what the store acknowledged.
type writer struct {
	store        *postgres.Store
	claim        store.Claim
	acknowledged int64
	tries        map[string]bool // the tokens of all events that it tried to append
}

// write appends events of one token each until stop is closed. After an error it does not know whether the
// events are stored: it reads the log until that succeeds, and continues after its last event.
func (w *writer) write(t *testing.T, stop <-chan struct{}, lost func()) {
	last := int64(0)
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		default:
		}
		e := resumed(w.claim.RunID, last+1)
		if last == 0 {
			e = started(w.claim.RunID)
		}
		e.RequestID = fmt.Sprintf("%s_%d", w.claim.RunID, n)
		w.tries[e.RequestID] = true
		end, err := w.store.AppendAs(t.Context(), w.claim, last, e)
		switch {
		case err == nil:
			if end != last+1 {
				t.Errorf("%s: append after %d ends at %d", w.claim.RunID, last, end)
				return
			}
			last, w.acknowledged, w.claim.Epoch = end, end, 1
			lost()
		case lathe.CodeOf(err) == lathe.CodeUnavailable:
			if last = w.end(t); last > 0 {
				w.claim.Epoch = 1
			}
		default: // the run has no other writer, so no conflict is possible
			t.Errorf("%s: append after %d: %v", w.claim.RunID, last, err)
			return
		}
	}
}

// end waits until the log can be read, and returns its last ID.
func (w *writer) end(t *testing.T) int64 {
	deadline := time.Now().Add(2 * time.Minute)
	for {
		var last int64
		var err error
		for e, failed := range w.store.Read(t.Context(), w.claim.RunID, 0) {
			last, err = e.ID, failed
		}
		if err == nil {
			return last
		}
		if errors.Is(err, lathe.ErrNotFound) {
			return 0
		}
		if lathe.CodeOf(err) != lathe.CodeUnavailable || time.Now().After(deadline) {
			t.Errorf("read of %s: %v", w.claim.RunID, err)
			return last
		}
		time.Sleep(10 * time.Millisecond) // a server is being started
	}
}

// check looks for what was lost or doubled.
func (w *writer) check(t *testing.T) {
	t.Helper()
	seen := map[string]bool{}
	n := int64(0)
	for e, err := range w.store.Read(t.Context(), w.claim.RunID, 0) {
		if err != nil {
			t.Errorf("%s: %v", w.claim.RunID, err)
			return
		}
		n++
		if e.ID != n || seen[e.RequestID] || !w.tries[e.RequestID] {
			t.Errorf("%s: event %d is %d, %s: doubled %v", w.claim.RunID, n, e.ID, e.RequestID, seen[e.RequestID])
		}
		seen[e.RequestID] = true
	}
	if n < w.acknowledged {
		t.Errorf("%s has %d events, %d were acknowledged", w.claim.RunID, n, w.acknowledged)
	}
	rows, _, err := w.store.Runs(t.Context(), &store.RunFilter{RunID: w.claim.RunID})
	if err != nil || len(rows) != 1 || rows[0].LastID != n {
		t.Errorf("%s: the list says %+v, %v, want %d events", w.claim.RunID, rows, err, n)
	}
}

// load has several writers write until over returns, and checks what they wrote.
func load(t *testing.T, s *postgres.Store, over func(lost func() int64)) {
	t.Helper()
	var lost atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	writers := make([]*writer, 8)
	for i := range writers {
		w := &writer{store: s, claim: store.Claim{RunID: fmt.Sprintf("run_%d", i), Node: "node_1", Lease: lease}, tries: map[string]bool{}}
		writers[i] = w
		wg.Go(func() { w.write(t, stop, func() { lost.Add(1) }) })
	}
	over(lost.Load)
	close(stop)
	wg.Wait()
	for _, w := range writers {
		w.check(t)
	}
}

// until waits for something that other goroutines bring about.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) || t.Failed() {
			t.Errorf("gave up waiting until %s", what)
			return
		}
	}
}

// What needs a server of its own, which is killed and set otherwise.
func TestF4_F5_ServersAreKilled(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	t.Run("a crash loses nothing", func(t *testing.T) { crash(t, server) })
	t.Run("refuses unsafe settings", func(t *testing.T) { refusesUnsafe(t, server) })
	t.Run("a standby takes over", func(t *testing.T) {
		testdata.NeedAll(t)
		promote(t, server)
	})
}

// crash kills the server under load: what was acknowledged is there, once.
func crash(t *testing.T, server *pgtest.Server) {
	s := open(t, server.Schema(t))
	load(t, s, func(lost func() int64) {
		for range 2 {
			from := lost()
			until(t, "the load goes on", func() bool { return lost() > from+100 })
			server.Kill()
			server.Restart(t)
		}
		from := lost()
		until(t, "the load goes on", func() bool { return lost() > from+100 })
	})
}

// promote kills the primary under load, and has its synchronous standby take over: the store finds it, and
// what was acknowledged is there, once.
func promote(t *testing.T, primary *pgtest.Server) {
	schema := primary.Schema(t)
	standby := primary.Standby(t)
	both := with(t, with(t, schema, "host", primary.Dir()+","+standby.Dir()), "port", "5432,5432")
	s := open(t, both)
	load(t, s, func(lost func() int64) {
		from := lost()
		until(t, "the load goes on", func() bool { return lost() > from+100 })
		primary.Kill()
		standby.Promote(t)
		from = lost()
		until(t, "the load goes on", func() bool { return lost() > from+100 })
	})
}

// Connections break while answers are on their way: no append is reported as a conflict, lost or doubled.
func TestF8_CutConnectionsLoseNothing(t *testing.T) {
	t.Parallel()
	proxy := pgtest.NewProxy(t, pgtest.URL(t))
	s := open(t, proxy.URL)
	load(t, s, func(lost func() int64) {
		until(t, "all have begun", func() bool { return lost() > 50 })
		var answers, cuts atomic.Int64
		proxy.CutAnswers(func([]byte) bool {
			if answers.Add(1)%23 == 0 {
				cuts.Add(1)
				return true
			}
			return false
		})
		until(t, "many were cut", func() bool { return cuts.Load() > 20 })
		proxy.CutAnswers(nil)
		from := lost()
		until(t, "the load goes on", func() bool { return lost() > from+100 })
	})
}

// The server's answer to a statement is lost. The store finds out whether the statement took effect, returns
// that to the caller, and executes the statement once.
func TestF8_FindsOutWhatBecameOfAStatement(t *testing.T) {
	t.Parallel()
	proxy := pgtest.NewProxy(t, pgtest.URL(t))
	s := open(t, proxy.URL)
	ctx := t.Context()
	c := store.Claim{RunID: "run_a", Node: "node_1", Lease: lease}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	losing := func(words string, fn func()) { t.Helper(); lose(t, proxy, words, fn) }
	losing("run_a", func() {
		end, err := s.AppendAs(ctx, c, 0, started("run_a"))
		if must(err); end != 1 {
			t.Errorf("it ends at %d", end)
		}
	})
	c.Epoch = 1
	losing("run_a", func() {
		end, err := s.AppendAs(ctx, c, 1, resumed("run_a", 2), resumed("run_a", 3))
		if must(err); end != 3 {
			t.Errorf("it ends at %d", end)
		}
	})
	losing("run_a", func() { // what another wrote is a conflict all the same
		if _, err := s.AppendAs(ctx, c, 3, paused("run_a", 4)); err != nil {
			t.Error(err)
		}
		if end, err := s.AppendAs(ctx, c, 3, paused("run_a", 4)); !errors.Is(err, lathe.ErrConflict) || end != 4 {
			t.Errorf("the same again: %d, %v", end, err)
		}
	})
	losing("INSERT 0 1", func() { must(s.PutSignal(ctx, store.Signal{RunID: "run_a", Kind: "approval", Key: "c1"})) })
	if err := s.PutSignal(ctx, store.Signal{RunID: "run_a", Kind: "approval", Key: "c1"}); !errors.Is(err, lathe.ErrConflict) {
		t.Errorf("a second signal: %v", err)
	}
	losing("UPDATE 1", func() { must(s.Release(ctx, c, 4)) })
	losing("run_a", func() { // the claim was not returned, but Renew finds it
		got, err := s.Claim(ctx, "node_2", lease, 10)
		if must(err); len(got) != 0 {
			t.Errorf("got %+v, which is claimed already", got)
		}
	})
	losing("run_a", func() {
		got, err := s.Renew(ctx, "node_2", lease)
		if must(err); len(got) != 1 || got[0].Signals != 1 || got[0].Epoch != 2 {
			t.Fatalf("got %+v", got)
		}
		c = got[0]
	})
	losing("UPDATE 1", func() { must(s.Release(ctx, c, 4)) })
	losing("\x00\x00\x00\x01", func() { // of a row: there is no other
		got, err := s.ClaimRun(ctx, "node_3", "run_a", lease)
		if must(err); got.Epoch <= c.Epoch {
			t.Errorf("got %+v", got)
		}
		if owner, err := s.Owner(ctx, "run_a"); err != nil || owner != "node_3" {
			t.Errorf("the owner is %q, %v", owner, err)
		}
	})
	n := 0
	losing("run_a", func() { // of an event
		for _, err := range s.Read(ctx, "run_a", 0) {
			must(err)
			n++
		}
	})
	if n != 4 {
		t.Errorf("%d events, want 4", n)
	}
	losing("DELETE 1", func() { must(s.Delete(ctx, "run_a")) })
	if rows, _, err := s.Runs(ctx, nil); err != nil || len(rows) != 0 {
		t.Errorf("%+v, %v", rows, err)
	}
}

// lose loses the first answer that holds the words while fn is at work.
func lose(t *testing.T, proxy *pgtest.Proxy, words string, fn func()) {
	t.Helper()
	var cut atomic.Bool
	proxy.CutAnswers(func(answer []byte) bool {
		return bytes.Contains(answer, []byte(words)) && bytes.Contains(answer, []byte{'C', 0, 0, 0}) && cut.CompareAndSwap(false, true)
	})
	fn()
	proxy.CutAnswers(nil)
	if !cut.Load() {
		t.Errorf("no answer with %q was cut", words)
	}
}

// The server's answer to the claim of a run under an ended lease of another node is lost. The run is claimed all the same.
func TestClaimOfAnAbandonedRunIsRepeated(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	proxy := pgtest.NewProxy(t, url)
	s := open(t, proxy.URL)
	ctx := t.Context()
	if _, err := s.AppendAs(ctx, store.Claim{RunID: "run_a", Node: "node_1", Lease: lease}, 0, started("run_a")); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, `WITH ended AS (INSERT INTO lease (node, until) VALUES ('node_1', now() - interval '1 minute') RETURNING id)
		UPDATE run SET lease = ended.id, lease_until = 'infinity' FROM ended WHERE run_id = 'run_a'`); err != nil {
		t.Fatal(err)
	}
	lose(t, proxy, "UPDATE 1", func() {
		if c, err := s.ClaimRun(ctx, "node_2", "run_a", lease); err != nil || c.Epoch < 2 {
			t.Errorf("%+v, %v", c, err)
		}
	})
	if owner, err := s.Owner(ctx, "run_a"); err != nil || owner != "node_2" {
		t.Errorf("the owner is %q, %v", owner, err)
	}
}

// So it is with calls for workers: what one holds is not taken for another's.
func TestF8_FindsOutWhatBecameOfACall(t *testing.T) {
	t.Parallel()
	proxy := pgtest.NewProxy(t, pgtest.URL(t))
	s := open(t, proxy.URL)
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	claim := func() remote.Ref {
		t.Helper()
		calls, err := s.ClaimCalls(ctx, "w", []string{"def"}, lease, 1)
		if must(err); len(calls) != 1 {
			t.Fatalf("%d calls", len(calls))
		}
		return calls[0].Ref()
	}
	lose(t, proxy, "key_a", func() {
		row, err := s.PutCall(ctx, &remote.Call{Key: "key_a", RunID: "run_a", Tool: "act", Definition: "def", Effect: lathe.Writes, Arguments: []byte("{}")}, lease)
		if must(err); row.State != remote.Queued {
			t.Errorf("%+v", row)
		}
	})
	ref := claim()
	lose(t, proxy, "UPDATE 1", func() { must(s.StartCall(ctx, ref, lease)) })
	if err := s.StartCall(ctx, ref, lease); !errors.Is(err, lathe.ErrConflict) {
		t.Errorf("a second start: %v", err)
	}
	lose(t, proxy, "UPDATE 1", func() { must(s.ReturnCall(ctx, ref)) })
	if err := s.ReturnCall(ctx, ref); !errors.Is(err, lathe.ErrConflict) {
		t.Errorf("a second return: %v", err)
	}
	ref = claim()
	must(s.StartCall(ctx, ref, lease))
	lose(t, proxy, "UPDATE 1", func() { must(s.FinishCall(ctx, ref, &remote.Result{Data: []byte("1")})) })
	lose(t, proxy, "key_a", func() {
		row, err := s.FindCall(ctx, "key_a")
		if must(err); row.State != remote.Done || string(row.Result.Data) != "1" || row.Attempt != 2 {
			t.Errorf("%+v", row)
		}
	})
}

// While the database cannot be reached, appends are refused, not queued; afterwards they succeed again.
func TestF8_RefusesWhileUnreachable(t *testing.T) {
	t.Parallel()
	proxy := pgtest.NewProxy(t, pgtest.URL(t))
	s := open(t, proxy.URL)
	ctx := t.Context()
	c := store.Claim{RunID: "run_a", Node: "node_1", Lease: lease}
	if _, err := s.AppendAs(ctx, c, 0, started("run_a")); err != nil {
		t.Fatal(err)
	}
	c.Epoch = 1
	watched := make(chan error, 1)
	go func() { watched <- s.Watch(ctx, func(string) {}) }()
	proxy.Down()
	for range 3 {
		if _, err := s.AppendAs(ctx, c, 1, resumed("run_a", 2)); lathe.CodeOf(err) != lathe.CodeUnavailable {
			t.Errorf("append: %v", err)
		}
	}
	_, claim := s.Claim(ctx, "node_1", lease, 1)
	_, signals := s.Signals(ctx, "run_a")
	_, _, list := s.Runs(ctx, nil)
	for what, err := range map[string]error{"claim": claim, "signals": signals, "list": list, "put": s.PutSignal(ctx, store.Signal{RunID: "run_a", Kind: "cancel"}),
		"delete": s.Delete(ctx, "run_a"), "watch": <-watched} {
		if lathe.CodeOf(err) != lathe.CodeUnavailable {
			t.Errorf("%s: %v", what, err)
		}
	}
	short, cancel := context.WithTimeout(ctx, time.Nanosecond)
	defer cancel()
	if _, err := s.AppendAs(short, c, 1, resumed("run_a", 2)); lathe.CodeOf(err) != lathe.CodeTimeout {
		t.Errorf("with a deadline: %v", err)
	}
	proxy.Up()
	if end, err := s.AppendAs(ctx, c, 1, resumed("run_a", 2)); err != nil || end != 2 {
		t.Errorf("afterwards: %d, %v", end, err)
	}
}

// An error of the server's disk is an error of the store, nothing is half written, and appends succeed again
// when the disk has space.
func TestF16_DiskErrors(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s := open(t, url)
	ctx := t.Context()
	if _, err := s.Append(ctx, "run_a", 0, started("run_a")); err != nil {
		t.Fatal(err)
	}
	execute(t, url, `CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$`)
	execute(t, url, `CREATE TRIGGER full_disk BEFORE INSERT ON event FOR EACH ROW EXECUTE FUNCTION full_disk()`)
	for range 2 {
		if _, err := s.Append(ctx, "run_a", 1, resumed("run_a", 2)); lathe.CodeOf(err) != lathe.CodeUnavailable {
			t.Errorf("a full disk: %v", err)
		}
	}
	rows, _, err := s.Runs(ctx, nil)
	if err != nil || len(rows) != 1 || rows[0].LastID != 1 {
		t.Errorf("%+v, %v", rows, err)
	}
	execute(t, url, `DROP TRIGGER full_disk ON event`)
	if end, err := s.Append(ctx, "run_a", 1, resumed("run_a", 2)); err != nil || end != 2 {
		t.Errorf("afterwards: %d, %v", end, err)
	}
}
