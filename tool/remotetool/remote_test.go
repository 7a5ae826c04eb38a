package remotetool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/leaktest"
	"github.com/lathe-run/lathe/internal/testkit/remotetest"
	"github.com/lathe-run/lathe/remote"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const ttl = 10 * time.Minute

func offer(name, effect string) remote.Tool {
	return remote.Tool{Name: name, Description: "Does.", Schema: json.RawMessage(`{"type":"object"}`), Effect: effect, Allowlist: []string{"*"}}
}

// rig is a site over a store in memory. It lives in a bubble.
type rig struct {
	*remotetest.Site
	t     *testing.T
	queue *store.Memory
}

func newRig(t *testing.T, queue *store.Memory, locals ...lathe.Tool) *rig {
	t.Helper()
	if queue == nil {
		queue = store.NewMemory(nil)
	}
	r := &rig{remotetest.Open(t, queue, locals...), t, queue}
	synctest.Wait() // it follows
	return r
}

func (r *rig) announce(id string, tools ...remote.Tool) map[string]string {
	r.t.Helper()
	refused, err := r.Catalogue.Announce(r.t.Context(), &remote.Worker{ID: id, Pool: "f", Tools: tools}, ttl)
	if err != nil {
		r.t.Fatal(err)
	}
	return refused
}

func (r *rig) names() (names []string) {
	for _, sp := range r.Set.Specs() {
		names = append(names, sp.Name+" "+sp.Origin)
	}
	return names
}

// work is a worker that claims one call, starts it, and does with it what do says.
func (r *rig) work(definition string, do func(c *remote.Call)) {
	r.t.Helper()
	for {
		calls, err := r.queue.ClaimCalls(r.t.Context(), "f/w", []string{definition}, 10*time.Second, 1)
		if err != nil {
			r.t.Error(err)
			return
		}
		if len(calls) == 1 {
			if err := r.queue.StartCall(r.t.Context(), calls[0].Ref(), 10*time.Second); err != nil {
				r.t.Error(err)
				return
			}
			do(&calls[0])
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (r *rig) finish(c *remote.Call, res *remote.Result) {
	r.t.Helper()
	if err := r.queue.FinishCall(r.t.Context(), c.Ref(), res); err != nil {
		r.t.Error(err)
	}
}

func begun(name string) tool.Call {
	c := remotetest.Ask(name)
	c.Parked, c.Begun = &tool.Parked{}, true
	return c
}

func bubble(t *testing.T, fn func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, fn)
}

func TestCallGoesToAWorker(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.Close()
		act := offer("act", "writes")
		r.announce("f/w", act)
		var wg sync.WaitGroup
		wg.Go(func() {
			r.work(act.Definition(), func(c *remote.Call) {
				if string(c.Arguments) != `{"a":1.50}` || c.RunID != "run_1" || c.CallID != "call_1" || c.RequestID != "req" || c.SessionID != "s" || c.Depth != 1 ||
					c.Tool != "act" || c.Effect != lathe.Writes || c.Key == "" {
					t.Errorf("the worker gets %+v", c)
				}
				r.finish(c, &remote.Result{Data: json.RawMessage(`{"n":1.50}`)})
			})
		})
		began := time.Now()
		if got := r.Run(t.Context(), "run_1", remotetest.Ask("act")); got.IsError || got.Content != `{"n":1.50}` {
			t.Errorf("%+v", got)
		}
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("it took %s, in spite of notifications", took)
		}
		wg.Wait()
	})
}

func TestWorkerDescriptionsAreChecked(t *testing.T) {
	for name, tt := range map[string]struct {
		res  *remote.Result
		code lathe.Code
		want string
	}{
		"detail": {&remote.Result{IsError: true, Code: lathe.CodeInvalidArguments, Detail: "no such city"}, lathe.CodeInvalidArguments, "no such city"},
		"data":   {&remote.Result{IsError: true, Data: json.RawMessage(`{"why":"closed"}`)}, lathe.CodeExecutionFailed, "closed"},
		"code":   {&remote.Result{IsError: true, Code: lathe.CodeUnavailable}, lathe.CodeUnavailable, "unavailable"},
		"odd":    {&remote.Result{IsError: true, Code: "<made up>"}, lathe.CodeExecutionFailed, "execution_failed"},
		"broken": {&remote.Result{Data: json.RawMessage(`{"a":1,"a":2}`)}, lathe.CodeInvalidOutput, "invalid_output"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t, nil)
				defer r.Close()
				act := offer("act", "read_only")
				r.announce("f/w", act)
				var wg sync.WaitGroup
				wg.Go(func() { r.work(act.Definition(), func(c *remote.Call) { r.finish(c, tt.res) }) })
				got := r.Run(t.Context(), "run_1", remotetest.Ask("act"))
				wg.Wait()
				if got.Code != tt.code || !strings.Contains(got.Content, tt.want) {
					t.Errorf("%s %s", got.Code, got.Content)
				}
			})
		})
	}
}

