package engine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
)

// A line is what one node has of a store that several share. Held, it keeps its node waiting, as a process
// waits that is stopped; broken, it answers nothing but an error.
type line struct {
	*store.Memory
	mu     sync.Mutex
	held   chan struct{} // nil: it is not held
	broken bool
	losses chan []string // what the node is told that the store has lost
	taken  func()        // called when a claim of one run is on its way back; nil: nothing is
}

func (l *line) Take(ctx context.Context, node, runID string, lease time.Duration) (lathe.Claim, error) {
	c, err := l.Memory.Take(ctx, node, runID, lease)
	if l.taken != nil {
		l.taken()
	}
	return c, err
}

func (l *line) WatchLosses(ctx context.Context, fn func([]string)) {
	for {
		select {
		case lost := <-l.losses:
			fn(lost)
		case <-ctx.Done():
			return
		}
	}
}

func (l *line) hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = make(chan struct{})
}

func (l *line) free() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.held)
	l.held = nil
}

func (l *line) snap() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = true
}

func (l *line) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = false
}

func (l *line) pass() error {
	l.mu.Lock()
	held, broken := l.held, l.broken
	l.mu.Unlock()
	if held != nil {
		<-held
	}
	if broken {
		return &lathe.Error{Code: lathe.CodeUnavailable, Op: "line", Err: errors.New("it is broken")}
	}
	return nil
}

func (l *line) AppendAs(ctx context.Context, c lathe.Claim, last int64, events ...lathe.Event) (int64, error) {
	if err := l.pass(); err != nil {
		return 0, err
	}
	return l.Memory.AppendAs(ctx, c, last, events...)
}

func (l *line) Claim(ctx context.Context, node string, lease time.Duration, limit int) ([]lathe.Claim, error) {
	if err := l.pass(); err != nil {
		return nil, err
	}
	return l.Memory.Claim(ctx, node, lease, limit)
}

func (l *line) Renew(ctx context.Context, node string, lease time.Duration) ([]lathe.Claim, error) {
	if err := l.pass(); err != nil {
		return nil, err
	}
	return l.Memory.Renew(ctx, node, lease)
}

func (l *line) Release(ctx context.Context, c lathe.Claim, seen int64) error {
	if err := l.pass(); err != nil {
		return err
	}
	return l.Memory.Release(ctx, c, seen)
}

// An ear counts the events that it is told, but for deltas.
type ear struct {
	mu sync.Mutex
	n  int
}

func (e *ear) Emit(_ context.Context, ev lathe.Event) {
	if !lathe.IsDelta(ev.Data) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.n++
	}
}

func (e *ear) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.n
}

// A host is one node of several.
type host struct {
	*line
	crew  *engine.Crew
	eng   *engine.Engine
	told  *ear
	loop  *loop.Loop
	leave func()
}

// join makes a node on the store that looks for runs, until leave.
func join(t *testing.T, kept *store.Memory, l *loop.Loop, change ...func(*engine.Options)) *host {
	t.Helper()
	h := &host{line: &line{Memory: kept, losses: make(chan []string)}, told: &ear{}, loop: l}
	opts := &engine.Options{Store: h.line, Sinks: []lathe.Sink{h.told}}
	for _, c := range change {
		c(opts)
	}
	h.eng = engine.New(opts)
	h.crew = engine.NewCrew(h.eng, 0)
	ctx, cancel := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() {
		h.crew.Serve(ctx, &engine.ServeOptions{LoopFor: func(*lathe.RunSummary) (*loop.Loop, error) { return h.loop, nil }})
	})
	h.leave = sync.OnceFunc(func() {
		cancel()
		serving.Wait()
		h.crew.Drain(ctx)
	})
	t.Cleanup(h.leave)
	return h
}

func (h *host) start(t *testing.T, id string) {
	t.Helper()
	if _, err := h.crew.Start(t.Context(), h.loop, parkable(id)); err != nil {
		t.Fatal(err)
	}
}

