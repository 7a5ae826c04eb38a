package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/remote"
	"github.com/lathe-run/lathe/remote/worker"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/tool"
)

func TestServesTools(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n, net := startNode(t, memory()), &network{}
		defer n.stop()
		net.lead(n)
		var meta lathe.CallMeta
		stop := startWorker(t, net, nil,
			does("echo", lathe.ReadOnly, func(ctx context.Context, args json.RawMessage) (*lathe.Output, error) {
				meta = *lathe.CallMetaFrom(ctx)
				return &lathe.Output{Data: args}, nil
			}),
			does("text", lathe.Writes, returns(`"two words"`)),
			does("picture", lathe.ReadOnly, func(context.Context, json.RawMessage) (*lathe.Output, error) {
				return &lathe.Output{Data: json.RawMessage(`{}`), Blobs: []lathe.Blob{{MediaType: "image/png", Data: []byte{1, 2}}}}, nil
			}),
			does("fails", lathe.ReadOnly, func(context.Context, json.RawMessage) (*lathe.Output, error) {
				return nil, tool.Fail(lathe.CodeInvalidArguments, "no such city")
			}),
			does("broken", lathe.ReadOnly, func(context.Context, json.RawMessage) (*lathe.Output, error) { panic("canary") }),
		)
		defer stop()
		n.has("echo", true)
		for name, want := range map[string]string{"echo": `{"a":1.50}`, "text": "two words", "picture": `{}`, "fails": "no such city", "broken": "execution_failed"} {
			got := n.run(t.Context(), "run_"+name, name)
			if !strings.Contains(got.Content, want) || got.IsError != (name == "fails" || name == "broken") {
				t.Errorf("%s: %+v, want %s", name, got, want)
			}
			if name == "picture" && (len(got.Blobs) != 1 || got.Blobs[0].MediaType != "image/png") {
				t.Errorf("the picture is %+v", got.Blobs)
			}
		}
		row, err := n.Queue.FindCall(t.Context(), meta.IdempotencyKey)
		if err != nil || row.State != remote.Done || meta.RunID != "run_echo" || meta.CallID != "call_1" || meta.RequestID != "req" || meta.SessionID != "s" {
			t.Errorf("the worker's tool got %+v; by that key there is %+v, %v", meta, row, err)
		}
		if sp, _ := n.Set.Lookup("text"); sp.Spec().Effect != lathe.Writes || sp.Spec().Timeout != 5*time.Minute {
			t.Errorf("%+v", sp.Spec())
		}
	})
}

// What a worker claims of its tools is believed as far as its token goes.
func TestTokens(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n, net := startNode(t, memory(), server.WorkerPool{Name: "f", Token: secret.New(token), Tools: []string{"read", "db_*"}, Effects: []lathe.Effect{lathe.Idempotent}}), &network{}
		defer n.stop()
		net.lead(n)
		states := make(chan worker.State, 100)
		stop := startWorker(t, net, &worker.Options{OnState: func(s worker.State) { states <- s }},
			does("read", lathe.ReadOnly, returns(`1`)), does("db_put", lathe.Idempotent, returns(`1`)), does("other", lathe.ReadOnly, returns(`1`)))
		defer stop()
		s := <-states
		if !s.Connected || len(s.Refused) != 1 || !strings.Contains(s.Refused["other"], "workers.f.tools") {
			t.Errorf("%+v", s)
		}
		n.has("read", true)
		for name, want := range map[string]lathe.Effect{"read": lathe.Writes, "db_put": lathe.Idempotent} {
			if got, ok := n.Set.Lookup(name); !ok || got.Spec().Effect != want {
				t.Errorf("%s: %t, %+v", name, ok, got)
			}
		}
		for _, bad := range []string{"another-token-0123456789", token + "x"} {
			end := startWorker(t, net, &worker.Options{Token: secret.New(bad), OnState: func(s worker.State) { states <- s }}, does("read", lathe.ReadOnly, returns(`1`)))
			if s := <-states; s.Connected || !strings.Contains(s.Err.Error(), "401") || strings.Contains(s.Err.Error(), bad) {
				t.Errorf("with another token: %+v", s)
			}
			end()
		}
	})
}

// The connection breaks while a call runs, noticed by both sides or by neither. The call is not run again, and
// the worker sends its result on the next connection, to another gateway, which has resumed the run by then.
func TestResultsFollow(t *testing.T) {
	for name, cut := range map[string]bool{"cut": true, "silence": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				queue, net := memory(), &network{}
				first, second := startNode(t, queue), startNode(t, queue)
				defer first.stop()
				defer second.stop()
				net.lead(first)
				var calls atomic.Int32
				running, finish := make(chan struct{}), make(chan struct{})
				stop := startWorker(t, net, nil, does("act", lathe.Writes, func(context.Context, json.RawMessage) (*lathe.Output, error) {
					calls.Add(1)
					close(running)
					<-finish
					return &lathe.Output{Data: json.RawMessage(`"done"`)}, nil
				}))
				defer stop()
				first.has("act", true)
				second.has("act", true) // the store notifies it
				var wg sync.WaitGroup
				wg.Go(func() {
					if got := second.run(t.Context(), "run_1", "act"); got.Content != "done" {
						t.Errorf("%+v", got)
					}
				})
				<-running
				net.lead(second)
				net.fail(cut)
				time.Sleep(3 * time.Second)
				close(finish)
				wg.Wait()
				if calls.Load() != 1 {
					t.Errorf("%d calls", calls.Load())
				}
			})
		})
	}
}