// A run goes on in another process while its call is with a worker: it waits for that call, and the tool is
// not called again.
func TestAnotherProcessWaitsOn(t *testing.T) {
	for _, effect := range []string{"writes", "read_only"} {
		t.Run(effect, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				first := newRig(t, nil)
				act := offer("act", effect)
				first.announce("f/w", act)
				started, finish := make(chan struct{}), make(chan struct{})
				var wg sync.WaitGroup
				wg.Go(func() {
					first.work(act.Definition(), func(c *remote.Call) {
						close(started)
						<-finish
						first.finish(c, &remote.Result{Data: json.RawMessage(`"done"`)})
					})
				})
				ctx, leave := context.WithCancelCause(t.Context())
				wg.Go(func() { first.Run(ctx, "run_1", remotetest.Ask("act")) })
				<-started
				leave(fmt.Errorf("engine: %w", lathe.ErrLeft))
				synctest.Wait()
				first.Close()

				second := newRig(t, first.queue)
				defer second.Close()
				wg.Go(func() {
					time.Sleep(5 * time.Second)
					close(finish)
				})
				if got := second.Run(t.Context(), "run_1", begun("act")); got.Content != "done" {
					t.Errorf("%+v", got)
				}
				third := second.Run(t.Context(), "run_1", begun("act"))
				if third.Content != "done" {
					t.Errorf("asked again: %+v", third)
				}
				wg.Wait()
				if calls, err := first.queue.ClaimCalls(t.Context(), "f/x", []string{act.Definition()}, time.Minute, 9); err != nil || len(calls) != 0 {
					t.Errorf("there are %d more calls, %v", len(calls), err)
				}
			})
		})
	}
}

// A call whose intent was kept and that was never queued is made.
func TestMakesWhatWasNeverQueued(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.Close()
		act := offer("act", "writes")
		r.announce("f/w", act)
		var wg sync.WaitGroup
		wg.Go(func() {
			r.work(act.Definition(), func(c *remote.Call) { r.finish(c, &remote.Result{Data: json.RawMessage(`1`)}) })
		})
		if got := r.Run(t.Context(), "run_1", begun("act")); got.Content != "1" {
			t.Errorf("%+v", got)
		}
		wg.Wait()
	})
}

// The worker of a call is lost. The outcome of a call that writes is unknown: the model gets interrupted once the time for a
// late result (Options.Late) is over. A late result within that time counts.
func TestLostWorker(t *testing.T) {
	for name, late := range map[string]time.Duration{"never": 0, "in time": 5 * time.Second, "too late": 25 * time.Second} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t, nil)
				defer r.Close()
				act := offer("act", "writes")
				act.TimeoutMS = (5 * time.Minute).Milliseconds()
				r.announce("f/w", act)
				var wg sync.WaitGroup
				wg.Go(func() {
					r.work(act.Definition(), func(c *remote.Call) {
						time.Sleep(10 * time.Second)
						if _, err := r.queue.ExpireCalls(t.Context()); err != nil {
							t.Error(err)
						}
						if late == 0 {
							return
						}
						time.Sleep(late)
						err := r.queue.FinishCall(t.Context(), c.Ref(), &remote.Result{Data: json.RawMessage(`"late"`)})
						if (err == nil) != (late < 10*time.Second) {
							t.Errorf("the late result: %v", err)
						}
					})
				})
				began := time.Now()
				got := r.Run(t.Context(), "run_1", remotetest.Ask("act"))
				took := time.Since(began)
				wg.Wait()
				want := "interrupted"
				if name == "in time" {
					want = "late"
				}
				if !strings.Contains(got.Content, want) || took > 23*time.Second {
					t.Errorf("after %s: %+v", took, got)
				}
				again := r.Run(t.Context(), "run_1", begun("act"))
				if again.Content != got.Content {
					t.Errorf("asked again: %s, want %s", again.Content, got.Content)
				}
			})
		})
	}
}