// ends returns how a run has ended, and how often.
func ends(t *testing.T, s lathe.Store, id string) (reason lathe.Reason, n int) {
	t.Helper()
	last := int64(0)
	for e, err := range s.Read(t.Context(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if last++; e.ID != last {
			t.Errorf("%s: event %d follows %d", id, e.ID, last-1)
		}
		if f, ok := e.Data.(*lathe.RunFinished); ok {
			reason = f.Reason
			n++
		}
	}
	return reason, n
}

func status(t *testing.T, s lathe.RunIndex, id string) string {
	t.Helper()
	rows, _, err := s.Runs(t.Context(), &lathe.RunFilter{RunID: id})
	if err != nil || len(rows) != 1 {
		t.Fatalf("%s: %d rows, %v", id, len(rows), err)
	}
	return rows[0].Status
}

// A node that was stopped for longer than its lease is a zombie: another has gone on with its runs, what it
// appends is refused, and it tells nobody.
func TestF3_ZombieIsRefused(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Duration{time.Second, 31 * time.Second} { // in the first model call, and in the second
		synctest.Test(t, func(t *testing.T) {
			kept, c := store.NewMemory(nil), &counter{}
			first := join(t, kept, newLoop(t, model{pieces: 1, wait: 30 * time.Second}, c))
			first.start(t, "run_1")
			second := join(t, kept, newLoop(t, model{pieces: 1, wait: time.Second}, c))
			time.Sleep(at)
			first.hold()
			before := first.told.count()
			time.Sleep(time.Minute)
			if reason, n := ends(t, kept, "run_1"); reason != lathe.ReasonAnswered || n != 1 {
				t.Errorf("the other node has not ended it: %s, %d ends", reason, n)
			}
			first.free()
			res, _, err := first.crew.Wait(t.Context(), "run_1")
			if first.crew.Carries("run_1") && (res == nil || res.Reason != lathe.ReasonInterrupted) {
				t.Errorf("the zombie got %+v, %v", res, err)
			}
			time.Sleep(time.Minute)
			if now := first.told.count(); now != before {
				t.Errorf("the zombie told %d events", now-before)
			}
			if reason, n := ends(t, kept, "run_1"); reason != lathe.ReasonAnswered || n != 1 || c.count() != 1 {
				t.Errorf("%s, %d ends, the tool ran %d times", reason, n, c.count())
			}
			if second.told.count() == 0 {
				t.Error("the second node told nothing")
			}
			first.leave()
			second.leave()
		})
	}
}

// A node that cannot renew its claims stops its runs before others may take them, and takes them up again
// once it can.
func TestF8_StopsWhatItCannotRenew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept, c := store.NewMemory(nil), &counter{}
		begun, ended := time.Now(), time.Time{}
		slow := &slowModel{wait: time.Hour, over: func() { ended = time.Now() }}
		first := join(t, kept, newLoop(t, slow, c))
		first.start(t, "run_1")
		time.Sleep(time.Second)
		first.snap()
		time.Sleep(20 * time.Second)
		if first.crew.Carries("run_1") || ended.IsZero() || ended.Sub(begun) > 9*time.Second {
			t.Errorf("it carries %v, and left the model after %v", first.crew.Carries("run_1"), ended.Sub(begun))
		}
		if _, n := ends(t, kept, "run_1"); n != 0 || status(t, kept, "run_1") != "running" {
			t.Errorf("it has %d ends", n)
		}
		first.loop = newLoop(t, model{pieces: 1}, c)
		first.mend()
		time.Sleep(30 * time.Second)
		if reason, n := ends(t, kept, "run_1"); reason != lathe.ReasonAnswered || n != 1 || c.count() != 1 {
			t.Errorf("%s, %d ends, the tool ran %d times", reason, n, c.count())
		}
		first.leave()
	})
}

// The store of all nodes cannot be reached for a second, half a minute or five: what goes on ends once, nothing
// that writes is done twice, and what is asked for meanwhile is refused, not begun later.
func TestF8_StoreUnreachableForLong(t *testing.T) {
	t.Parallel()
	for _, long := range []time.Duration{time.Second, 30 * time.Second, 300 * time.Second} {
		for at := range 8 { // of a run that takes four seconds
			synctest.Test(t, func(t *testing.T) {
				kept, c := store.NewMemory(nil), &counter{}
				l := newLoop(t, model{pieces: 1, wait: 2 * time.Second}, c)
				nodes := []*host{join(t, kept, l), join(t, kept, l)}
				nodes[0].start(t, "run_1")
				time.Sleep(time.Duration(at)*500*time.Millisecond + 250*time.Millisecond)
				for _, h := range nodes {
					h.snap()
				}
				nodes[1].start(t, "run_refused")
				time.Sleep(long)
				for _, h := range nodes {
					h.mend()
				}
				time.Sleep(2 * time.Minute)
				if reason, n := ends(t, kept, "run_1"); reason != lathe.ReasonAnswered || n != 1 || c.count() > 1 {
					t.Errorf("%v at %d: %s, %d ends, the tool ran %d times", long, at, reason, n, c.count())
				}
				rows, _, err := kept.Runs(t.Context(), nil)
				if err != nil || len(rows) != 1 {
					t.Errorf("%v at %d: %d runs, %v", long, at, len(rows), err)
				}
				for _, h := range nodes {
					h.leave()
				}
			})
		}
	}
}

