package server_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe/internal/wire/workers"
	"github.com/lathe-run/lathe/observe"
	"github.com/lathe-run/lathe/remote"
	"github.com/lathe-run/lathe/server"
)

// A call that was started for a process is given back when the same process comes back without it, and not when
// another one of that name does, or one that does not say which it is: that one may have run it.
func TestCallsOfALostConnection(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before, after string
		held, again   bool
	}{
		"the same process":            {"a", "a", false, true},
		"the same process, which has": {"a", "a", true, false},
		"another process":             {"a", "b", false, false},
		"who knows":                   {"", "", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newWorkerRig(t, server.WorkerOptions{})
			hello := func(instance string, held ...workers.Ref) *peer {
				p := r.dial(workerToken)
				p.send(&workers.Frame{Type: workers.Hello, Worker: "w", Instance: instance, Credits: 4, Offers: []remote.Tool{act}, Held: held})
				p.next(workers.Welcome)
				return p
			}
			p := hello(tt.before)
			r.put("k")
			first := p.next(workers.Call)
			var held []workers.Ref
			if tt.held {
				held = append(held, first.Ref)
			}
			p = hello(tt.after, held...) // while the gateway thinks that the first connection is there
			if !tt.again {
				r.put("k2") // what is sent next is not the first call
				if f := p.next(workers.Call); f.Key != "k2" {
					t.Errorf("it was given back: %+v", f)
				}
				r.is("k", remote.Started)
				return
			}
			if f := p.next(workers.Call); f.Key != "k" || f.Attempt != 2 {
				t.Errorf("%+v", f)
			}
		})
	}
}

// The tools of a worker that is lost are forgotten two leases later, those of one that has come back are not, and
// those of one that drains are at once.
func TestToolsOfALostWorker(t *testing.T) {
	t.Parallel()
	r := newWorkerRig(t, server.WorkerOptions{Lease: time.Hour})
	puts := func(want ...time.Duration) {
		t.Helper()
		for _, ttl := range want {
			if got := <-r.queue.puts; got != ttl*time.Hour {
				t.Fatalf("it is remembered for %s, want %s", got, ttl*time.Hour)
			}
		}
	}
	p := r.hello(workerToken, "w")
	next := r.hello(workerToken, "w")
	p.ended()
	puts(6, 6)
	_ = next.ws.CloseNow()
	puts(2)
	last := r.hello(workerToken, "w")
	last.send(&workers.Frame{Type: workers.Drain})
	puts(6, 0)
	_ = last.ws.CloseNow()
	r.counts(observe.WorkerCount{Connects: 3})
	select {
	case ttl := <-r.queue.puts:
		t.Errorf("it is remembered for %s", ttl)
	default:
	}
}

// What another gateway has said of a worker by the time that this one loses it stays: nothing, where it went in
// order there, or other tools.
func TestLostWorkersStayAsTheyAre(t *testing.T) {
	t.Parallel()
	other := act
	other.Description = "Acts otherwise."
	for name, tt := range map[string]struct {
		ttl   time.Duration
		tools []remote.Tool
	}{"it has drained": {}, "it is there": {time.Hour, []remote.Tool{other}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newWorkerRig(t, server.WorkerOptions{Lease: time.Hour})
			p := r.hello(workerToken, "w")
			if err := r.queue.Queue.PutWorker(t.Context(), &remote.Worker{ID: "f/w", Pool: "f", Tools: tt.tools}, tt.ttl); err != nil {
				t.Fatal(err)
			}
			_ = p.ws.CloseNow()
			r.counts(observe.WorkerCount{Connects: 1})
			var got []remote.Tool
			there, err := r.queue.Workers(t.Context())
			if len(there) > 0 {
				got = there[0].Tools
			}
			if diff := cmp.Diff(tt.tools, got); diff != "" || err != nil || len(there) != len(tt.tools) {
				t.Errorf("%d workers, %v:\n%s", len(there), err, diff)
			}
		})
	}
}