// The context of a waiting call ends: a call that no worker has claimed does not run any more, and the worker of a claimed
// call is asked to stop it. A call without a worker ends with its timeout.
func TestGivesUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.Close()
		act := offer("act", "writes")
		r.announce("f/w", act)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { time.Sleep(time.Second); cancel() }()
		if got := r.Run(ctx, "run_1", remotetest.Ask("act")); got.Code != lathe.CodeCancelled {
			t.Errorf("%+v", got)
		}
		began := time.Now()
		if got := r.Run(t.Context(), "run_2", remotetest.Ask("act")); got.Code != lathe.CodeTimeout || time.Since(began) > 31*time.Second {
			t.Errorf("%+v", got)
		}
		synctest.Wait()
		if calls, err := r.queue.ClaimCalls(t.Context(), "f/w", []string{act.Definition()}, time.Minute, 9); err != nil || len(calls) != 0 {
			t.Errorf("%d calls wait, %v", len(calls), err)
		}
		if got := r.Run(t.Context(), "run_2", begun("act")); got.Code != lathe.CodeTimeout && got.Code != lathe.CodeCancelled {
			t.Errorf("asked again: %+v", got)
		}

		wanted := make(chan struct{})
		ctx, cancel = context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			r.work(act.Definition(), func(c *remote.Call) {
				cancel()
				<-wanted
				synctest.Wait()
				stop, err := r.queue.RenewCalls(t.Context(), "f/w", []remote.Ref{c.Ref()}, time.Minute)
				if err != nil || len(stop) != 1 {
					t.Errorf("the worker receives %v, %v", stop, err)
				}
			})
		})
		if got := r.Run(ctx, "run_3", remotetest.Ask("act")); got.Code != lathe.CodeCancelled {
			t.Errorf("%+v", got)
		}
		close(wanted)
		wg.Wait()
	})
}

// Two runs without a name make the same call: each has its own.
func TestRunsWithoutANameShareNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.Close()
		act := offer("act", "writes")
		r.announce("f/w", act)
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := range 2 {
				r.work(act.Definition(), func(c *remote.Call) {
					r.finish(c, &remote.Result{Data: json.RawMessage(fmt.Sprint(i))})
				})
			}
		})
		for i := range 2 {
			if got := r.Run(t.Context(), "", remotetest.Ask("act")); got.Content != fmt.Sprint(i) {
				t.Errorf("call %d: %+v", i, got)
			}
		}
		wg.Wait()
	})
}

// Conflicts are refused, not merged; who was first is right, and when it is gone the next one is.
func TestCatalogue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		local := tool.Func("local", "Is here.", func(context.Context, struct{}) (int, error) { return 1, nil }, &tool.FuncOptions{Show: []string{"*"}})
		r := newRig(t, nil, local)
		defer r.Close()
		one, other := offer("act", "writes"), offer("act", "writes")
		other.Description = "Does something else."
		broken := offer("broken", "writes")
		broken.Schema = json.RawMessage(`{"type":"nothing"}`)
		hidden := offer("hidden", "writes")
		hidden.Allowlist = nil
		if refused := r.announce("f/1", one, offer("read", "read_only")); len(refused) != 0 {
			t.Errorf("refused %v", refused)
		}
		if refused := r.announce("f/2", one); len(refused) != 0 {
			t.Errorf("the same tool of a second worker is refused: %v", refused)
		}
		refused := r.announce("f/3", other, offer("local", "writes"), offer("no good", "writes"), broken, hidden, offer("late", "writes"))
		for name, why := range map[string]string{"act": "f/1", "local": "taken", "no good": "characters", "broken": "schema", "hidden": "allowlist"} {
			if !strings.Contains(refused[name], why) {
				t.Errorf("%s is refused because %q, want %q", name, refused[name], why)
			}
		}
		if len(refused) != 5 {
			t.Errorf("refused %v", refused)
		}
		want := []string{"act worker", "late worker", "local go", "read worker"}
		if got := r.names(); !slices.Equal(got, want) {
			t.Errorf("the set has %v, want %v", got, want)
		}
		act, _ := r.Set.Lookup("act")
		for _, gone := range []string{"f/1", "f/2"} {
			if err := r.queue.PutWorker(t.Context(), &remote.Worker{ID: gone}, 0); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if now, ok := r.Set.Lookup("act"); !ok || (now == act) != (gone == "f/1") {
				t.Errorf("without %s: %t, the same %t", gone, ok, now == act)
			}
		}
		if _, ok := r.Catalogue.Refused("f/3")["act"]; ok {
			t.Error("it is refused still")
		}
		if now, _ := r.Set.Lookup("act"); now.Spec().Description != other.Description {
			t.Error("the tool is not that of the worker that is there")
		}
		time.Sleep(ttl) // they send nothing more
		synctest.Wait()
		if got := r.names(); !slices.Equal(got, []string{"local go"}) {
			t.Errorf("the set has %v", got)
		}
	})
}