// A worker that comes back too late finds what it read done by another one, and what it wrote unknown or
// finished by its late result.
func TestLostWorkers(t *testing.T) {
	for effect, want := range map[lathe.Effect]string{lathe.ReadOnly: "second", lathe.Writes: "interrupted"} {
		t.Run(effect.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				n, lost, fine := startNode(t, memory()), &network{}, &network{}
				defer n.stop()
				lost.lead(n)
				fine.lead(n)
				running, finish := make(chan struct{}), make(chan struct{})
				stopFirst := startWorker(t, lost, &worker.Options{Name: "first"}, does("act", effect, func(context.Context, json.RawMessage) (*lathe.Output, error) {
					close(running)
					<-finish
					return &lathe.Output{Data: json.RawMessage(`"first"`)}, nil
				}))
				n.has("act", true)
				var wg sync.WaitGroup
				wg.Go(func() {
					if got := n.run(t.Context(), "run_1", "act"); !strings.Contains(got.Content, want) {
						t.Errorf("%+v, want %s", got, want)
					}
				})
				<-running
				lost.lead(nil)
				lost.fail(false)
				stopSecond := startWorker(t, fine, &worker.Options{Name: "second"}, does("act", effect, returns(`"second"`)))
				defer stopSecond()
				wg.Wait()
				lost.lead(n) // it comes back with its result, which is taken or not, and kept no longer
				close(finish)
				stopFirst()
			})
		})
	}
}

// A gateway that is about to stop sends its workers away, and their calls go on.
func TestSentAway(t *testing.T) {
	bubble(t, func(t *testing.T) {
		queue, net := memory(), &network{}
		first, second := startNode(t, queue), startNode(t, queue)
		defer second.stop()
		net.lead(first)
		running, finish := make(chan struct{}), make(chan struct{})
		stop := startWorker(t, net, nil, does("act", lathe.Writes, func(context.Context, json.RawMessage) (*lathe.Output, error) {
			close(running)
			<-finish
			return &lathe.Output{Data: json.RawMessage(`"done"`)}, nil
		}))
		defer stop()
		second.has("act", true)
		var wg sync.WaitGroup
		wg.Go(func() {
			if got := second.run(t.Context(), "run_1", "act"); got.Content != "done" {
				t.Errorf("%+v", got)
			}
		})
		<-running
		net.lead(second)
		began := time.Now()
		first.stop()
		if took := time.Since(began); took > time.Second {
			t.Errorf("stopping took %s", took)
		}
		close(finish)
		wg.Wait()
	})
}

// A worker that is to end finishes what it has, and takes no more; its tools go at once.
func TestWorkerDrains(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n, net := startNode(t, memory()), &network{}
		defer n.stop()
		net.lead(n)
		running, finish := make(chan struct{}), make(chan struct{})
		stop := startWorker(t, net, nil, does("act", lathe.Writes, func(context.Context, json.RawMessage) (*lathe.Output, error) {
			close(running)
			<-finish
			return &lathe.Output{Data: json.RawMessage(`"done"`)}, nil
		}))
		n.has("act", true)
		var wg sync.WaitGroup
		wg.Go(func() {
			if got := n.run(t.Context(), "run_1", "act"); got.Content != "done" {
				t.Errorf("%+v", got)
			}
		})
		<-running
		wg.Go(stop)
		n.has("act", false)
		close(finish)
		wg.Wait()
	})
}

// A call that does not end keeps a worker that is to end for so long, and no longer.
func TestWorkerDrainsNoLonger(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n, net := startNode(t, memory()), &network{}
		defer n.stop()
		net.lead(n)
		running := make(chan struct{})
		stop := startWorker(t, net, &worker.Options{Drain: 5 * time.Second}, does("act", lathe.Writes, func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
			close(running)
			<-ctx.Done()
			return nil, ctx.Err()
		}))
		n.has("act", true)
		var wg sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		wg.Go(func() { n.run(ctx, "run_1", "act") })
		<-running
		began := time.Now()
		stop()
		if took := time.Since(began); took < 5*time.Second || took > 7*time.Second {
			t.Errorf("it took %s", took)
		}
		cancel()
		wg.Wait()
	})
}