// A slowModel waits, and says when it was given up.
type slowModel struct {
	wait time.Duration
	over func()
}

func (m *slowModel) Generate(ctx context.Context, _ *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		select {
		case <-time.After(m.wait):
		case <-ctx.Done():
		}
		m.over()
		yield(lathe.Delta{}, &lathe.Error{Code: lathe.CodeCancelled, Op: "model", Err: ctx.Err()})
	}
}

// A node that is alive keeps its runs, however long they take, and gives them back when it is drained.
func TestF1_DrainGivesRunsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept, c := store.NewMemory(nil), &counter{}
		first := join(t, kept, newLoop(t, model{pieces: 1, wait: 10 * time.Minute}, c))
		second := join(t, kept, newLoop(t, model{pieces: 1, wait: time.Second}, c))
		for i := range 3 {
			first.start(t, fmt.Sprint("run_", i))
		}
		time.Sleep(5 * time.Minute)
		if owner, err := kept.Owner(t.Context(), "run_1"); err != nil || owner != first.eng.Node() || second.crew.Active() != 0 {
			t.Errorf("it is carried by %q, %v", owner, err)
		}
		first.leave()
		time.Sleep(10 * time.Second) // less than a lease and what the runs take
		for i := range 3 {
			if reason, n := ends(t, kept, fmt.Sprint("run_", i)); reason != lathe.ReasonAnswered || n != 1 {
				t.Errorf("%s, %d ends", reason, n)
			}
		}
		if c.count() != 3 {
			t.Errorf("the tool ran %d times", c.count())
		}
		second.leave()
	})
}

// Whoever wishes to end a run need not be where it is carried.
func TestF13_CancelFromAfar(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept, c := store.NewMemory(nil), &counter{}
		first := join(t, kept, newLoop(t, model{pieces: 1, wait: time.Hour}, c))
		first.start(t, "run_1")
		time.Sleep(time.Minute)
		if err := kept.PutFact(t.Context(), lathe.Fact{RunID: "run_1", Kind: lathe.FactCancel}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Second) // a beat
		if reason, n := ends(t, kept, "run_1"); reason != lathe.ReasonCancelled || n != 1 || first.crew.Active() != 0 {
			t.Errorf("%s, %d ends", reason, n)
		}
		// One that waits, and nobody carries, is ended by whoever looks.
		first.loop = askingLoop(t, &desk{}, c)
		first.start(t, "run_2")
		time.Sleep(time.Minute)
		if err := kept.PutFact(t.Context(), lathe.Fact{RunID: "run_2", Kind: lathe.FactCancel}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Second)
		if reason, n := ends(t, kept, "run_2"); reason != lathe.ReasonCancelled || n != 1 || c.count() != 0 {
			t.Errorf("%s, %d ends, the tool ran %d times", reason, n, c.count())
		}
		first.leave()
	})
}

// An answer that was stored is taken up, whenever it came: before the run waits, as it comes to wait, after
// that, and after the process that took it has ended.
func TestF2_FactsAreTakenUp(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Duration{time.Second, 5 * time.Second, time.Minute} {
		for _, dies := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				kept, c, d := store.NewMemory(nil), &counter{}, &desk{}
				ask := func(wait time.Duration) *loop.Loop { return askingLoopOf(t, model{pieces: 1, wait: wait}, d, c) }
				first := join(t, kept, ask(5*time.Second))
				first.start(t, "run_1")
				time.Sleep(at)
				d.open.Store(true)
				err := kept.PutFact(t.Context(), lathe.Fact{RunID: "run_1", Kind: lathe.FactApproval, Key: "a", Body: []byte(`{}`)})
				if err != nil {
					t.Fatal(err)
				}
				if dies {
					first.hold() // for good, as far as others can tell
					join(t, kept, ask(time.Second))
				}
				time.Sleep(2 * time.Minute)
				if reason, n := ends(t, kept, "run_1"); reason != lathe.ReasonAnswered || n != 1 || c.count() != 1 {
					t.Errorf("at %v, dies %v: %s, %d ends, the tool ran %d times", at, dies, reason, n, c.count())
				}
				if dies {
					first.free()
				}
			})
		}
	}
}