// A set that is attached later has the tools at once; one that is left stays as it is.
func TestSetsComeAndGo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.Close()
		r.announce("f/1", offer("act", "writes"))
		next, err := tool.NewSet()
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Catalogue.Attach(t.Context(), next); err != nil {
			t.Fatal(err)
		}
		if _, ok := next.Lookup("act"); !ok {
			t.Error("the set has no tools")
		}
		r.Catalogue.Detach(r.Set)
		r.announce("f/1", offer("other", "writes"))
		if _, ok := r.Set.Lookup("act"); !ok {
			t.Error("a set that was left has changed")
		}
		if _, ok := next.Lookup("other"); !ok {
			t.Error("a set has not changed")
		}
	})
}

// A set that could not be attached does not change afterwards.
func TestSetIsNotAttachedAfterAnError(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.Close()
		set, err := tool.NewSet()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := r.Catalogue.Attach(ctx, set); lathe.CodeOf(err) != lathe.CodeCancelled {
			t.Fatalf("error %v", err)
		}
		r.announce("f/1", offer("act", "writes"))
		if _, ok := set.Lookup("act"); ok {
			t.Error("the set has changed")
		}
		if _, ok := r.Set.Lookup("act"); !ok {
			t.Error("the attached set has not changed")
		}
	})
}

// blind is a queue whose store has queued a call, and lost the answer; for a while it cannot be reached at all.
type blind struct {
	*store.Memory
	puts  int
	until time.Time
}

func (b *blind) PutCall(ctx context.Context, c *remote.Call, within time.Duration) (*remote.Call, error) {
	b.puts++
	if b.puts == 1 {
		_, _ = b.Memory.PutCall(ctx, c, within)
	}
	if time.Now().Before(b.until) {
		return nil, &lathe.Error{Code: lathe.CodeUnavailable}
	}
	return b.Memory.PutCall(ctx, c, within)
}

// While the store cannot be reached it is unknown whether the call was queued. The call is not answered as one that was not.
func TestStoreThatCannotBeReached(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, back := range []time.Duration{5 * time.Second, time.Hour} {
			q := &blind{Memory: store.NewMemory(nil), until: time.Now().Add(back)}
			r := &rig{remotetest.Open(t, q), t, q.Memory}
			defer r.Close()
			act := offer("act", "writes")
			r.announce("f/w", act)
			if back < time.Minute {
				var wg sync.WaitGroup
				wg.Go(func() {
					r.work(act.Definition(), func(c *remote.Call) { r.finish(c, &remote.Result{Data: json.RawMessage(`1`)}) })
				})
				if got := r.Run(t.Context(), "run_1", remotetest.Ask("act")); got.Content != "1" {
					t.Errorf("%+v", got)
				}
				wg.Wait()
				continue
			}
			if got := r.Run(t.Context(), "run_1", remotetest.Ask("act")); got.Code != lathe.CodeTimeout {
				t.Errorf("%+v", got)
			}
			synctest.Wait()
			if calls, err := q.ClaimCalls(t.Context(), "f/w", []string{act.Definition()}, time.Minute, 9); err != nil || len(calls) != 0 {
				t.Errorf("%d calls can still be claimed, %v", len(calls), err)
			}
		}
	})
}
