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
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
)

// A line is what one node has of a store that several share. Held, it keeps its node waiting, as a process
// waits that is stopped; broken, it answers nothing but an error.
type line struct {
	*store.Memory
	mu      sync.Mutex
	blocked chan struct{} // nil: it is not held
	broken  bool
	losses  chan []string // the runs that WatchLosses reports as lost
	taken   func()        // called when a claim of one run is on its way back; nil: nothing is
}

func (l *line) ClaimRun(ctx context.Context, node, runID string, lease time.Duration) (store.Claim, error) {
	c, err := l.Memory.ClaimRun(ctx, node, runID, lease)
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

func (l *line) block() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.blocked = make(chan struct{})
}

func (l *line) free() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.blocked)
	l.blocked = nil
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
	blocked, broken := l.blocked, l.broken
	l.mu.Unlock()
	if blocked != nil {
		<-blocked
	}
	if broken {
		return &lathe.Error{Code: lathe.CodeUnavailable, Op: "line", Err: errors.New("it is broken")}
	}
	return nil
}

func (l *line) AppendAs(ctx context.Context, c store.Claim, last int64, events ...event.Event) (int64, error) {
	if err := l.pass(); err != nil {
		return 0, err
	}
	return l.Memory.AppendAs(ctx, c, last, events...)
}

func (l *line) Claim(ctx context.Context, node string, lease time.Duration, limit int) ([]store.Claim, error) {
	if err := l.pass(); err != nil {
		return nil, err
	}
	return l.Memory.Claim(ctx, node, lease, limit)
}

func (l *line) Renew(ctx context.Context, node string, lease time.Duration) ([]store.Claim, error) {
	if err := l.pass(); err != nil {
		return nil, err
	}
	return l.Memory.Renew(ctx, node, lease)
}

func (l *line) Release(ctx context.Context, c store.Claim, seen int64) error {
	if err := l.pass(); err != nil {
		return err
	}
	return l.Memory.Release(ctx, c, seen)
}

// An ear is a sink that counts the events that it receives, except deltas.
type ear struct {
	mu sync.Mutex
	n  int
}

func (e *ear) Emit(_ context.Context, ev event.Event) {
	if !event.IsDelta(ev.Data) {
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
	supervisor *engine.Supervisor
	eng        *engine.Engine
	published  *ear
	loop       *loop.Loop
	leave      func()
}

// newHost makes a node on the store that looks for runs, until leave.
func newHost(t *testing.T, kept *store.Memory, l *loop.Loop, change ...func(*engine.Options)) *host {
	t.Helper()
	h := &host{line: &line{Memory: kept, losses: make(chan []string)}, published: &ear{}, loop: l}
	opts := &engine.Options{Store: h.line, Sinks: []event.Sink{h.published}}
	for _, c := range change {
		c(opts)
	}
	h.eng = newEngine(t, opts)
	h.supervisor = newSupervisor(t, h.eng, 0)
	ctx, cancel := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() {
		h.supervisor.Serve(ctx, &engine.ServeOptions{LoopFor: func(*store.RunSummary) (*loop.Loop, error) { return h.loop, nil }})
	})
	h.leave = sync.OnceFunc(func() {
		cancel()
		serving.Wait()
		h.supervisor.Drain(ctx)
	})
	t.Cleanup(h.leave)
	return h
}

func (h *host) start(t *testing.T, id string) {
	t.Helper()
	if _, err := h.supervisor.Start(t.Context(), h.loop, parkable(id), nil); err != nil {
		t.Fatal(err)
	}
}