// When the caller of a call is cancelled, the worker that executes the call is notified.
func TestCancelReachesTheWorker(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n, net := startNode(t, memory()), &network{}
		defer n.stop()
		net.lead(n)
		running, ended := make(chan struct{}), make(chan struct{})
		stop := startWorker(t, net, nil, does("act", lathe.Writes, func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
			close(running)
			<-ctx.Done()
			close(ended)
			return nil, ctx.Err()
		}))
		defer stop()
		n.has("act", true)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if got := n.run(ctx, "run_1", "act"); got.Code != lathe.CodeCancelled {
				t.Errorf("%+v", got)
			}
		})
		<-running
		began := time.Now()
		cancel()
		<-ended
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %s", took)
		}
		wg.Wait()
	})
}

// A worker gets no more calls at once than it takes, or its token may.
func TestCredit(t *testing.T) {
	for name, tt := range map[string]struct{ worker, pool, want int }{"worker": {2, 0, 2}, "pool": {8, 3, 3}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				n, net := startNode(t, memory(), server.WorkerPool{Name: "f", Token: secret.New(token), Tools: []string{"*"}, MaxConcurrency: tt.pool}), &network{}
				defer n.stop()
				net.lead(n)
				var now, most atomic.Int32
				stop := startWorker(t, net, &worker.Options{Concurrency: tt.worker}, does("act", lathe.Writes, func(context.Context, json.RawMessage) (*lathe.Output, error) {
					if k := now.Add(1); k > most.Load() {
						most.Store(k)
					}
					time.Sleep(time.Second)
					now.Add(-1)
					return &lathe.Output{}, nil
				}))
				defer stop()
				n.has("act", true)
				var wg sync.WaitGroup
				for i := range 12 {
					wg.Go(func() {
						if got := n.run(t.Context(), fmt.Sprint("run_", i), "act"); got.IsError {
							t.Errorf("%+v", got)
						}
					})
				}
				wg.Wait()
				if got := int(most.Load()); got != tt.want {
					t.Errorf("%d calls at once, want %d", got, tt.want)
				}
			})
		})
	}
}

// Many calls while the connection breaks again and again: what writes runs once, or not at all where its
// call is unknown; what reads is answered.
func TestF9_BreakingConnections(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := startNode(t, memory())
		defer n.stop()
		var mu sync.Mutex
		ran := map[string]int{}
		act := func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
			m := lathe.CallMetaFrom(ctx)
			mu.Lock()
			ran[m.Tool+" "+m.RunID]++
			mu.Unlock()
			time.Sleep(300 * time.Millisecond)
			return &lathe.Output{Data: json.RawMessage(`"done"`)}, nil
		}
		nets := []*network{{}, {}}
		for i, net := range nets {
			net.lead(n)
			stop := startWorker(t, net, &worker.Options{Name: fmt.Sprint("w", i)}, does("put", lathe.Writes, act), does("look", lathe.ReadOnly, act))
			defer stop()
		}
		n.has("put", true)
		var calls, breaking sync.WaitGroup
		over := make(chan struct{})
		breaking.Go(func() {
			for i := range 20 {
				select {
				case <-over:
					return
				case <-time.After(4300 * time.Millisecond):
					nets[i%2].fail(i%3 != 0)
				}
			}
		})
		unknown := 0
		for i := range 60 {
			calls.Go(func() {
				time.Sleep(time.Duration(i) * time.Second)
				id := fmt.Sprint("run_", i)
				if got := n.run(t.Context(), id+"_look", "look"); got.Content != "done" {
					t.Errorf("look %d: %s", i, got.Code)
				}
				got := n.run(t.Context(), id, "put")
				mu.Lock()
				defer mu.Unlock()
				times := ran["put "+id]
				switch {
				case times > 1:
					t.Errorf("%s wrote %d times", id, times)
				case got.Content == "done" && times != 1:
					t.Errorf("%s: a result without a call", id)
				case got.Code == lathe.CodeInterrupted:
					unknown++
				case got.IsError:
					t.Errorf("put %d: %s", i, got.Code)
				}
			})
		}
		calls.Wait()
		close(over)
		breaking.Wait()
		t.Logf("%d calls ended unknown", unknown)
		synctest.Wait()
	})
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	r, err := tool.NewRunner(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]worker.Options{
		"no address": {Token: secret.New(token)},
		"no token":   {URL: "https://a.example"},
		"in clear":   {URL: "http://a.example", Token: secret.New(token)},
		"scheme":     {URL: "ftp://a.example", Token: secret.New(token)},
		"user":       {URL: "https://me@a.example", Token: secret.New(token)},
		"name":       {URL: "https://a.example", Token: secret.New(token), Name: "a/b"},
	} {
		if _, err := worker.New(r, &o); lathe.CodeOf(err) != lathe.CodeInvalidConfig || strings.Contains(err.Error(), token) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, url := range []string{"https://a.example", "wss://a.example:8443/", "http://127.0.0.1:1", "ws://localhost:1/x"} {
		if _, err := worker.New(r, &worker.Options{URL: url, Token: secret.New(token)}); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	if _, err := worker.New(r, &worker.Options{URL: "http://a.example", Token: secret.New(token), AllowHTTP: true}); err != nil {
		t.Error(err)
	}
}