// A request for approval that expires has the run go on, whoever asked.
func TestF12_ExpiredApprovalWakesTheRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept, c := store.NewMemory(nil), &counter{}
		first := join(t, kept, askingLoop(t, &desk{}, c))
		first.start(t, "run_1")
		time.Sleep(time.Minute)
		first.leave()
		time.Sleep(time.Minute)
		second := join(t, kept, askingLoop(t, &desk{}, c))
		time.Sleep(50 * time.Minute)
		if got := status(t, kept, "run_1"); got != "parked" {
			t.Fatalf("it is %s", got)
		}
		time.Sleep(10 * time.Minute)
		if reason, n := ends(t, kept, "run_1"); reason != lathe.ReasonAnswered || n != 1 || c.count() != 0 {
			t.Errorf("%s, %d ends, the tool ran %d times", reason, n, c.count())
		}
		second.leave()
	})
}

// A run whose log nobody can go on with waits for a person after five attempts, and keeps no other run from
// being gone on with.
func TestF19_PoisonIsSetAside(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept, c := store.NewMemory(nil), &counter{}
		start := func(id string, input string) {
			_, err := kept.Append(t.Context(), id, 0, lathe.Event{ID: 1, RunID: id, RequestID: "req", Time: time.Now(),
				Data: &lathe.RunStarted{Messages: []lathe.Message{lathe.User("hi")}, Input: []byte(input)}})
			if err != nil {
				t.Fatal(err)
			}
		}
		start("run_bad", `{"version":99}`) // of a newer version: it cannot be folded
		start("run_good", `{"version":1}`)
		panicky := newLoop(t, panicModel{}, c)
		start("run_panics", `{"version":1}`)
		good := newLoop(t, model{pieces: 1}, c)
		h := &host{line: &line{Memory: kept}, told: &ear{}}
		h.crew = engine.NewCrew(engine.New(&engine.Options{Store: h.line}), 0)
		ctx, cancel := context.WithCancel(t.Context())
		var serving sync.WaitGroup
		serving.Go(func() {
			h.crew.Serve(ctx, &engine.ServeOptions{LoopFor: func(r *lathe.RunSummary) (*loop.Loop, error) {
				if r.RunID == "run_panics" {
					return panicky, nil
				}
				return good, nil
			}})
		})
		time.Sleep(10 * time.Minute)
		cancel()
		serving.Wait()
		h.crew.Drain(t.Context())
		if reason, n := ends(t, kept, "run_good"); reason != lathe.ReasonAnswered || n != 1 {
			t.Errorf("the good run: %s, %d ends", reason, n)
		}
		if _, n := ends(t, kept, "run_panics"); n != 1 {
			t.Errorf("the run whose model panics has %d ends", n) // the loop ends it
		}
		rows, _, err := kept.Runs(t.Context(), &lathe.RunFilter{RunID: "run_bad"})
		if err != nil || len(rows) != 1 || rows[0].Status != "parked" || rows[0].Reason != lathe.ReasonInterrupted || rows[0].LastID != 7 {
			t.Errorf("%+v, %v", rows, err)
		}
	})
}

type panicModel struct{}

func (panicModel) Generate(context.Context, *lathe.Request) iter.Seq2[lathe.Delta, error] {
	panic("the model is broken")
}

// A lateDesk knows of an answer that was given in time.
type lateDesk struct{ desk }

func (d *lateDesk) Recall(context.Context, *lathe.ApprovalRequest) (lathe.Approval, bool) {
	return lathe.Approval{Approved: true, By: "somebody"}, d.open.Load()
}

// An answer that was given before the request expired counts when the run gets to it after that.
func TestF12_AnswerInTimeCountsLater(t *testing.T) {
	t.Parallel()
	for _, said := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			kept, c, d := store.NewMemory(nil), &counter{}, &lateDesk{}
			set, err := tool.NewSet(c)
			if err != nil {
				t.Fatal(err)
			}
			l, err := loop.New(model{pieces: 1}, tool.NewRunner(set, &tool.Options{Policy: policy.Tools{Ask: []string{"count"}}, Approver: d}), nil)
			if err != nil {
				t.Fatal(err)
			}
			e := engine.New(&engine.Options{Store: kept})
			if res, err := e.Run(t.Context(), l, parkable("run_1")); err != nil || res.Reason != lathe.ReasonAwaitingApproval {
				t.Fatalf("%+v, %v", res, err)
			}
			d.open.Store(said)
			time.Sleep(2 * time.Hour)
			res, err := e.Resume(t.Context(), l, "run_1", nil)
			if err != nil || res.Reason != lathe.ReasonAnswered || c.count() != map[bool]int{true: 1, false: 0}[said] {
				t.Errorf("said %v: %+v, %v, the tool ran %d times", said, res, err, c.count())
			}
		})
	}
}