// ends returns how a run has ended, and how often.
func ends(t *testing.T, s store.Store, id string) (reason lathe.Reason, n int) {
	t.Helper()
	last := int64(0)
	for e, err := range s.Read(t.Context(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if last++; e.ID != last {
			t.Errorf("%s: event %d follows %d", id, e.ID, last-1)
		}
		if f, ok := e.Data.(*event.RunFinished); ok {
			reason = f.Reason
			n++
		}
	}
	return reason, n
}

// resultCode returns the error code of the first tool result in the log of a run; "": the call succeeded, or the log has no result.
func resultCode(t *testing.T, s store.Store, id string) lathe.Code {
	t.Helper()
	for e, err := range s.Read(t.Context(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if r, ok := e.Data.(*event.ToolCallResult); ok {
			return lathe.Code(r.ErrorType)
		}
	}
	return ""
}

func status(t *testing.T, s store.RunIndex, id string) string {
	t.Helper()
	rows, _, err := s.Runs(t.Context(), &store.RunFilter{RunID: id})
	if err != nil || len(rows) != 1 {
		t.Fatalf("%s: %d rows, %v", id, len(rows), err)
	}
	return rows[0].Status
}

// A node that was paused for longer than its lease is a zombie: another node has resumed its runs, the store refuses what
// it appends, and it publishes no event.
func TestF3_ZombieIsRefused(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Duration{time.Second, 31 * time.Second} { // in the first model call, and in the second
		synctest.Test(t, func(t *testing.T) {
			kept, c := store.NewMemory(nil), &counter{}
			first := newHost(t, kept, newLoop(t, model{pieces: 1, wait: 30 * time.Second}, c))
			first.start(t, "run_1")
			second := newHost(t, kept, newLoop(t, model{pieces: 1, wait: time.Second}, c))
			time.Sleep(at)
			first.block()
			before := first.published.count()
			time.Sleep(time.Minute)
			if reason, n := ends(t, kept, "run_1"); reason != lathe.ReasonAnswered || n != 1 {
				t.Errorf("the other node has not ended it: %s, %d ends", reason, n)
			}
			first.free()
			res, _, err := first.supervisor.Wait(t.Context(), "run_1")
			if first.supervisor.Owns("run_1") && (res == nil || res.Reason != lathe.ReasonInterrupted) {
				t.Errorf("the zombie got %+v, %v", res, err)
			}
			time.Sleep(time.Minute)
			if now := first.published.count(); now != before {
				t.Errorf("the zombie published %d events", now-before)
			}
			if reason, n := ends(t, kept, "run_1"); reason != lathe.ReasonAnswered || n != 1 || c.count() != 1 {
				t.Errorf("%s, %d ends, the tool ran %d times", reason, n, c.count())
			}
			if second.published.count() == 0 {
				t.Error("the second node published nothing")
			}
			first.leave()
			second.leave()
		})
	}
}

// A node that cannot renew its claims stops its runs before others may take them, and resumes them
// once it can.
func TestF8_StopsWhatItCannotRenew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept, c := store.NewMemory(nil), &counter{}
		begun, ended := time.Now(), time.Time{}
		slow := &slowModel{wait: time.Hour, over: func() { ended = time.Now() }}
		first := newHost(t, kept, newLoop(t, slow, c))
		first.start(t, "run_1")
		time.Sleep(time.Second)
		first.snap()
		time.Sleep(20 * time.Second)
		if first.supervisor.Owns("run_1") || ended.IsZero() || ended.Sub(begun) > 9*time.Second {
			t.Errorf("it owns the run: %v, and left the model after %v", first.supervisor.Owns("run_1"), ended.Sub(begun))
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
				nodes := []*host{newHost(t, kept, l), newHost(t, kept, l)}
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

// A slowModel waits, and records when it was cancelled.
type slowModel struct {
	wait time.Duration
	over func()
}

func (*slowModel) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

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
		first := newHost(t, kept, newLoop(t, model{pieces: 1, wait: 10 * time.Minute}, c))
		second := newHost(t, kept, newLoop(t, model{pieces: 1, wait: time.Second}, c))
		for i := range 3 {
			first.start(t, fmt.Sprint("run_", i))
		}
		time.Sleep(5 * time.Minute)
		if owner, err := kept.Owner(t.Context(), "run_1"); err != nil || owner != first.eng.Node() || second.supervisor.Active() != 0 {
			t.Errorf("it is owned by %q, %v", owner, err)
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

// A cancel request that the store holds ends the run on whichever node executes it.
func TestF13_CancelFromAfar(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept, c := store.NewMemory(nil), &counter{}
		first := newHost(t, kept, newLoop(t, model{pieces: 1, wait: time.Hour}, c))
		first.start(t, "run_1")
		time.Sleep(time.Minute)
		if err := kept.PutSignal(t.Context(), store.Signal{RunID: "run_1", Kind: store.SignalCancel}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Second) // a renewal
		if reason, n := ends(t, kept, "run_1"); reason != lathe.ReasonCancelled || n != 1 || first.supervisor.Active() != 0 {
			t.Errorf("%s, %d ends", reason, n)
		}
		// A parked run that no node executes is ended by the node that reads the cancel request first.
		first.loop = askingLoop(t, &approvals{}, c)
		first.start(t, "run_2")
		time.Sleep(time.Minute)
		if err := kept.PutSignal(t.Context(), store.Signal{RunID: "run_2", Kind: store.SignalCancel}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Second)
		if reason, n := ends(t, kept, "run_2"); reason != lathe.ReasonCancelled || n != 1 || c.count() != 0 {
			t.Errorf("%s, %d ends, the tool ran %d times", reason, n, c.count())
		}
		first.leave()
	})
}

// A stored answer is applied whenever it arrives: before the run parks, while it parks, after that, and after the end of the
// process that received the answer. A process that ends while the run parks may leave the call planned and its request unstored: the
// tool may have been called then, so that it is not called again.
func TestF2_SignalsAreApplied(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Duration{time.Second, 5 * time.Second, time.Minute} {
		for _, dies := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				kept, c, d := store.NewMemory(nil), &counter{}, &approvals{}
				ask := func(wait time.Duration) *loop.Loop { return askingLoopOf(t, model{pieces: 1, wait: wait}, d, c) }
				first := newHost(t, kept, ask(5*time.Second))
				first.start(t, "run_1")
				time.Sleep(at)
				d.open.Store(true)
				err := kept.PutSignal(t.Context(), store.Signal{RunID: "run_1", Kind: store.SignalApproval, Key: "a", Body: []byte(`{}`)})
				if err != nil {
					t.Fatal(err)
				}
				if dies {
					first.block() // for good, for all that others can see
					newHost(t, kept, ask(time.Second))
				}
				time.Sleep(2 * time.Minute)
				calls := 1
				if dies && at == 5*time.Second && resultCode(t, kept, "run_1") == lathe.CodeInterrupted {
					calls = 0
				}
				if reason, n := ends(t, kept, "run_1"); reason != lathe.ReasonAnswered || n != 1 || c.count() != calls {
					t.Errorf("at %v, dies %v: %s, %d ends, the tool ran %d times, not %d", at, dies, reason, n, c.count(), calls)
				}
				if dies {
					first.free()
				}
			})
		}
	}
}

// A request for approval that expires resumes the run, even if a node that has stopped made the request.
func TestF12_ExpiredApprovalWakesTheRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept, c := store.NewMemory(nil), &counter{}
		first := newHost(t, kept, askingLoop(t, &approvals{}, c))
		first.start(t, "run_1")
		time.Sleep(time.Minute)
		first.leave()
		time.Sleep(time.Minute)
		second := newHost(t, kept, askingLoop(t, &approvals{}, c))
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

// A run whose log cannot be resumed is parked after five attempts, until a caller cancels or resumes it, and does not keep other
// runs from being resumed.
func TestF19_PoisonIsSetAside(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept, c := store.NewMemory(nil), &counter{}
		start := func(id string, input string) {
			_, err := kept.Append(t.Context(), id, 0, event.Event{ID: 1, RunID: id, RequestID: "req", Time: time.Now(),
				Data: &event.RunStarted{Messages: []lathe.Message{lathe.User("hi")}, Input: []byte(input)}})
			if err != nil {
				t.Fatal(err)
			}
		}
		start("run_bad", `{"version":99}`) // of a newer version: it cannot be folded
		start("run_good", `{"version":1}`)
		panicky := newLoop(t, panicModel{}, c)
		start("run_panics", `{"version":1}`)
		good := newLoop(t, model{pieces: 1}, c)
		h := &host{line: &line{Memory: kept}, published: &ear{}}
		h.supervisor = newSupervisor(t, newEngine(t, &engine.Options{Store: h.line}), 0)
		ctx, cancel := context.WithCancel(t.Context())
		var serving sync.WaitGroup
		serving.Go(func() {
			h.supervisor.Serve(ctx, &engine.ServeOptions{LoopFor: func(r *store.RunSummary) (*loop.Loop, error) {
				if r.RunID == "run_panics" {
					return panicky, nil
				}
				return good, nil
			}})
		})
		time.Sleep(10 * time.Minute)
		cancel()
		serving.Wait()
		h.supervisor.Drain(t.Context())
		if reason, n := ends(t, kept, "run_good"); reason != lathe.ReasonAnswered || n != 1 {
			t.Errorf("the good run: %s, %d ends", reason, n)
		}
		if _, n := ends(t, kept, "run_panics"); n != 1 {
			t.Errorf("the run whose model panics has %d ends", n) // the loop ends it
		}
		rows, _, err := kept.Runs(t.Context(), &store.RunFilter{RunID: "run_bad"})
		if err != nil || len(rows) != 1 || rows[0].Status != "parked" || rows[0].Reason != lathe.ReasonInterrupted || rows[0].LastID != 7 {
			t.Errorf("%+v, %v", rows, err)
		}
	})
}

type panicModel struct{}

func (panicModel) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (panicModel) Generate(context.Context, *lathe.Request) iter.Seq2[lathe.Delta, error] {
	panic("the model is broken")
}

// A lateQueue knows of an answer that was given in time.
type lateQueue struct{ approvals }

func (d *lateQueue) StoredApproval(context.Context, *lathe.ApprovalRequest) (lathe.Approval, bool) {
	return lathe.Approval{Approved: true, By: "an approver"}, d.open.Load()
}

// An answer that was given before the request expired counts when the run gets to it after that.
func TestF12_AnswerInTimeCountsLater(t *testing.T) {
	t.Parallel()
	for _, decided := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			kept, c, d := store.NewMemory(nil), &counter{}, &lateQueue{}
			set, err := tool.NewSet(c)
			if err != nil {
				t.Fatal(err)
			}
			runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.Tools{Ask: []string{"count"}}, Approver: d})
			if err != nil {
				t.Fatal(err)
			}
			l, err := loop.New(model{pieces: 1}, runner, nil)
			if err != nil {
				t.Fatal(err)
			}
			e := newEngine(t, &engine.Options{Store: kept})
			if res, err := e.Run(t.Context(), l, parkable("run_1"), nil); err != nil || res.Reason != lathe.ReasonAwaitingApproval {
				t.Fatalf("%+v, %v", res, err)
			}
			d.open.Store(decided)
			time.Sleep(2 * time.Hour)
			res, err := e.Resume(t.Context(), l, "run_1", nil)
			if err != nil || res.Reason != lathe.ReasonAnswered || c.count() != map[bool]int{true: 1, false: 0}[decided] {
				t.Errorf("decided %v: %+v, %v, the tool ran %d times", decided, res, err, c.count())
			}
		})
	}
}
